//===- AttentionCase.h - Attention without scans, emulated ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_GPU_ATTENTIONCASE_H
#define LINATTN_TEST_UNIT_GPU_ATTENTIONCASE_H

#include "linattn/Emulator/LaunchLog.h"
#include "linattn/Reference/Reference.h"
#include "linattn/Support/Arithmetic.h"
#include "linattn/Support/DType.h"
#include <algorithm>
#include <ostream>
#include <string>

namespace linattn::test {

/// A function of one `linattn.quadratic` with random operands.
struct AttentionCase {
  std::string name;
  DType dtype = DType::BF16;
  int64_t keySize = 64, valueSize = 64, queries = 150, keys = 150;
  int64_t batch = 1, queryHeads = 2, keyHeads = 2, valueHeads = 2;
  bool linear = false, causal = false, normalize = false;
  bool mask = false, prefix = false, tokensFirst = false;
  bool staticTokens = false;
  double scale = 0.125;
  /// Multiplies queries: scores far apart.
  double queryScale = 1;
  double most = 1e-6; ///< What outputs of f32 may err by.
  Math math = Math::Strict;
  /// Instead of the schedule that is chosen: text of the attribute.
  std::string schedule;
  std::string chip = "sm_80", copy = "cp_async";
  uint64_t seed = 0;

  int64_t outputHeads() const {
    return std::max({queryHeads, keyHeads, valueHeads});
  }
  friend void PrintTo(const AttentionCase &attention, std::ostream *os) {
    *os << attention.name;
  }
};

struct AttentionOutcome {
  bool ran = false; ///< False: a failure has been added.
  double error = 0;
  double beyondRounding = 0; ///< See Rounding.h.
  std::vector<emulator::LaunchLog::Launch> launches;
};

/// Compiles the function for the emulator, runs it, and compares with the
/// oracle on the same, rounded operands.
AttentionOutcome runCase(const AttentionCase &attention);

/// A function of a `linattn.state` and a `linattn.read` of it, which returns
/// the output, the state and, if normalized, the sum of keys.
struct StateReadCase {
  std::string name;
  DType dtype = DType::BF16;
  int64_t keySize = 64, valueSize = 64, queries = 150, keys = 150;
  int64_t batch = 1, queryHeads = 2, keyHeads = 2, valueHeads = 2;
  reference::FeatureMapKind featureMap = reference::FeatureMapKind::Identity;
  bool normalize = false, mask = false, tokensFirst = false;
  bool fromZero = false; ///< Else the state starts from an argument.
  Math math = Math::Strict;
  /// Instead of the schedules that are chosen.
  std::string stateSchedule, readSchedule;
  std::string chip = "sm_80";
  uint64_t seed = 0;

  int64_t stateHeads() const { return std::max(keyHeads, valueHeads); }
  int64_t outputHeads() const { return std::max(queryHeads, stateHeads()); }
  friend void PrintTo(const StateReadCase &stateRead, std::ostream *os) {
    *os << stateRead.name;
  }
};

struct StateReadOutcome {
  bool ran = false; ///< False: a failure has been added.
  double outputError = 0, stateError = 0, normalizerError = 0;
  double beyondRounding = 0; ///< Of outputs.
  std::vector<emulator::LaunchLog::Launch> launches;
};

StateReadOutcome runCase(const StateReadCase &stateRead);

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_GPU_ATTENTIONCASE_H
