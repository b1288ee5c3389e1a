//===- Call.cpp - Calls of compiled code that may be left -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code has no way to return early, and no object that needs to be
// destroyed: where it cannot go on, longjmp takes it to its caller. All it owns
// is memory, which every guarded call keeps a list of.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "FloatMode.h"
#include "ScratchCache.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>

using namespace linattn::runtime;

namespace {

/// The header of a block, right before the memory that compiled code sees.
struct Block {
  Block *next;
  /// The pointer to this block, in the list's head or in the previous block.
  Block **link;
  void *base;
  /// Bytes from `base` on.
  uint64_t bytes;
};

struct Guard {
  jmp_buf target;
  Block *blocks = nullptr;
  linattn_call_result result{};
  Guard *outer;
  Watch *watch;
  /// longjmp does not restore the mode; the call does.
  linattn::FloatMode mode = linattn::getFloatMode();
};

thread_local Guard *innermost = nullptr;

thread_local ScratchCache scratch;
/// The number of requests to all threads to release kept memory, and the number
/// that this thread has served.
std::atomic<uint64_t> releases{0};
thread_local uint64_t releasesSeen = 0;

std::atomic<void *(*)(size_t)> allocator{std::malloc};
std::atomic<void (*)(void *)> releaser{std::free};

/// A test's allocator counts blocks, so that none of its scratch is kept.
bool keepsScratch() {
  return allocator.load(std::memory_order_relaxed) == std::malloc;
}

void releaseWhereDue() {
  uint64_t due = releases.load(std::memory_order_relaxed);
  if (releasesSeen == due)
    return;
  releasesSeen = due;
  scratch.clear();
}

void release(const Block &block) {
  if (block.bytes < ScratchCache::smallest || !keepsScratch())
    return releaser.load(std::memory_order_relaxed)(block.base);
  releaseWhereDue();
  scratch.put(block.base, block.bytes);
}

/// Allocates at least `bytes`, and stores the actual number there. Null if
/// memory runs out.
void *allocateBase(uint64_t &bytes) {
  auto *fresh = allocator.load(std::memory_order_relaxed);
  if (bytes < ScratchCache::smallest || fresh != std::malloc)
    return fresh(bytes);
  releaseWhereDue();
  if (void *kept = scratch.take(bytes))
    return kept;
  void *base = fresh(bytes);
  if (base)
    return base;
  scratch.clear();
  return fresh(bytes);
}

/// Null if memory runs out.
void *allocate(uint64_t bytes, uint64_t alignment) {
  uint64_t extra = sizeof(Block) + alignment;
  if (bytes > static_cast<uint64_t>(PTRDIFF_MAX) - extra)
    return nullptr;
  uint64_t size = bytes + extra;
  void *base = allocateBase(size);
  if (!base)
    return nullptr;
  auto first = reinterpret_cast<uintptr_t>(base) + sizeof(Block);
  auto *memory =
      reinterpret_cast<char *>((first + alignment - 1) & ~(alignment - 1));
  Block *block = reinterpret_cast<Block *>(memory) - 1;
  block->base = base;
  block->bytes = size;
  block->next = nullptr;
  block->link = nullptr;
  if (Guard *guard = innermost) {
    block->next = guard->blocks;
    block->link = &guard->blocks;
    if (block->next)
      block->next->link = &block->next;
    guard->blocks = block;
  }
  return memory;
}

void releaseAll(Block *block) {
  while (block) {
    Block *next = block->next;
    release(*block);
    block = next;
  }
}

/// Separate from `callGuarded`, so that no variable is in a register when
/// setjmp returns again. The variant with an underscore leaves the signal mask
/// alone, which would take a system call.
[[gnu::noinline]] void enter(Guard &guard, void (*code)(void *),
                             void *context) {
  if (_setjmp(guard.target) == 0)
    code(context);
}

} // namespace

linattn_call_result linattn::runtime::callGuarded(void (*code)(void *context),
                                                  void *context, Watch *watch) {
  Guard guard;
  guard.outer = innermost;
  guard.watch = watch;
  innermost = &guard;
  enter(guard, code, context);
  innermost = guard.outer;
  if (guard.result.status != LINATTN_CALL_DONE)
    linattn::setFloatMode(guard.mode);
  releaseAll(guard.blocks);
  return guard.result;
}

Watch *linattn::runtime::getWatch() {
  return innermost ? innermost->watch : nullptr;
}

void linattn::runtime::leave(linattn_call_result result) {
  if (!innermost) {
    std::fprintf(stderr, "linattn: no memory outside of a call\n");
    std::abort();
  }
  innermost->result = result;
  _longjmp(innermost->target, 1);
}

linattn_call_result linattn_call(void (*code)(void **), void **arguments) {
  struct Call {
    void (*code)(void **);
    void **arguments;
  } call{code, arguments};
  auto run = [](void *opaque) {
    auto *call = static_cast<Call *>(opaque);
    call->code(call->arguments);
  };
  if (innermost)
    return callGuarded(run, &call, innermost->watch);
  Watch watch;
  if (watch.isLate())
    return {LINATTN_CALL_TIMED_OUT, 0};
  return callGuarded(run, &call, &watch);
}

void linattn_poll(void) {
  Watch *watch = getWatch();
  if (!watch)
    return;
  int32_t reason = watch->getReason();
  if (reason != LINATTN_CALL_DONE)
    leave({reason, 0});
}

void *linattn_allocate(uint64_t bytes, uint64_t alignment) {
  if (void *memory = allocate(bytes, alignment))
    return memory;
  leave({LINATTN_CALL_OUT_OF_MEMORY, bytes});
}

void linattn_free(void *memory) {
  if (!memory)
    return;
  Block *block = static_cast<Block *>(memory) - 1;
  if (block->link) {
    *block->link = block->next;
    if (block->next)
      block->next->link = block->link;
  }
  release(*block);
}

void linattn_set_allocator(void *(*allocate)(size_t bytes),
                           void (*release)(void *memory)) {
  allocator = allocate ? allocate : std::malloc;
  releaser = release ? release : std::free;
}

void linattn_release_memory(void) {
  releases.fetch_add(1, std::memory_order_relaxed);
  releaseWhereDue();
}
