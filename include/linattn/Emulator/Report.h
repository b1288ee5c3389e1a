//===- Report.h - Findings of an emulated launch ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_EMULATOR_REPORT_H
#define LINATTN_EMULATOR_REPORT_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace linattn::emulator {

/// The errors of a kernel that the emulator finds, each counted by itself.
enum class Check : unsigned {
  SharedRace,        ///< Shared memory used by two threads without a barrier.
  GlobalRace,        ///< The same in global memory, blocks included.
  SharedOutOfBounds, ///< Beyond the block's shared memory.
  GlobalOutOfBounds, ///< Outside every argument's buffer.
  ReadOnlyWrite,     ///< Written to a buffer passed for reading.
  UninitializedRead, ///< Shared memory that no thread of the block wrote.
  EarlyRead,         ///< Read of a copy that has not arrived.
  Misaligned,        ///< An access off the alignment that the op promises.
  Divergence,        ///< Lanes of a warp at different collective operations.
  Deadlock,          ///< Threads that wait for others that never come.
  MissingFence,      ///< A proxy uses what no fence has made known to it.
  BadTensorMap,      ///< A copy by a tensor map that makes no sense.
};
inline constexpr unsigned kNumChecks = 12;

/// "shared-race", "global-race" and so on.
const char *getName(Check check);

struct Finding {
  uint64_t count = 0;
  std::string example; ///< The first: location, block, thread, address.
};

/// Memory traffic as the hardware would see it: accesses of the lanes of a warp
/// count together.
struct Traffic {
  uint64_t sharedPhases = 0; ///< Groups of lanes that shared memory serves.
  uint64_t sharedCycles = 0; ///< Cycles for them: more with bank conflicts.
  uint64_t sectorsRead = 0;  ///< 32-byte sectors of global memory.
  uint64_t sectorsWritten = 0;

  Traffic &operator+=(const Traffic &other);
  /// 1 without bank conflicts; 0 without accesses.
  double getCyclesPerPhase() const;
};

/// Traffic of one operation of the kernel.
struct SiteTraffic {
  std::string location;
  Traffic traffic;
};

struct Report {
  std::array<Finding, kNumChecks> findings;
  Traffic traffic;
  /// Every operation that touched memory, in the order of the kernel.
  std::vector<SiteTraffic> sites;
  /// Bytes of the buffers that were read or written at least once.
  uint64_t uniqueBytesRead = 0, uniqueBytesWritten = 0;
  uint64_t fiberSwitches = 0;
  /// False if a block stopped early, at a divergence or a deadlock.
  bool finished = true;

  const Finding &operator[](Check check) const {
    return findings[static_cast<unsigned>(check)];
  }
  Finding &operator[](Check check) {
    return findings[static_cast<unsigned>(check)];
  }
  /// Finished, without findings.
  bool isClean() const;
  /// A line per kind of finding, with its first example; empty if clean.
  std::string describeFindings() const;
  /// Traffic, in a few lines.
  std::string describeTraffic() const;
};

} // namespace linattn::emulator

#endif // LINATTN_EMULATOR_REPORT_H
