//===- Block.cpp - A thread block: fibers, warps, barriers ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Collectives.h"

#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

using namespace linattn::emulator;

/// Frames of compiled kernels are a few kilobytes; untouched pages cost
/// nothing.
static constexpr size_t kStackBytes = 256 << 10;

void SyncPoint::release(Thread &thread) {
  for (size_t i = 0; i < seen.size(); ++i)
    seen[i] = std::max(seen[i], thread.clock.seen[i]);
  // Later actions of the thread are not part of the release.
  ++thread.clock.seen[thread.index];
}

void SyncPoint::acquire(Thread &thread) const {
  for (size_t i = 0; i < seen.size(); ++i)
    thread.clock.seen[i] = std::max(thread.clock.seen[i], seen[i]);
}

Block::Block(Kernel kernel, GlobalMemory &global, const LaunchOptions &options,
             uint64_t staticShared, Report &report)
    : kernel(kernel), global(global), report(report),
      rng(options.seed * 0x9e3779b97f4a7c15u + 1),
      shared(staticShared + options.sharedBytes),
      sharedShadow(shared.size(), /*acrossBlocks=*/false),
      threads(options.block.getVolume()),
      warps((threads.size() + kWarpSize - 1) / kWarpSize),
      clocks(threads.size() * ThreadClock::entries(threads.size())) {
  Dim3 size = options.block;
  for (auto [i, thread] : llvm::enumerate(threads)) {
    thread.block = this;
    thread.index = thread.clock.thread = i;
    thread.lane = i % kWarpSize;
    thread.warp = &warps[i / kWarpSize];
    thread.warp->lanes |= 1u << thread.lane;
    thread.clock.seen =
        clocks.data() + i * ThreadClock::entries(threads.size());
    thread.clock.fenced =
        thread.clock.seen + ThreadClock::slots(threads.size());
    thread.stack = std::make_unique<FiberStack>(kStackBytes);
    uint32_t values[kNumRegisters] = {unsigned(i) % size.x,
                                      unsigned(i) / size.x % size.y,
                                      unsigned(i) / (size.x * size.y),
                                      size.x,
                                      size.y,
                                      size.z,
                                      0,
                                      0,
                                      0,
                                      options.grid.x,
                                      options.grid.y,
                                      options.grid.z,
                                      thread.lane,
                                      unsigned(i) / kWarpSize,
                                      unsigned(warps.size()),
                                      unsigned(options.sharedBytes),
                                      unsigned(shared.size())};
    llvm::copy(values, thread.registers);
  }
  for (auto [i, warp] : llvm::enumerate(warps)) {
    warp.index = i;
    warp.threads = &threads[i * kWarpSize];
  }
}

/// Splitmix64: the same on every platform.
unsigned Block::random(unsigned bound) {
  uint64_t z = rng += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % bound;
}

//===----------------------------------------------------------------------===//
// Running a block
//===----------------------------------------------------------------------===//

void Block::prepare(Dim3 index) {
  // All ones, a NaN in every format, in case uninitialised memory is read.
  llvm::fill(shared, char(0xff));
  // All moments so far belong to earlier blocks.
  uint32_t base = lastMoment;
  llvm::fill(clocks, base);
  numDone = 0;
  stopped = false;
  barriers.clear();
  mbarriers.clear();
  bulkMoments.fill(base);
  for (Thread &thread : threads) {
    thread.clock.base = base;
    thread.clock.seen[thread.index] = base + 1;
    thread.registers[kCtaidX] = index.x;
    thread.registers[kCtaidY] = index.y;
    thread.registers[kCtaidZ] = index.z;
    thread.state = Thread::State::Ready;
    thread.copies.clear();
    thread.groupEnds.clear();
    thread.acquiredMaps.clear();
    thread.context.prepare(*thread.stack, &Block::startThread, &thread);
  }
  for (Warp &warp : warps) {
    warp.ready = warp.lanes;
    warp.waiting = warp.done = warp.logFull = 0;
    warp.sync.reset(threads.size());
    warp.async = {};
  }
}

bool Block::run(Dim3 index) {
  prepare(index);
  Warp &first = warps[random(warps.size())];
  FiberContext::switchContext(host, pickNext(first, random(kWarpSize)));
  for (Warp &warp : warps)
    flushLog(warp);
  if (!stopped && numDone < threads.size())
    diagnoseStandstill();
  if (numDone == threads.size()) {
    for (Warp &warp : warps)
      checkProducts(*this, warp);
    checkBulkCopies();
  }
  for (const Thread &thread : threads)
    lastMoment = std::max(lastMoment, thread.clock.now());
  for (uint32_t moment : bulkMoments)
    lastMoment = std::max(lastMoment, moment);
  return numDone == threads.size();
}

void Block::startThread(void *argument) {
  auto &thread = *static_cast<Thread *>(argument);
  Block &block = *thread.block;
  block.kernel(&thread, block.global.getValues().data());
  block.finishThread(thread);
  llvm_unreachable("a finished thread went on");
}

void Block::finishThread(Thread &thread) {
  Warp &warp = *thread.warp;
  uint32_t bit = 1u << thread.lane;
  thread.state = Thread::State::Done;
  ++numDone;
  warp.done |= bit;
  warp.ready &= ~bit;
  // Lanes that wait for a collective may have waited for this lane alone.
  for (uint32_t lanes = warp.waiting; lanes != 0; lanes &= lanes - 1)
    if (tryCollective(warp, warp.threads[llvm::countr_zero(lanes)]))
      break;
  suspend(thread);
}

void Block::suspend(Thread &thread) {
  ++report.fiberSwitches;
  FiberContext::switchContext(thread.context,
                              pickNext(*thread.warp, thread.lane + 1));
}

/// The first of `lanes` from lane `first` on, cyclically.
FiberContext &Block::enter(Warp &warp, uint32_t lanes, unsigned first) {
  first %= kWarpSize;
  unsigned lane =
      (llvm::countr_zero(llvm::rotr(lanes, first)) + first) % kWarpSize;
  return warp.threads[lane].context;
}

/// The lanes of a warp run until all of them wait. Then another warp runs,
/// chosen at random, starting from a random lane.
FiberContext &Block::pickNext(Warp &warp, unsigned lane) {
  if (uint32_t eager = warp.ready & ~warp.logFull)
    return enter(warp, eager, lane);
  if (warp.ready)
    return enter(warp, warp.ready, lane);
  unsigned numReady =
      llvm::count_if(warps, [](const Warp &other) { return other.ready != 0; });
  if (numReady == 0)
    return host;
  unsigned chosen = random(numReady);
  for (Warp &other : warps)
    if (other.ready != 0 && chosen-- == 0)
      return enter(other, other.ready, random(kWarpSize));
  llvm_unreachable("a ready warp was counted but not found");
}

void Block::stop(Thread &thread) {
  stopped = true;
  FiberContext::switchContext(thread.context, host);
  llvm_unreachable("a stopped block went on");
}

void Block::wake(Thread &thread) {
  thread.state = Thread::State::Ready;
  thread.warp->ready |= 1u << thread.lane;
}

//===----------------------------------------------------------------------===//
// Collective operations of a warp
//===----------------------------------------------------------------------===//

void Block::runCollective(Thread &thread, const Collective &collective) {
  Warp &warp = *thread.warp;
  uint32_t bit = 1u << thread.lane;
  thread.collective = collective;
  thread.site = collective.site;
  if (!(collective.mask & bit)) {
    note(Check::Divergence, thread, collective.site,
         "the lane is not in the mask of the lanes that take part");
    stop(thread);
  }
  if (collective.aligned && warp.lanes != ~0u) {
    note(Check::Divergence, thread, collective.site,
         "the warp has only " + llvm::Twine(llvm::popcount(warp.lanes)) +
             " lanes");
    stop(thread);
  }
  thread.state = Thread::State::AtCollective;
  warp.waiting |= bit;
  warp.ready &= ~bit;
  if (!tryCollective(warp, thread))
    suspend(thread);
}

/// Executes the operation at which `thread` waits, if all its participants have
/// arrived.
bool Block::tryCollective(Warp &warp, Thread &thread) {
  const Collective &collective = thread.collective;
  uint32_t lanes = collective.mask & warp.lanes;
  if (!collective.aligned)
    lanes &= ~warp.done;
  if ((warp.waiting & lanes) != lanes)
    return false;
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Thread &other = warp.threads[llvm::countr_zero(rest)];
    if (collective.agreesWith(other.collective))
      continue;
    note(Check::Divergence, thread, collective.site,
         "while lane " + llvm::Twine(other.lane) + " of its warp is at " +
             report.sites[other.site].location +
             (collective.mask != other.collective.mask ? " with another mask"
                                                       : ""));
    stop(thread);
  }
  flushLog(warp);
  collective.execute(*this, warp, lanes);
  warp.waiting &= ~lanes;
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    wake(warp.threads[llvm::countr_zero(rest)]);
  return true;
}

//===----------------------------------------------------------------------===//
// Barriers of a block
//===----------------------------------------------------------------------===//

void Block::arriveAtBarrier(Thread &thread, unsigned id, unsigned count,
                            bool wait, uint32_t site) {
  Barrier &barrier = barriers[id];
  unsigned expected = count == 0 ? threads.size() : count;
  thread.site = site;
  if (barrier.arrived == 0) {
    barrier.expected = expected;
    barrier.sync.reset(threads.size());
  } else if (barrier.expected != expected) {
    note(Check::Deadlock, thread, site,
         "barrier " + llvm::Twine(id) + " for " + llvm::Twine(expected) +
             " threads, but others came to it for " +
             llvm::Twine(barrier.expected));
    stop(thread);
  }
  barrier.sync.release(thread);
  ++barrier.arrived;
  if (wait) {
    thread.state = Thread::State::AtBarrier;
    thread.warp->ready &= ~(1u << thread.lane);
    barrier.waiting.push_back(&thread);
  }
  if (barrier.arrived == barrier.expected)
    completeBarrier(barrier);
  if (wait && thread.state == Thread::State::AtBarrier)
    suspend(thread);
}

void Block::completeBarrier(Barrier &barrier) {
  checkBarrierSites(barrier);
  for (Thread *thread : barrier.waiting) {
    barrier.sync.acquire(*thread);
    flushLog(*thread->warp);
    wake(*thread);
  }
  barrier.waiting.clear();
  barrier.arrived = 0;
}

/// A warp arrives as a unit, so that its lanes must arrive by the same
/// operation.
void Block::checkBarrierSites(const Barrier &barrier) {
  llvm::SmallVector<const Thread *, 32> firsts(warps.size(), nullptr);
  for (const Thread *thread : barrier.waiting) {
    const Thread *&first = firsts[thread->warp->index];
    if (!first)
      first = thread;
    else if (first->site != thread->site)
      note(Check::Divergence, *thread, thread->site,
           "while lane " + llvm::Twine(first->lane) + " of its warp came by " +
               report.sites[first->site].location);
  }
}

/// Reports why no thread can run before all are done.
void Block::diagnoseStandstill() {
  const Thread *collective = nullptr, *waiting = nullptr;
  for (const Thread &thread : threads) {
    if (thread.state == Thread::State::AtCollective && !collective)
      collective = &thread;
    if (thread.state != Thread::State::Done && !waiting)
      waiting = &thread;
  }
  const Thread &stuck = collective ? *collective : *waiting;
  // Prefers a thread of the same warp at another operation, as an example.
  std::string other = "all others wait there too";
  auto describeOther = [&](const Thread &thread, llvm::StringRef who) {
    if (thread.state == Thread::State::Done)
      other =
          ("while " + who + llvm::Twine(thread.index) + " has returned").str();
    else if (thread.site != stuck.site)
      other = ("while " + who + llvm::Twine(thread.index) + " waits at " +
               report.sites[thread.site].location)
                  .str();
  };
  for (const Thread &thread : llvm::reverse(threads))
    if (!collective || thread.warp == stuck.warp)
      describeOther(thread, "thread ");
  if (stuck.state == Thread::State::AtMBarrier)
    other = describeMissing(stuck);
  note(collective ? Check::Divergence : Check::Deadlock, stuck, stuck.site,
       other);
}

//===----------------------------------------------------------------------===//
// Findings
//===----------------------------------------------------------------------===//

void Block::note(Check check, const Thread &thread, uint32_t site,
                 const llvm::Twine &what) {
  Finding &finding = report[check];
  if (++finding.count > 1)
    return;
  const uint32_t *r = thread.registers;
  auto triple = [](uint32_t x, uint32_t y, uint32_t z) {
    return ("(" + llvm::Twine(x) + ", " + llvm::Twine(y) + ", " +
            llvm::Twine(z) + ")")
        .str();
  };
  finding.example = (report.sites[site].location + ", block " +
                     triple(r[kCtaidX], r[kCtaidY], r[kCtaidZ]) + " thread " +
                     triple(r[kTidX], r[kTidY], r[kTidZ]) + ": " + what)
                        .str();
}
