//===- ScanTrafficTest.cpp - Bytes that kernels of scans move -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanCase.h"
#include "gtest/gtest.h"

using namespace linattn;
using namespace linattn::test;

namespace {

/// 32-byte sectors of global memory, over the bytes of every operand once.
double trafficOf(const ScanOutcome &outcome) {
  const emulator::Traffic &traffic = outcome.report.traffic;
  return 32.0 * (traffic.sectorsRead + traffic.sectorsWritten) /
         (outcome.bytesToRead + outcome.bytesToWrite);
}

TEST(ScanKernelTraffic, ChunksReadEveryOperandOnce) {
  for (int64_t size : {64, 128}) {
    ScanOutcome outcome = runCase(makeCase("", [&](ScanCase &scan) {
      scan.keySize = scan.valueSize = size;
      scan.tokens = 192;
      scan.decay = size == 64 ? ScanCase::Token : ScanCase::None;
    }));
    ASSERT_EQ(outcome.error, "");
    EXPECT_LE(trafficOf(outcome), 1.05) << size;
    EXPECT_LE(outcome.report.traffic.getCyclesPerPhase(), 1.1) << size;
  }
}

TEST(ScanKernelTraffic, ColumnsReadEveryOperandOnce) {
  for (int64_t size : {64, 128})
    for (ScanCase::Gate decay : {ScanCase::Token, ScanCase::Channel}) {
      ScanOutcome outcome = runCase(makeCase("", [&](ScanCase &scan) {
        scan.update = size == 64 ? UpdateRule::Delta : UpdateRule::Add;
        scan.dtype = decay == ScanCase::Token ? DType::F32 : DType::BF16;
        scan.keySize = scan.valueSize = size;
        scan.tokens = 192;
        scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
        scan.decay = decay;
      }));
      ASSERT_EQ(outcome.error, "");
      EXPECT_LE(trafficOf(outcome), 1.05) << size << ", " << int(decay);
      EXPECT_LE(outcome.report.traffic.getCyclesPerPhase(), 1.1) << size;
    }
}

TEST(ScanKernelTraffic, GatesAndGivenVectorsAreReadOnce) {
  for (UpdateRule update : {UpdateRule::Delta, UpdateRule::Dplr}) {
    ScanOutcome outcome = runCase(makeCase("", [&](ScanCase &scan) {
      scan.update = update;
      scan.erase = scan.write = update == UpdateRule::Delta;
      scan.gates = DType::BF16;
      scan.tokens = 192;
      scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
      scan.decay = ScanCase::Channel;
    }));
    ASSERT_EQ(outcome.error, "");
    EXPECT_LE(trafficOf(outcome), 1.05) << int(update);
  }
}

TEST(ScanKernelTraffic, AStepReadsAndWritesTheStateOnce) {
  for (ScanCase::Gate decay : {ScanCase::None, ScanCase::Channel}) {
    ScanOutcome outcome = runCase(makeCase("", [&](ScanCase &scan) {
      scan.keySize = scan.valueSize = 128;
      scan.tokens = 1;
      scan.decay = decay;
    }));
    ASSERT_EQ(outcome.error, "");
    EXPECT_LE(trafficOf(outcome), 1.02) << outcome.report.describeTraffic();
    EXPECT_LE(outcome.report.traffic.getCyclesPerPhase(), 1.1);
  }
}

} // namespace
