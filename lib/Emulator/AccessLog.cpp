//===- AccessLog.cpp - Accesses of a warp, as hardware groups them --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AccessLog.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <map>

using namespace linattn::emulator;

/// The distinct units of `size` bytes that the accesses touch, in order.
static llvm::SmallVector<uint64_t, 2 * kWarpSize>
collectUnits(llvm::ArrayRef<uint64_t> addresses, unsigned bytes,
             unsigned size) {
  llvm::SmallVector<uint64_t, 2 * kWarpSize> units;
  for (uint64_t address : addresses)
    for (uint64_t unit = address / size; unit <= (address + bytes - 1) / size;
         ++unit)
      if (units.empty() || units.back() != unit)
        units.push_back(unit);
  if (!llvm::is_sorted(units))
    llvm::sort(units);
  units.erase(llvm::unique(units), units.end());
  return units;
}

unsigned linattn::emulator::countBankCycles(llvm::ArrayRef<uint64_t> addresses,
                                            unsigned bytes) {
  // A word that several lanes read is broadcast, so that only distinct words
  // count.
  std::array<unsigned, kBanks> words{};
  unsigned cycles = 0;
  for (uint64_t word : collectUnits(addresses, bytes, 4))
    cycles = std::max(cycles, ++words[word % kBanks]);
  return cycles;
}

unsigned linattn::emulator::countSectors(llvm::ArrayRef<uint64_t> addresses,
                                         unsigned bytes) {
  return collectUnits(addresses, bytes, kSectorBytes).size();
}

/// Shared memory serves 128 bytes at a time: all lanes, a half or a quarter of
/// a warp, depending on the size of the accesses.
void AccessLog::count(const Entry &like, llvm::ArrayRef<uint64_t> addresses,
                      uint32_t activeLanes, Traffic &traffic) {
  unsigned lanesPerPhase = like.space == Space::Global
                               ? kWarpSize
                               : 128 / std::max<unsigned>(4, like.bytes);
  for (unsigned first = 0; first < kWarpSize; first += lanesPerPhase) {
    llvm::SmallVector<uint64_t, kWarpSize> active;
    for (unsigned lane = first; lane < first + lanesPerPhase; ++lane)
      if (activeLanes >> lane & 1)
        active.push_back(addresses[lane]);
    if (active.empty())
      continue;
    if (like.space == Space::Shared) {
      ++traffic.sharedPhases;
      traffic.sharedCycles += countBankCycles(active, like.bytes);
    } else if (like.isWrite) {
      traffic.sectorsWritten += countSectors(active, like.bytes);
    } else {
      traffic.sectorsRead += countSectors(active, like.bytes);
    }
  }
}

/// Whether all active lanes executed the same operations in one order.
bool AccessLog::lanesAgree() const {
  const std::vector<Entry> *first = nullptr;
  for (const std::vector<Entry> &lane : lanes) {
    if (lane.empty())
      continue;
    if (!first) {
      first = &lane;
      continue;
    }
    if (lane.size() != first->size())
      return false;
    for (auto [a, b] : llvm::zip_equal(lane, *first))
      if (a.site != b.site || a.bytes != b.bytes || a.space != b.space)
        return false;
  }
  return true;
}

void AccessLog::flushAligned(std::vector<SiteTraffic> &sites) {
  uint32_t active = 0;
  size_t size = 0;
  const std::vector<Entry> *like = nullptr;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    if (!lanes[lane].empty()) {
      active |= 1u << lane;
      like = &lanes[lane];
      size = like->size();
    }
  std::array<uint64_t, kWarpSize> addresses{};
  for (size_t i = 0; i < size; ++i) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      if (active >> lane & 1)
        addresses[lane] = lanes[lane][i].address;
    const Entry &entry = (*like)[i];
    count(entry, addresses, active, sites[entry.site].traffic);
  }
}

void AccessLog::flushScattered(std::vector<SiteTraffic> &sites) {
  struct Group {
    Entry like;
    std::array<uint64_t, kWarpSize> addresses;
    uint32_t active = 0;
  };
  // The operation, the piece of the access, and its number of earlier
  // executions.
  using Operation = std::tuple<uint32_t, uint16_t, Space>;
  std::map<std::pair<Operation, uint32_t>, Group> groups;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    std::map<Operation, uint32_t> executed;
    for (const Entry &entry : lanes[lane]) {
      Operation operation(entry.site, entry.bytes, entry.space);
      Group &group = groups[{operation, executed[operation]++}];
      group.like = entry;
      group.addresses[lane] = entry.address;
      group.active |= 1u << lane;
    }
  }
  for (auto &[key, group] : groups)
    count(group.like, group.addresses, group.active,
          sites[group.like.site].traffic);
}

void AccessLog::flush(std::vector<SiteTraffic> &sites) {
  if (empty)
    return;
  if (lanesAgree())
    flushAligned(sites);
  else
    flushScattered(sites);
  for (std::vector<Entry> &lane : lanes)
    lane.clear();
  empty = true;
}
