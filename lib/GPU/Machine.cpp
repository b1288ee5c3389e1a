//===- Machine.cpp - The GPU that schedules are chosen for ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/Machine.h"

using namespace mlir::linattn;

/// The number of an architecture: 90 of sm_90a.
static int64_t numberOf(llvm::StringRef chip) {
  int64_t number = 0;
  chip.consume_front("sm_");
  chip.consumeInteger(10, number);
  return number;
}

GPUMachine mlir::linattn::describeGPU(llvm::StringRef chip) {
  int64_t number = numberOf(chip);
  // A100, H100 and B200 (SXM). From Hopper on the full rate needs other
  // instructions: mma.sync is taken to reach 62 % of it, as on Hopper.
  GPUMachine a100{108, 2039e9, 312e12, 163 * 1024};
  constexpr double hopperRate = 989e12;
  GPUMachine h100{132, 3350e9, 0.62 * hopperRate, mostShared};
  GPUMachine b200{148, 8000e9, 0.62 * 2250e12, mostShared};
  GPUMachine machine = number < 90 ? a100 : number < 100 ? h100 : b200;
  if (number == 86 || number == 89 || number >= 120)
    machine.shared = 99 * 1024;
  // Neither later chips nor sm_90, whose code runs on later ones, have it.
  machine.warpgroupRate = chip == "sm_90a" ? hopperRate : 0;
  return machine;
}
