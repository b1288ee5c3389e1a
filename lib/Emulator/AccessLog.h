//===- AccessLog.h - Accesses of a warp, as hardware groups them *- C++ ---===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_ACCESSLOG_H
#define LINATTN_LIB_EMULATOR_ACCESSLOG_H

#include "linattn/Emulator/Report.h"
#include "llvm/ADT/ArrayRef.h"
#include <array>
#include <cstdint>
#include <vector>

namespace linattn::emulator {

inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kBanks = 32;
inline constexpr unsigned kSectorBytes = 32;

/// The cycles that the 32 four-byte banks need when each lane accesses `bytes`
/// at its address: the largest number of distinct words in one bank.
unsigned countBankCycles(llvm::ArrayRef<uint64_t> addresses, unsigned bytes);

/// The number of distinct 32-byte sectors that the accesses touch.
unsigned countSectors(llvm::ArrayRef<uint64_t> addresses, unsigned bytes);

/// The emulator runs lanes one after another, while hardware issues an access
/// for a whole warp. The log keeps each lane's accesses until the warp
/// converges, and counts them together: the n-th execution of an operation in
/// one lane with the n-th in the others.
class AccessLog {
public:
  enum class Space : uint8_t { Shared, Global };

  void add(unsigned lane, uint32_t site, Space space, bool isWrite,
           uint64_t address, unsigned bytes) {
    lanes[lane].push_back(
        {address, site, static_cast<uint16_t>(bytes), space, isWrite});
    empty = false;
  }
  /// A lane with this many accesses should let others catch up.
  bool isFull(unsigned lane) const { return lanes[lane].size() >= kCapacity; }

  /// Adds the logged accesses to the operations' traffic, and clears the log.
  void flush(std::vector<SiteTraffic> &sites);

private:
  static constexpr size_t kCapacity = 4096;

  struct Entry {
    uint64_t address;
    uint32_t site;
    uint16_t bytes;
    Space space;
    bool isWrite;
  };
  void count(const Entry &like, llvm::ArrayRef<uint64_t> addresses,
             uint32_t activeLanes, Traffic &traffic);
  bool lanesAgree() const;
  void flushAligned(std::vector<SiteTraffic> &sites);
  void flushScattered(std::vector<SiteTraffic> &sites);

  std::array<std::vector<Entry>, kWarpSize> lanes;
  bool empty = true;
};

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_ACCESSLOG_H
