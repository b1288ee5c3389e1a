//===- Fiber.cpp - Threads of a GPU on stacks of their own ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fiber.h"

#include "llvm/Support/ErrorHandling.h"
#include <cstdint>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

using namespace linattn::emulator;

FiberStack::FiberStack(size_t size) {
  size_t page = sysconf(_SC_PAGESIZE);
  bytes = (size + page - 1) / page * page;
  mapped = bytes + page;
  void *memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    llvm::report_bad_alloc_error("no memory for the stack of a GPU thread");
  mapping = static_cast<char *>(memory);
  mprotect(mapping, page, PROT_NONE);
  usable = mapping + page;
}

FiberStack::~FiberStack() { munmap(mapping, mapped); }

#if defined(__SANITIZE_THREAD__)
SanitizerFiber::~SanitizerFiber() {
  if (owned)
    __tsan_destroy_fiber(fiber);
}

void SanitizerFiber::restart() {
  if (owned)
    __tsan_destroy_fiber(fiber);
  fiber = __tsan_create_fiber(0);
  owned = true;
}

/// A context without a restart is that of the calling thread.
void SanitizerFiber::announceSwitch(SanitizerFiber &from, SanitizerFiber &to) {
  if (!from.owned)
    from.fiber = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.fiber, 0);
}
#endif

//===----------------------------------------------------------------------===//
// ucontext
//===----------------------------------------------------------------------===//

/// makecontext passes integers only: a pointer is passed as two halves.
static void startPortable(unsigned entryHigh, unsigned entryLow,
                          unsigned argumentHigh, unsigned argumentLow) {
  auto join = [](unsigned high, unsigned low) {
    return static_cast<uintptr_t>(uint64_t(high) << 32 | low);
  };
  auto entry = reinterpret_cast<void (*)(void *)>(join(entryHigh, entryLow));
  entry(reinterpret_cast<void *>(join(argumentHigh, argumentLow)));
  llvm_unreachable("a fiber must not return");
}

void PortableContext::prepare(const FiberStack &stack, void (*entry)(void *),
                              void *argument) {
  sanitizer.restart();
  getcontext(&context);
  context.uc_stack.ss_sp = stack.begin();
  context.uc_stack.ss_size = stack.size();
  context.uc_link = nullptr;
  uint64_t entryBits = reinterpret_cast<uintptr_t>(entry);
  uint64_t argumentBits = reinterpret_cast<uintptr_t>(argument);
  makecontext(&context, reinterpret_cast<void (*)()>(&startPortable), 4,
              unsigned(entryBits >> 32), unsigned(entryBits),
              unsigned(argumentBits >> 32), unsigned(argumentBits));
}

void PortableContext::switchContext(PortableContext &from,
                                    PortableContext &to) {
  SanitizerFiber::announceSwitch(from.sanitizer, to.sanitizer);
  swapcontext(&from.context, &to.context);
}

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

#if LINATTN_ASSEMBLY_FIBERS

extern "C" void linattn_emu_switch(void **from, void *to);
extern "C" void linattn_emu_start();

// Pushes the callee-saved registers, switches stacks, and pops them there. The
// floating-point control words are the same in all fibers.
asm(R"(
  .text
  .p2align 4
  .type linattn_emu_switch, @function
linattn_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size linattn_emu_switch, .-linattn_emu_switch

  .p2align 4
  .type linattn_emu_start, @function
linattn_emu_start:
  movq %r12, %rdi
  callq *%r13
  ud2
  .size linattn_emu_start, .-linattn_emu_start
)");

void AssemblyContext::prepare(const FiberStack &stack, void (*entry)(void *),
                              void *argument) {
  sanitizer.restart();
  // linattn_emu_switch pops r15, r14, r13, r12, rbx, rbp and the return
  // address. Behind them the stack is aligned for a call.
  void **top = reinterpret_cast<void **>(stack.end()) - 9;
  top[0] = top[1] = nullptr;
  top[2] = reinterpret_cast<void *>(entry);
  top[3] = argument;
  top[4] = top[5] = nullptr;
  top[6] = reinterpret_cast<void *>(&linattn_emu_start);
  stackPointer = top;
}

void AssemblyContext::switchContext(AssemblyContext &from,
                                    AssemblyContext &to) {
  SanitizerFiber::announceSwitch(from.sanitizer, to.sanitizer);
  linattn_emu_switch(&from.stackPointer, to.stackPointer);
}

#endif // LINATTN_ASSEMBLY_FIBERS
