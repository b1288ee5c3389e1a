//===- ScanKernelTest.cpp - Kernels against the oracle --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every kernel runs in the emulator, which finds races, reads of what no thread
// wrote and accesses out of bounds, and is compared with the float64 oracle.
//
//===----------------------------------------------------------------------===//

#include "../Sample.h"
#include "ScanCases.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace linattn;
using namespace linattn::test;

namespace {

/// Of one summand of bf16, which rounds the state for every product.
double fastTolerance(const ScanCase &scan) {
  return scan.tokens > 500 ? 1.1e-2 : 6.5e-3;
}

double outputTolerance(const ScanCase &scan) {
  if (scan.dtype == DType::BF16)
    return scan.fast ? fastTolerance(scan) : 4e-3;
  return scan.dtype == DType::F16 ? 6e-4 : 5e-7;
}

double stateTolerance(const ScanCase &scan) {
  if (scan.fast)
    return scan.dtype == DType::BF16 ? fastTolerance(scan) : 6e-4;
  // Of a long delta rule that hardly decays an exact f32 recurrence
  // makes 1.8e-6.
  return scan.tokens > 500 ? 1.8e-6 : 1e-6;
}

class ScanKernels : public testing::TestWithParam<ScanCase> {};

TEST_P(ScanKernels, AgreeWithTheOracle) {
  const ScanCase &scan = GetParam();
  ScanOutcome outcome = runCase(scan);
  ASSERT_EQ(outcome.error, "") << toText(scan);
  EXPECT_EQ(outcome.usesWarpgroups, scan.warpgroups);
  EXPECT_TRUE(outcome.report.isClean()) << outcome.report.describeFindings();
  EXPECT_LE(outcome.outputError, outputTolerance(scan)) << outcome.worst << "\n"
                                                        << toText(scan);
  EXPECT_LE(outcome.stateError, stateTolerance(scan));
  EXPECT_LE(outcome.normalizerError, 1e-6);
  EXPECT_LE(outcome.report.traffic.getCyclesPerPhase(), 1.1);
  auto record = [](const char *name, double value) {
    RecordProperty(name, llvm::formatv("{0:e1}", value).str());
  };
  record("output", outcome.outputError);
  record("state", outcome.stateError);
  record("cycles", outcome.report.traffic.getCyclesPerPhase());
}

std::string nameOf(const testing::TestParamInfo<ScanCase> &info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Chunk, ScanKernels,
                         testing::ValuesIn(draw(chunkCases())), nameOf);
INSTANTIATE_TEST_SUITE_P(Warpgroup, ScanKernels,
                         testing::ValuesIn(draw(warpgroupCases())), nameOf);
INSTANTIATE_TEST_SUITE_P(Column, ScanKernels,
                         testing::ValuesIn(draw(columnCases())), nameOf);
INSTANTIATE_TEST_SUITE_P(Transition, ScanKernels,
                         testing::ValuesIn(draw(transitionCases())), nameOf);
INSTANTIATE_TEST_SUITE_P(Ahead, ScanKernels,
                         testing::ValuesIn(draw(aheadCases())), nameOf);
INSTANTIATE_TEST_SUITE_P(Fast, ScanKernels,
                         testing::ValuesIn(draw(fastCases())), nameOf);
INSTANTIATE_TEST_SUITE_P(Token, ScanKernels, testing::ValuesIn(tokenCases()),
                         nameOf);

} // namespace
