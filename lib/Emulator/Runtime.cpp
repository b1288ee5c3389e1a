//===- Runtime.cpp - The functions that compiled kernels call -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"
#include "Collectives.h"

#include <cmath>

using namespace linattn;
using namespace linattn::emulator;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static void *load(Thread *thread, uint64_t address, uint32_t bytes,
                  uint32_t alignment, uint32_t site) {
  return thread->block->access(*thread, AccessKind::Read, address, bytes,
                               alignment, site);
}

static void *store(Thread *thread, uint64_t address, uint32_t bytes,
                   uint32_t alignment, uint32_t site) {
  return thread->block->access(*thread, AccessKind::Write, address, bytes,
                               alignment, site);
}

static void *atomic(Thread *thread, uint64_t address, uint32_t bytes,
                    uint32_t alignment, uint32_t site) {
  return thread->block->access(*thread, AccessKind::Atomic, address, bytes,
                               alignment, site);
}

static void copyAsync(Thread *thread, uint64_t destination, uint64_t source,
                      uint32_t bytes, uint32_t sourceBytes, uint32_t site) {
  thread->block->beginCopy(*thread, destination, source, bytes,
                           std::min(bytes, sourceBytes), site);
}

static void commitCopies(Thread *thread) {
  thread->block->commitCopies(*thread);
}

static void waitCopies(Thread *thread, uint32_t pendingGroups) {
  thread->block->waitCopies(*thread, pendingGroups);
}

static void waitAllCopies(Thread *thread) {
  thread->block->waitAllCopies(*thread);
}

static void replaceMapField(Thread *thread, uint32_t address, uint32_t field,
                            uint32_t dim, uint64_t value, uint32_t site) {
  TensorMapReplace replace{static_cast<TensorMapField>(field), dim, 0};
  thread->block->replaceMapField(*thread, address, replace, value, site);
}

static void acquireMap(Thread *thread, uint64_t address) {
  thread->block->acquireMap(*thread, address);
}

static void copyBox(Thread *thread, uint64_t destination, uint64_t map,
                    uint64_t barrier, const int32_t *coordinates, uint32_t rank,
                    uint32_t site) {
  thread->block->beginBulkCopy(*thread, destination, map, barrier,
                               llvm::ArrayRef(coordinates, rank), site);
}

static void initBarrier(Thread *thread, uint64_t address, uint32_t count,
                        uint32_t site) {
  thread->block->initBarrier(*thread, address, count, site);
}

static void arriveAtMBarrier(Thread *thread, uint64_t address, uint32_t count,
                             uint32_t bytes, uint32_t site) {
  thread->block->arriveAtMBarrier(*thread, address, count, bytes, site);
}

static void waitAtMBarrier(Thread *thread, uint64_t address, uint32_t parity,
                           uint32_t site) {
  thread->block->waitAtMBarrier(*thread, address, parity, site);
}

//===----------------------------------------------------------------------===//
// Operations of a warp or a block
//===----------------------------------------------------------------------===//

static void barrier(Thread *thread, uint32_t id, uint32_t count,
                    uint32_t site) {
  thread->block->arriveAtBarrier(*thread, id, count, /*wait=*/true, site);
}

static void barrierArrive(Thread *thread, uint32_t id, uint32_t count,
                          uint32_t site) {
  thread->block->arriveAtBarrier(*thread, id, count, /*wait=*/false, site);
}

static void runAligned(Thread *thread, Collective::Execute execute,
                       uint32_t variant, uint64_t address, uint32_t *words,
                       uint32_t site, uint64_t otherAddress = 0) {
  Collective call;
  call.execute = execute;
  call.site = site;
  call.variant = variant;
  call.address = address;
  call.otherAddress = otherAddress;
  call.words = words;
  thread->block->runCollective(*thread, call);
}

static void mma(Thread *thread, uint32_t kind, uint32_t *words, uint32_t site) {
  runAligned(thread, executeMma, kind, 0, words, site);
}

static void loadMatrix(Thread *thread, uint64_t address, uint32_t variant,
                       uint32_t *words, uint32_t site) {
  runAligned(thread, executeLdMatrix, variant, address, words, site);
}

static void storeMatrix(Thread *thread, uint64_t address, uint32_t variant,
                        uint32_t *words, uint32_t site) {
  runAligned(thread, executeStMatrix, variant, address, words, site);
}

static void multiplyWarpgroup(Thread *thread, uint64_t a, uint64_t b,
                              uint32_t form, uint32_t *words, uint32_t site) {
  runAligned(thread, executeWgmma, form, b, words, site, a);
}

static void fenceWarpgroup(Thread *thread, uint32_t site) {
  runAligned(thread, executeWgmmaFence, 0, 0, nullptr, site);
}

static void commitProducts(Thread *thread, uint32_t site) {
  runAligned(thread, executeWgmmaCommit, 0, 0, nullptr, site);
}

static void waitProducts(Thread *thread, uint32_t pending, uint32_t numSums,
                         uint32_t *words, uint32_t site) {
  runAligned(thread, executeWgmmaWait, pending, numSums, words, site);
}

static void publishMap(Thread *thread, uint64_t global, uint32_t shared,
                       uint32_t site) {
  runAligned(thread, executePublishMap, 0, shared, nullptr, site, global);
}

static void fenceProxy(Thread *thread) { thread->block->fenceProxy(*thread); }

static void runMasked(Thread *thread, Collective::Execute execute,
                      uint32_t variant, uint32_t mask, uint32_t *words,
                      uint32_t site) {
  Collective call;
  call.execute = execute;
  call.site = site;
  call.aligned = false;
  call.mask = mask;
  call.variant = variant;
  call.words = words;
  thread->block->runCollective(*thread, call);
}

static void warpSync(Thread *thread, uint32_t mask, uint32_t site) {
  runMasked(thread, executeWarpSync, 0, mask, nullptr, site);
}

static void shuffle(Thread *thread, uint32_t kind, uint32_t mask,
                    uint32_t *words, uint32_t site) {
  runMasked(thread, executeShuffle, kind, mask, words, site);
}

static void vote(Thread *thread, uint32_t kind, uint32_t mask, uint32_t *words,
                 uint32_t site) {
  runMasked(thread, executeVote, kind, mask, words, site);
}

static void redux(Thread *thread, uint32_t kind, uint32_t mask, uint32_t *words,
                  uint32_t site) {
  runMasked(thread, executeRedux, kind, mask, words, site);
}

//===----------------------------------------------------------------------===//
// Approximations: correctly rounded here, denormals flushed as there
//===----------------------------------------------------------------------===//

static float flush(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

static float ex2(float x) { return flush(std::exp2(flush(x))); }
static float lg2(float x) { return flush(std::log2(flush(x))); }
static float rcp(float x) { return flush(1.0f / flush(x)); }
static float rsqrt(float x) { return 1.0f / std::sqrt(flush(x)); }
static float squareRoot(float x) { return std::sqrt(flush(x)); }
static float hyperbolicTangent(float x) { return std::tanh(x); }

void linattn::emulator::forEachRuntimeFunction(
    llvm::function_ref<void(llvm::StringRef symbol, void *address)> visit) {
  auto add = [&](llvm::StringRef symbol, auto *function) {
    visit(symbol, reinterpret_cast<void *>(function));
  };
  add("linattn_emu_load", &load);
  add("linattn_emu_store", &store);
  add("linattn_emu_atomic", &atomic);
  add("linattn_emu_cp_async", &copyAsync);
  add("linattn_emu_cp_async_commit", &commitCopies);
  add("linattn_emu_cp_async_wait", &waitCopies);
  add("linattn_emu_cp_async_wait_all", &waitAllCopies);
  add("linattn_emu_map_replace", &replaceMapField);
  add("linattn_emu_map_publish", &publishMap);
  add("linattn_emu_map_acquire", &acquireMap);
  add("linattn_emu_copy_box", &copyBox);
  add("linattn_emu_mbarrier_init", &initBarrier);
  add("linattn_emu_mbarrier_arrive", &arriveAtMBarrier);
  add("linattn_emu_mbarrier_wait", &waitAtMBarrier);
  add("linattn_emu_barrier", &barrier);
  add("linattn_emu_barrier_arrive", &barrierArrive);
  add("linattn_emu_mma", &mma);
  add("linattn_emu_wgmma", &multiplyWarpgroup);
  add("linattn_emu_wgmma_fence", &fenceWarpgroup);
  add("linattn_emu_wgmma_commit", &commitProducts);
  add("linattn_emu_wgmma_wait", &waitProducts);
  add("linattn_emu_fence_proxy", &fenceProxy);
  add("linattn_emu_ldmatrix", &loadMatrix);
  add("linattn_emu_stmatrix", &storeMatrix);
  add("linattn_emu_warp_sync", &warpSync);
  add("linattn_emu_shfl", &shuffle);
  add("linattn_emu_vote", &vote);
  add("linattn_emu_redux", &redux);
  add("linattn_emu_ex2", &ex2);
  add("linattn_emu_lg2", &lg2);
  add("linattn_emu_rcp", &rcp);
  add("linattn_emu_rsqrt", &rsqrt);
  add("linattn_emu_sqrt", &squareRoot);
  add("linattn_emu_tanh", &hyperbolicTangent);
}
