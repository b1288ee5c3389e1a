//===- Collectives.cpp - Operations of a whole warp -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstring>

using namespace linattn::emulator;

namespace {
/// The lanes of a mask, from the lowest on.
class Lanes {
public:
  Lanes(Warp &warp, uint32_t mask) : warp(warp), mask(mask) {}

  template <typename Visit>
  void forEach(Visit visit) const {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
      visit(warp.threads[llvm::countr_zero(rest)]);
  }
  Thread &first() const { return warp.threads[llvm::countr_zero(mask)]; }

private:
  Warp &warp;
  uint32_t mask;
};
} // namespace

void linattn::emulator::checkAddresses(Block &block, Warp &warp,
                                       llvm::StringRef what) {
  const Collective &call = warp.threads[0].collective;
  for (unsigned lane = 1; lane < kWarpSize; ++lane) {
    const Collective &other = warp.threads[lane].collective;
    if (other.address != call.address ||
        other.otherAddress != call.otherAddress)
      block.note(Check::Divergence, warp.threads[lane], call.site,
                 "its " + what + " differ from those of lane 0");
  }
}

//===----------------------------------------------------------------------===//
// Matrices in shared memory
//===----------------------------------------------------------------------===//

namespace {
struct Matrix {
  uint16_t elements[8][8];
};
} // namespace

/// The address of row r of matrix m comes from lane 8 m + r: 16 bytes, served
/// together.
static char *accessRow(Block &block, Thread &lane, AccessKind kind) {
  const Collective &call = lane.collective;
  if (call.address % 16 != 0)
    block.note(Check::Misaligned, lane, call.site,
               "a row of a matrix at " + Block::describe(call.address) +
                   ", which is not a multiple of 16");
  return block.accessShared(lane, kind, call.address, 16, call.site);
}

static void countMatrixTraffic(Block &block, Warp &warp, unsigned matrix,
                               uint32_t site) {
  uint64_t rows[8];
  for (unsigned row = 0; row < 8; ++row)
    rows[row] = warp.threads[8 * matrix + row].collective.address;
  Traffic &traffic = block.getTraffic(site);
  ++traffic.sharedPhases;
  traffic.sharedCycles += countBankCycles(rows, 16);
}

/// Calls visit(row, column, lane, half) for every element in the registers.
/// Each lane holds two adjacent elements of a row.
template <typename Visit>
static void forEachElement(bool transposed, Visit visit) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (unsigned half = 0; half < 2; ++half) {
      unsigned row = lane / 4, column = lane % 4 * 2 + half;
      if (transposed)
        std::swap(row, column);
      visit(row, column, lane, half);
    }
}

void linattn::emulator::executeLdMatrix(Block &block, Warp &warp,
                                        uint32_t lanes) {
  const Collective call = warp.threads[0].collective;
  for (unsigned m = 0; m < call.variant % kTransposed; ++m) {
    Matrix matrix;
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(matrix.elements[row],
                  accessRow(block, warp.threads[8 * m + row], AccessKind::Read),
                  16);
    countMatrixTraffic(block, warp, m, call.site);
    forEachElement(
        call.variant & kTransposed,
        [&](unsigned row, unsigned column, unsigned lane, unsigned half) {
          uint32_t &word = warp.threads[lane].collective.words[m];
          uint32_t element = matrix.elements[row][column];
          word = half == 0 ? element : word | element << 16;
        });
  }
}

void linattn::emulator::executeStMatrix(Block &block, Warp &warp,
                                        uint32_t lanes) {
  const Collective call = warp.threads[0].collective;
  for (unsigned m = 0; m < call.variant % kTransposed; ++m) {
    Matrix matrix;
    forEachElement(
        call.variant & kTransposed,
        [&](unsigned row, unsigned column, unsigned lane, unsigned half) {
          uint32_t word = warp.threads[lane].collective.words[m];
          matrix.elements[row][column] = word >> (16 * half);
        });
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(
          accessRow(block, warp.threads[8 * m + row], AccessKind::Write),
          matrix.elements[row], 16);
    countMatrixTraffic(block, warp, m, call.site);
  }
}

//===----------------------------------------------------------------------===//
// Values between lanes
//===----------------------------------------------------------------------===//

/// The lane that `lane` gets its value from, and whether it is within bounds
/// (PTX ISA, shfl.sync: c holds the clamp and the mask of the segments).
static std::pair<unsigned, bool> getSourceLane(ShuffleKind kind, unsigned lane,
                                               uint32_t offset, uint32_t c) {
  unsigned b = offset & 31, clamp = c & 31, segment = c >> 8 & 31;
  unsigned maxLane = (lane & segment) | (clamp & ~segment);
  unsigned minLane = lane & segment;
  int source = lane;
  bool valid = true;
  switch (kind) {
  case ShuffleKind::Up:
    source = int(lane) - int(b);
    valid = source >= int(maxLane);
    break;
  case ShuffleKind::Down:
    source = lane + b;
    valid = source <= int(maxLane);
    break;
  case ShuffleKind::Bfly:
    source = lane ^ b;
    valid = source <= int(maxLane);
    break;
  case ShuffleKind::Idx:
    source = minLane | (b & ~segment);
    valid = source <= int(maxLane);
    break;
  }
  return {valid ? source : lane, valid};
}

void linattn::emulator::executeShuffle(Block &block, Warp &warp,
                                       uint32_t lanes) {
  uint32_t values[kWarpSize] = {};
  Lanes all(warp, lanes);
  all.forEach(
      [&](Thread &lane) { values[lane.lane] = lane.collective.words[0]; });
  all.forEach([&](Thread &lane) {
    uint32_t *words = lane.collective.words;
    auto [source, valid] =
        getSourceLane(static_cast<ShuffleKind>(lane.collective.variant),
                      lane.lane, words[1], words[2]);
    if (!(lanes >> source & 1))
      block.note(Check::Divergence, lane, lane.collective.site,
                 "the value comes from lane " + llvm::Twine(source) +
                     ", which does not take part");
    words[0] = values[source];
    words[1] = valid;
  });
}

void linattn::emulator::executeVote(Block &block, Warp &warp, uint32_t lanes) {
  uint32_t ballot = 0;
  Lanes all(warp, lanes);
  all.forEach([&](Thread &lane) {
    if (lane.collective.words[0] & 1)
      ballot |= 1u << lane.lane;
  });
  uint32_t result = 0;
  switch (static_cast<VoteKind>(all.first().collective.variant)) {
  case VoteKind::Any:
    result = ballot != 0;
    break;
  case VoteKind::All:
    result = ballot == lanes;
    break;
  case VoteKind::Ballot:
    result = ballot;
    break;
  case VoteKind::Uniform:
    result = ballot == lanes || ballot == 0;
    break;
  }
  all.forEach([&](Thread &lane) { lane.collective.words[0] = result; });
}

static uint32_t reduce(ReduxKind kind, uint32_t a, uint32_t b) {
  switch (kind) {
  case ReduxKind::Add:
    return a + b;
  case ReduxKind::And:
    return a & b;
  case ReduxKind::Or:
    return a | b;
  case ReduxKind::Xor:
    return a ^ b;
  case ReduxKind::Max:
    return std::max<int32_t>(a, b);
  case ReduxKind::Min:
    return std::min<int32_t>(a, b);
  case ReduxKind::UMax:
    return std::max(a, b);
  case ReduxKind::UMin:
    return std::min(a, b);
  }
  llvm_unreachable("unknown reduction");
}

void linattn::emulator::executeRedux(Block &block, Warp &warp, uint32_t lanes) {
  Lanes all(warp, lanes);
  auto kind = static_cast<ReduxKind>(all.first().collective.variant);
  uint32_t result = 0;
  bool isFirst = true;
  all.forEach([&](Thread &lane) {
    uint32_t value = lane.collective.words[0];
    result = isFirst ? value : reduce(kind, result, value);
    isFirst = false;
  });
  all.forEach([&](Thread &lane) { lane.collective.words[0] = result; });
}

void linattn::emulator::executeWarpSync(Block &block, Warp &warp,
                                        uint32_t lanes) {
  // The participants must not see what other lanes did at another time.
  warp.sync.clear();
  Lanes all(warp, lanes);
  all.forEach([&](Thread &lane) { warp.sync.release(lane); });
  all.forEach([&](Thread &lane) { warp.sync.acquire(lane); });
}
