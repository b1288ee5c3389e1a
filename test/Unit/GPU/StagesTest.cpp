//===- StagesTest.cpp - Tiles in any number of stages ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The number of stages says when tiles arrive, not what is computed: no races,
// and the same bits as with two stages.
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"
#include "ScanCase.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace linattn;
using namespace linattn::test;

namespace {

std::string scheduleOf(llvm::StringRef form, int64_t stages,
                       llvm::StringRef rest) {
  return llvm::formatv("#linattn.schedule<form = {0}, {1}, stages = {2}>", form,
                       rest, stages)
      .str();
}

const int64_t otherStages[] = {1, 3, 4};

/// The same bits in `stages` as in two. `tokens`: also fewer chunks than
/// stages; one sequence has none. `other`: of the schedules with so many
/// stages, unless it is the same.
void expectSameScan(ScanCase scan, llvm::ArrayRef<int64_t> stages,
                    llvm::StringRef schedule, llvm::StringRef other = {}) {
  scan.keySize = scan.valueSize = 32;
  scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
  for (std::vector<int64_t> offsets :
       std::vector<std::vector<int64_t>>{{0, 20, 20, 90}, {}}) {
    scan.offsets = offsets;
    scan.tokens = offsets.empty() ? 330 : offsets.back();
    scan.schedule = scheduleOf("chunk", 2, schedule);
    ScanOutcome two = runCase(scan);
    ASSERT_EQ(two.error, "");
    for (int64_t count : stages) {
      scan.schedule =
          scheduleOf("chunk", count, other.empty() ? schedule : other);
      ScanOutcome outcome = runCase(scan);
      ASSERT_EQ(outcome.error, "") << toText(scan);
      EXPECT_TRUE(outcome.report.isClean())
          << outcome.report.describeFindings();
      EXPECT_LE(outcome.outputError, 4e-3);
      EXPECT_LE(outcome.stateError, 1e-6);
      EXPECT_EQ(outcome.output, two.output) << count << " stages";
    }
  }
}

TEST(Stages, OfChunksByRows) {
  ScanCase scan;
  scan.decay = ScanCase::Token;
  expectSameScan(scan, otherStages,
                 "mma = mma_sync, chunk = 64, warps = 4, value_slice = 32");
}

TEST(Stages, OfChunksByRowsWithoutDecays) {
  ScanCase scan;
  expectSameScan(scan, otherStages,
                 "mma = mma_sync, chunk = 64, warps = 4, value_slice = 32");
}

TEST(Stages, OfChunksByWarpgroups) {
  for (ScanCase::Gate decay : {ScanCase::None, ScanCase::Token}) {
    ScanCase scan;
    scan.chip = "sm_90a";
    scan.decay = decay;
    expectSameScan(scan, otherStages,
                   "mma = wgmma, chunk = 64, warps = 8, value_slice = 32");
  }
}

// As many warps make the scores as those that own columns otherwise.
TEST(ScoresAhead, HaveTheBitsOfOthers) {
  for (UpdateRule update : {UpdateRule::Add, UpdateRule::Delta}) {
    ScanCase scan;
    scan.update = update;
    scan.decay = ScanCase::Channel;
    expectSameScan(scan, {3, 4},
                   "mma = mma_sync, chunk = 16, warps = 4, value_slice = 64",
                   "mma = mma_sync, chunk = 16, warps = 8, value_slice = 64");
  }
}

TEST(Stages, OfChunksByColumns) {
  ScanCase scan;
  scan.update = UpdateRule::Delta;
  scan.decay = ScanCase::Token;
  scan.mask = true;
  expectSameScan(scan, otherStages,
                 "mma = mma_sync, chunk = 16, warps = 4, value_slice = 64");
}

TEST(Stages, OfSegments) {
  ScanCase scan;
  scan.decay = ScanCase::Token;
  expectSameScan(
      scan, otherStages,
      "mma = mma_sync, chunk = 64, warps = 4, value_slice = 32, split = 2");
}

class StagesOfAttention : public testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(All, StagesOfAttention,
                         testing::ValuesIn(otherStages));

TEST_P(StagesOfAttention, OfWeights) {
  struct Kind {
    const char *mma, *copy, *chip;
    int64_t size;
  };
  for (Kind kind : {Kind{"mma_sync", "cp_async", "sm_80", 32},
                    Kind{"mma_sync", "cp_async", "sm_80", 80},
                    Kind{"wgmma", "cp_async", "sm_90a", 32},
                    Kind{"wgmma", "tma", "sm_90a", 32}})
    for (int64_t keys : {20, 150}) {
      AttentionCase attention;
      attention.keySize = attention.valueSize = kind.size;
      attention.queryHeads = attention.keyHeads = attention.valueHeads = 1;
      attention.causal = true;
      attention.queries = 70;
      attention.keys = keys;
      attention.chip = kind.chip;
      attention.copy = kind.copy;
      attention.schedule = scheduleOf(
          "quadratic", GetParam(),
          llvm::formatv("mma = {0}, chunk = 32, warps = 4, copy = {1}",
                        kind.mma, kind.copy)
              .str());
      AttentionOutcome outcome = runCase(attention);
      ASSERT_TRUE(outcome.ran) << attention.schedule;
      EXPECT_LE(outcome.error, 4e-3) << attention.schedule;
    }
}

TEST_P(StagesOfAttention, OfStatesAndReads) {
  for (int64_t tokens : {20, 330}) {
    StateReadCase stateRead;
    stateRead.keySize = stateRead.valueSize = 32;
    stateRead.queryHeads = stateRead.keyHeads = stateRead.valueHeads = 1;
    stateRead.queries = stateRead.keys = tokens;
    stateRead.stateSchedule =
        scheduleOf("chunk", GetParam(),
                   "mma = mma_sync, chunk = 32, warps = 4, value_slice = 32");
    stateRead.readSchedule =
        scheduleOf("chunk", GetParam(),
                   "mma = mma_sync, chunk = 64, warps = 4, value_slice = 32");
    StateReadOutcome outcome = runCase(stateRead);
    ASSERT_TRUE(outcome.ran);
    EXPECT_LE(outcome.outputError, 4e-3);
    EXPECT_LE(outcome.stateError, 1e-6);
  }
}

} // namespace
