//===- BulkCopies.cpp - A thread block: bulk copies and their barriers ----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Collectives.h"

#include <cstring>

using namespace linattn;
using namespace linattn::emulator;

static void merge(std::vector<uint32_t> &into, const uint32_t *from) {
  for (size_t i = 0; i < into.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

void Block::replaceMapField(Thread &thread, uint64_t address,
                            const TensorMapReplace &field, uint64_t value,
                            uint32_t site) {
  if (address % tensor_map::bytes)
    note(Check::Misaligned, thread, site,
         "changes a tensor map at " + describe(address) +
             ", which is not a multiple of 128");
  // The instruction counts as one access to the whole map.
  char *data =
      accessShared(thread, AccessKind::Read, address, tensor_map::bytes, site);
  TensorMapBits map;
  std::memcpy(&map, data, sizeof(map));
  map.set(field, value);
  data =
      accessShared(thread, AccessKind::Write, address, tensor_map::bytes, site);
  std::memcpy(data, &map, sizeof(map));
}

void Block::publishMap(Thread &thread, uint64_t global, uint64_t shared,
                       uint32_t site) {
  if (global % tensor_map::bytes || shared % tensor_map::bytes)
    note(Check::Misaligned, thread, site,
         "copies a tensor map from " + describe(shared) + " to " +
             describe(global) + ", not both multiples of 128");
  char *from =
      accessShared(thread, AccessKind::Read, shared, tensor_map::bytes, site);
  void *to =
      accessGlobal(thread, AccessKind::Write, global, tensor_map::bytes, site);
  std::memcpy(to, from, tensor_map::bytes);
  ++mapVersions[global];
}

void Block::acquireMap(Thread &thread, uint64_t address) {
  thread.acquiredMaps[address] = mapVersions[address];
}

std::optional<TensorMapBits> Block::readMap(Thread &thread, uint64_t address,
                                            unsigned numCoordinates,
                                            uint32_t site) {
  void *data =
      accessGlobal(thread, AccessKind::Read, address, tensor_map::bytes, site);
  auto acquired = thread.acquiredMaps.find(address);
  if (acquired == thread.acquiredMaps.end() ||
      acquired->second != mapVersions[address])
    note(Check::MissingFence, thread, site,
         "uses the tensor map at " + describe(address) +
             " with no fence.proxy.tensormap since it was written");
  TensorMapBits map;
  std::memcpy(&map, data, sizeof(map));
  std::string why = map.whyNot(numCoordinates);
  if (why.empty())
    return map;
  note(Check::BadTensorMap, thread, site, "its tensor map " + why);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

MBarrier *Block::findBarrier(Thread &thread, uint64_t address, uint32_t site) {
  auto found = mbarriers.find(address);
  if (found == mbarriers.end()) {
    note(Check::UninitializedRead, thread, site,
         "uses an mbarrier at " + describe(address) +
             " that was not initialised");
    stop(thread);
  }
  accessShared(thread, AccessKind::Atomic, address, kMBarrierBytes, site);
  return &found->second;
}

void Block::initBarrier(Thread &thread, uint64_t address, uint32_t count,
                        uint32_t site) {
  if (address % kMBarrierBytes)
    note(Check::Misaligned, thread, site,
         "makes an mbarrier at " + describe(address) +
             ", which is not a multiple of 8");
  accessShared(thread, AccessKind::Write, address, kMBarrierBytes, site);
  unsigned slot = threads.size() + mbarriers.size() % ThreadClock::kBulkSlots;
  MBarrier &barrier = mbarriers[address];
  barrier = MBarrier();
  barrier.slot = slot;
  barrier.expected = barrier.pending = count;
  barrier.initThread = thread.index;
  barrier.initMoment = thread.clock.now();
  barrier.arriving.assign(ThreadClock::entries(threads.size()), 0);
  barrier.complete = barrier.arriving;
}

/// Completes the phase once all arrivals and bytes have come.
void Block::tryPhase(MBarrier &barrier) {
  if (barrier.pending != 0 || barrier.transactions != 0)
    return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.complete = barrier.arriving;
  llvm::erase_if(barrier.waiting, [&](const MBarrier::Waiter &waiter) {
    if (!barrier.isComplete(waiter.parity))
      return false;
    acquire(*waiter.thread, barrier);
    wake(*waiter.thread);
    return true;
  });
}

void Block::acquire(Thread &thread, const MBarrier &barrier) {
  uint32_t *seen = thread.clock.seen;
  for (size_t i = 0; i < barrier.complete.size(); ++i)
    seen[i] = std::max(seen[i], barrier.complete[i]);
}

void Block::arriveAtMBarrier(Thread &thread, uint64_t address, uint32_t count,
                             uint32_t bytes, uint32_t site) {
  MBarrier &barrier = *findBarrier(thread, address, site);
  merge(barrier.arriving, thread.clock.seen);
  // Later actions of the thread are not part of the release.
  ++thread.clock.seen[thread.index];
  barrier.transactions += bytes;
  if (count > barrier.pending) {
    note(Check::Deadlock, thread, site,
         "comes to an mbarrier at " + describe(address) +
             " that expects no further arrival in this phase");
    stop(thread);
  }
  barrier.pending -= count;
  if (!barrier.waiting.empty())
    deliver(barrier);
  tryPhase(barrier);
}

void Block::waitAtMBarrier(Thread &thread, uint64_t address, uint32_t parity,
                           uint32_t site) {
  MBarrier &barrier = *findBarrier(thread, address, site);
  thread.site = site;
  if (!barrier.isComplete(parity)) {
    deliver(barrier);
    tryPhase(barrier);
  }
  if (barrier.isComplete(parity))
    return acquire(thread, barrier);
  thread.state = Thread::State::AtMBarrier;
  thread.warp->ready &= ~(1u << thread.lane);
  barrier.waiting.push_back({&thread, parity});
  suspend(thread);
}

/// Describes the arrivals and bytes that the barrier at which `thread` waits is
/// missing.
std::string Block::describeMissing(const Thread &thread) const {
  for (const auto &[address, barrier] : mbarriers)
    for (const MBarrier::Waiter &waiter : barrier.waiting)
      if (waiter.thread == &thread)
        return "waits at an mbarrier at " + describe(address) + " that lacks " +
               std::to_string(barrier.pending) + " arrivals and " +
               std::to_string(barrier.transactions) + " bytes";
  return {};
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The clock of a copy, which has seen everything that its issuing thread has
/// seen.
static ThreadClock clockOf(const Thread &thread, unsigned slot,
                           std::vector<uint32_t> &seen, uint32_t moment) {
  ThreadClock clock = thread.clock;
  clock.thread = slot;
  clock.seen = seen.data();
  clock.fenced = clock.seen + seen.size() / 2;
  clock.seen[slot] = clock.fenced[slot] = moment;
  return clock;
}

void Block::beginBulkCopy(Thread &thread, uint64_t destination,
                          uint64_t mapAddress, uint64_t barrierAddress,
                          llvm::ArrayRef<int32_t> coordinates, uint32_t site) {
  MBarrier &barrier = *findBarrier(thread, barrierAddress, site);
  if (barrier.initMoment > thread.clock.fenced[barrier.initThread])
    note(Check::MissingFence, thread, site,
         "uses an mbarrier that thread " + llvm::Twine(barrier.initThread) +
             " made with no fence.proxy.async since");
  auto map = readMap(thread, mapAddress, coordinates.size(), site);
  if (!map)
    return;
  if (destination % 128)
    note(Check::Misaligned, thread, site,
         "copies a box to " + describe(destination) +
             ", which is not a multiple of 128");
  BulkCopy copy{destination, site, *map, {}, {}};
  Traffic &traffic = getTraffic(site);
  for (const BoxRow &row : listRows(*map, coordinates)) {
    const char *data = nullptr;
    if (row.bytes > 0) {
      data = static_cast<const char *>(
          accessGlobal(thread, AccessKind::Read, row.source, row.bytes, site));
      traffic.sectorsRead += countSectors(row.source, row.bytes);
    }
    copy.rows.push_back({row, data});
  }
  uint64_t offset = destination - kSharedBase, bytes = map->boxBytes();
  if (offset > shared.size() || bytes > shared.size() - offset) {
    note(Check::SharedOutOfBounds, thread, site,
         "copies " + llvm::Twine(bytes) + " bytes to " + describe(destination) +
             " of " + llvm::Twine(shared.size()));
    return;
  }
  // Every row of banks is written once, for any swizzle.
  traffic.sharedPhases += bytes / 128;
  traffic.sharedCycles += bytes / 128;
  copy.seen.assign(thread.clock.seen,
                   thread.clock.seen + ThreadClock::entries(threads.size()));
  uint32_t &moment = bulkMoments[barrier.slot - threads.size()];
  ThreadClock clock = clockOf(thread, barrier.slot, copy.seen, ++moment);
  Shadow::Result result = sharedShadow.beginBulkCopy(clock, offset, bytes);
  if (result.conflict || result.pending || result.unfenced)
    noteShared(thread, result, /*isWrite=*/true, site);
  barrier.copies.push_back(std::move(copy));
  if (barrier.waiting.empty())
    return;
  deliver(barrier);
  tryPhase(barrier);
}

/// Completes all copies of a barrier.
void Block::deliver(MBarrier &barrier) {
  for (BulkCopy &copy : barrier.copies) {
    uint64_t rowBytes = copy.map.rowBytes(), bytes = copy.map.boxBytes();
    std::vector<char> row(rowBytes);
    for (size_t i = 0; i < copy.rows.size(); ++i) {
      llvm::fill(row, 0);
      const auto &[part, data] = copy.rows[i];
      if (data)
        std::memcpy(row.data() + part.before, data, part.bytes);
      for (uint64_t unit = 0; unit < rowBytes; unit += 16) {
        uint64_t to =
            copy.map.place(copy.destination, i * rowBytes + unit) - kSharedBase;
        // The swizzle may exceed a box that is not aligned to it.
        if (to + 16 <= shared.size())
          std::memcpy(shared.data() + to, row.data() + unit, 16);
      }
    }
    uint32_t &moment = bulkMoments[barrier.slot - threads.size()];
    ThreadClock clock =
        clockOf(threads.front(), barrier.slot, copy.seen, ++moment);
    sharedShadow.completeCopy(clock, copy.destination - kSharedBase, bytes);
    merge(barrier.arriving, copy.seen.data());
    barrier.transactions -= bytes;
  }
  barrier.copies.clear();
}

void Block::checkBulkCopies() {
  for (const auto &[address, barrier] : mbarriers)
    for (const BulkCopy &copy : barrier.copies)
      note(Check::EarlyRead, threads.front(), copy.site,
           "was under way when the block ended: no thread waited for it");
}

void linattn::emulator::executePublishMap(Block &block, Warp &warp,
                                          uint32_t lanes) {
  Thread &first = warp.threads[0];
  const Collective &call = first.collective;
  checkAddresses(block, warp, "addresses");
  block.publishMap(first, call.otherAddress, call.address, call.site);
}
