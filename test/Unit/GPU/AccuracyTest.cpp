//===- AccuracyTest.cpp - Errors of bf16 outputs --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An output of bf16 is off by up to 3.9e-3 of the largest, as it is rounded to
// eight bits. A kernel may not add to that: what it rounds on the way, states
// and scores, would.
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"
#include "ScanCase.h"
#include "gtest/gtest.h"

using namespace linattn;
using namespace linattn::test;

namespace {

constexpr double tolerance = 4e-3, mostBeyondRounding = 1e-4;

class ScanAccuracy : public testing::TestWithParam<ScanCase> {};

TEST_P(ScanAccuracy, IsThatOfOutputs) {
  ScanOutcome outcome = runCase(GetParam());
  ASSERT_EQ(outcome.error, "") << toText(GetParam());
  EXPECT_TRUE(outcome.report.isClean()) << outcome.report.describeFindings();
  EXPECT_LE(outcome.outputError, tolerance) << outcome.worst;
  EXPECT_LE(outcome.beyondRounding, mostBeyondRounding) << outcome.worst;
}

std::vector<ScanCase> scans() {
  std::vector<ScanCase> cases;
  auto add = [&](std::string name, int64_t size, int64_t tokens, uint64_t seed,
                 std::function<void(ScanCase &)> change) {
    ScanCase scan;
    scan.name = name + "_d" + std::to_string(size) + "_t" +
                std::to_string(tokens) + "_seed" + std::to_string(seed);
    scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
    scan.keySize = scan.valueSize = size;
    scan.tokens = tokens;
    scan.seed = seed;
    scan.initial = ScanCase::Zero;
    scan.decayScale = 0.1;
    change(scan);
    cases.push_back(scan);
  };
  auto additive = [](ScanCase &) {};
  auto steady = [](ScanCase &scan) {
    scan.decay = ScanCase::Head;
    scan.decayScale = 1;
  };
  auto scalar = [](ScanCase &scan) { scan.decay = ScanCase::Token; };
  auto channels = [](ScanCase &scan) { scan.decay = ScanCase::Channel; };
  auto delta = [](ScanCase &scan) { scan.update = UpdateRule::Delta; };
  auto gatedDelta = [&](ScanCase &scan) { delta(scan), scalar(scan); };
  auto kda = [&](ScanCase &scan) { delta(scan), channels(scan); };
  auto exclusive = [](ScanCase &scan) { scan.readout = Readout::Exclusive; };
  auto segments = [](ScanCase &scan) {
    scan.schedule = "#linattn.schedule<form = chunk, mma = mma_sync, chunk = "
                    "64, warps = 4, stages = 2, value_slice = 64, split = 3>";
  };
  auto columnSegments = [&](ScanCase &scan) { channels(scan), segments(scan); };
  // More than 4e-3 with states and scores of 16 bits.
  add("additive", 64, 300, 1, additive);
  add("segments", 64, 300, 1, segments);
  add("steady", 64, 300, 3, steady);
  add("steady", 64, 1024, 1, steady);
  add("scalar", 64, 300, 3, scalar);
  for (uint64_t seed : {2, 3}) {
    add("additive", 32, 2048, seed, additive);
    add("segments", 64, 512, seed, segments);
    add("scalar", 32, 1024, seed, scalar);
    add("channels", 32, 512, seed, channels);
    add("delta", 32, 300, seed, delta);
    add("gated_delta", 32, 512, seed, gatedDelta);
    add("kda", 32, 300, seed, kda);
    add("exclusive", 32, 512, seed, exclusive);
  }
  add("column_segments", 64, 300, 1, columnSegments);
  add("delta", 64, 1024, 3, delta);
  add("kda", 64, 512, 3, kda);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, ScanAccuracy, testing::ValuesIn(scans()),
                         [](const auto &info) { return info.param.name; });

void checkAttention(const char *chip, int64_t size,
                    std::initializer_list<uint64_t> seeds) {
  for (int64_t keys : {300, 1024})
    for (bool linear : {false, true})
      for (uint64_t seed : seeds) {
        AttentionCase attention;
        attention.queryHeads = attention.keyHeads = attention.valueHeads = 1;
        attention.keySize = attention.valueSize = size;
        attention.queries = 128;
        attention.keys = keys;
        attention.linear = linear;
        attention.seed = seed;
        attention.chip = chip;
        AttentionOutcome outcome = runCase(attention);
        ASSERT_TRUE(outcome.ran);
        EXPECT_LE(outcome.error, tolerance);
        EXPECT_LE(outcome.beyondRounding, mostBeyondRounding)
            << chip << ", D = " << size << ", " << keys
            << " keys, linear: " << linear << ", seed " << seed;
      }
}

TEST(AttentionAccuracy, IsThatOfOutputs) {
  checkAttention("sm_80", 32, {100, 200, 300, 400});
  checkAttention("sm_80", 64, {100, 200, 300, 400});
}

TEST(AttentionAccuracy, IsThatOfOutputsFromWarpgroups) {
  checkAttention("sm_90a", 64, {100, 200});
}

TEST(ReadAccuracy, IsThatOfOutputs) {
  for (int64_t size : {32, 64})
    for (int64_t tokens : {300, 1024})
      for (uint64_t seed : {100, 200, 300, 400}) {
        StateReadCase stateRead;
        stateRead.queryHeads = stateRead.keyHeads = stateRead.valueHeads = 1;
        stateRead.keySize = stateRead.valueSize = size;
        stateRead.queries = stateRead.keys = tokens;
        stateRead.seed = seed;
        StateReadOutcome outcome = runCase(stateRead);
        ASSERT_TRUE(outcome.ran);
        EXPECT_LE(outcome.outputError, tolerance);
        EXPECT_LE(outcome.beyondRounding, mostBeyondRounding)
            << "D = " << size << ", " << tokens << " tokens, seed " << seed;
      }
}

} // namespace
