//===- ScanCase.h - Kernels of a scan in the emulator -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_GPU_SCANCASE_H
#define LINATTN_TEST_UNIT_GPU_SCANCASE_H

#include "linattn/Emulator/Emulator.h"
#include "linattn/Reference/Reference.h"
#include "linattn/Support/DType.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>
#include <ostream>
#include <string>

namespace linattn::test {

using reference::FeatureMapKind;
using reference::Readout;
using reference::UpdateRule;

/// A scan with random operands. Optional operands are there by their flags.
struct ScanCase {
  std::string name;
  DType dtype = DType::BF16;
  DType gates = DType::F32; ///< And given vectors.
  int64_t keySize = 64, valueSize = 64, tokens = 150;
  int64_t batch = 1, queryHeads = 2, keyHeads = 2, valueHeads = 2;
  enum Gate { None, Head, Token, Channel } decay = None;
  /// Multiplies the logarithms of decays: about −0.1 without.
  double decayScale = 1;
  UpdateRule update = UpdateRule::Add;
  Readout readout = Readout::Inclusive;
  /// Given vectors read the state before the decay.
  bool readsBefore = true;
  /// A delta rule steps by beta.
  bool beta = true;
  bool valueDecay = false, columnBeta = false, erase = false, write = false;
  bool bonus = false, mask = false, reverse = false, normalize = false;
  /// As rows of a pool that is larger than the batch, one sequence without.
  bool pool = false;
  FeatureMapKind featureMap = FeatureMapKind::Identity;
  std::vector<int64_t> offsets; ///< Of packed sequences; batch must be 1.
  /// Starts from a state in another buffer, from the result's own, or from 0.
  enum Initial { Copied, InPlace, Zero } initial = Copied;
  /// Strides of [B, T, H, D].
  bool tokensFirst = false;
  /// Instead of the schedule that is chosen: text of the attribute.
  std::string schedule;
  std::string chip = "sm_80";
  /// Chunks are multiplied by `wgmma`.
  bool warpgroups = false;
  bool fast = false; ///< `math=fast`
  uint64_t seed = 7;

  friend void PrintTo(const ScanCase &scan, std::ostream *os) {
    *os << scan.name;
  }
};

struct ScanOutcome {
  std::string error; ///< Empty: the kernel ran.
  double outputError = 0, stateError = 0, normalizerError = 0;
  double beyondRounding = 0; ///< Of outputs, see Rounding.h.
  std::string worst;         ///< The output that differs most.
  emulator::Report report;   ///< Of all launches.
  unsigned launches = 0;
  std::vector<char> output;
  bool usesWarpgroups = false;
  /// Of the operands that the kernel must read and write once.
  uint64_t bytesToRead = 0, bytesToWrite = 0;
};

/// The default case under a name, after `change`.
ScanCase makeCase(std::string name,
                  llvm::function_ref<void(ScanCase &)> change);

/// Compiles the scan, runs its kernel in the emulator, and compares with the
/// oracle on the same, rounded operands.
ScanOutcome runCase(const ScanCase &scan);

/// The scan as a module, for messages.
std::string toText(const ScanCase &scan);

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_GPU_SCANCASE_H
