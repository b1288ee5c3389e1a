//===- LaunchRecord.h - How host code describes a launch --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_LAUNCHRECORD_H
#define LINATTN_LIB_EMULATOR_LAUNCHRECORD_H

#include <cstdint>

namespace linattn::emulator {

/// void (const char *text, const char *kernel, const LaunchRecord *record)
inline constexpr const char *kLaunchSymbol = "linattn_emulate_launch";

struct LaunchArgument {
  enum class Kind : int64_t { I32, I64, F16, BF16, F32, F64, Buffer };
  int64_t kind, value;
  int64_t bytes; ///< Of a buffer, from its first element to its last.
};

/// An array of 64-bit numbers in the layout of `linattn-emulate-launches`.
struct LaunchRecord {
  int64_t grid[3], block[3];
  int64_t shared, numArguments;
  // LaunchArgument arguments[numArguments];
};

inline constexpr int64_t kRecordFields = 8, kArgumentFields = 3;
static_assert(sizeof(LaunchRecord) == kRecordFields * sizeof(int64_t));
static_assert(sizeof(LaunchArgument) == kArgumentFields * sizeof(int64_t));

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_LAUNCHRECORD_H
