//===- SummandsTest.cpp - Errors of f32 products --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three summands of bf16 are all of an f32, two keep 16 bits of it, one keeps
// eight. With fewer a kernel may err by what is left out and by no more, and
// must err by it: else it makes products for nothing.
//
//===----------------------------------------------------------------------===//

#include "AttentionCase.h"
#include "ScanCase.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <optional>

using namespace linattn;
using namespace linattn::test;

namespace {

/// Errors of outputs and of states, over the largest of them.
struct Errors {
  double output = 0, state = 0;
};

/// By the number of summands.
constexpr double least[] = {0, 1e-3, 3e-6, 0};
constexpr double most[] = {0, 1e-2, 2.5e-5, 2e-6};

void check(int64_t summands, double error, const std::string &what) {
  EXPECT_GE(error, least[summands]) << what << ", " << summands << " summands";
  EXPECT_LE(error, most[summands]) << what << ", " << summands << " summands";
}

std::string scheduleOf(const char *form, int64_t chunk, int64_t slice,
                       int64_t summands) {
  return llvm::formatv("#linattn.schedule<form = {0}, mma = mma_sync, chunk = "
                       "{1}, warps = 4, stages = 2, value_slice = {2}, "
                       "summands = {3}>",
                       form, chunk, slice, summands)
      .str();
}

/// Runs with one to three summands; `of` gets how many.
void checkAll(const std::string &name,
              std::function<std::optional<Errors>(int64_t)> of, bool hasState) {
  for (int64_t summands : {1, 2, 3}) {
    std::optional<Errors> errors = of(summands);
    ASSERT_TRUE(errors) << name;
    check(summands, errors->output, name + ", output");
    if (hasState)
      check(summands, errors->state, name + ", state");
    auto record = [&](const char *what, double error) {
      testing::Test::RecordProperty(
          llvm::formatv("{0}_{1}_{2}", name, what, summands).str(),
          llvm::formatv("{0:E1}", error).str());
    };
    record("output", errors->output);
    if (hasState)
      record("state", errors->state);
  }
}

AttentionCase softmaxOf(int64_t size) {
  AttentionCase attention;
  attention.dtype = DType::F32;
  attention.keySize = attention.valueSize = size;
  attention.queryHeads = attention.keyHeads = attention.valueHeads = 1;
  attention.queries = 70;
  attention.scale = 1 / std::sqrt(double(size));
  return attention;
}

TEST(SummandsOfF32, Softmax) {
  for (int64_t size : {32, 128})
    checkAll(
        "d" + std::to_string(size),
        [&](int64_t summands) -> std::optional<Errors> {
          AttentionCase attention = softmaxOf(size);
          attention.schedule = scheduleOf("quadratic", 16, 0, summands);
          AttentionOutcome outcome = runCase(attention);
          if (!outcome.ran)
            return std::nullopt;
          return Errors{outcome.error};
        },
        /*hasState=*/false);
}

TEST(SummandsOfF32, StatesAndReads) {
  for (int64_t size : {32, 128})
    checkAll(
        "d" + std::to_string(size),
        [&](int64_t summands) -> std::optional<Errors> {
          StateReadCase stateRead;
          stateRead.dtype = DType::F32;
          stateRead.keySize = stateRead.valueSize = size;
          stateRead.queries = 70;
          stateRead.fromZero = true;
          int64_t slice = std::min<int64_t>(size, 64);
          stateRead.stateSchedule = scheduleOf("chunk", 32, slice, summands);
          stateRead.readSchedule = scheduleOf("chunk", 64, slice, summands);
          StateReadOutcome outcome = runCase(stateRead);
          if (!outcome.ran)
            return std::nullopt;
          return Errors{outcome.outputError, outcome.stateError};
        },
        /*hasState=*/true);
}

TEST(SummandsOfF32, Scans) {
  auto checkScan = [](const char *name,
                      std::function<void(ScanCase &)> change) {
    checkAll(
        name,
        [&](int64_t summands) -> std::optional<Errors> {
          ScanCase scan;
          scan.dtype = DType::F32;
          scan.queryHeads = scan.keyHeads = scan.valueHeads = 1;
          scan.initial = ScanCase::Zero;
          scan.tokens = 100;
          change(scan);
          scan.schedule = scheduleOf("chunk", 16, 64, summands);
          ScanOutcome outcome = runCase(scan);
          EXPECT_EQ(outcome.error, "");
          EXPECT_TRUE(outcome.report.isClean())
              << outcome.report.describeFindings();
          if (!outcome.error.empty())
            return std::nullopt;
          return Errors{outcome.outputError, outcome.stateError};
        },
        /*hasState=*/true);
  };
  checkScan("additive", [](ScanCase &) {});
  checkScan("gla", [](ScanCase &scan) { scan.decay = ScanCase::Channel; });
  checkScan("gated_delta", [](ScanCase &scan) {
    scan.decay = ScanCase::Token;
    scan.update = UpdateRule::Delta;
  });
}

/// Fast arithmetic means two summands of f32, and one of bf16.
TEST(SummandsOfF32, FastArithmeticTakesTwo) {
  AttentionCase attention = softmaxOf(64);
  attention.math = Math::Fast;
  AttentionOutcome outcome = runCase(attention);
  ASSERT_TRUE(outcome.ran);
  check(2, outcome.error, "softmax");
  attention.dtype = DType::BF16;
  outcome = runCase(attention);
  ASSERT_TRUE(outcome.ran);
  check(1, outcome.error, "softmax of bf16");

  StateReadCase stateRead;
  stateRead.dtype = DType::F32;
  stateRead.fromZero = true;
  stateRead.math = Math::Fast;
  StateReadOutcome both = runCase(stateRead);
  ASSERT_TRUE(both.ran);
  check(2, both.outputError, "output");
  check(2, both.stateError, "state");
  stateRead.dtype = DType::BF16;
  stateRead.featureMap = reference::FeatureMapKind::Elu1;
  both = runCase(stateRead);
  ASSERT_TRUE(both.ran);
  check(1, both.stateError, "state of bf16");
}

} // namespace
