//===- StateReadKernelTest.cpp - States and reads against the oracle ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Sample.h"
#include "AttentionCase.h"
#include "gtest/gtest.h"

#include <cmath>
#include <functional>

using namespace linattn;
using namespace linattn::test;

namespace {

class StateReadKernels : public testing::TestWithParam<StateReadCase> {};

TEST_P(StateReadKernels, AgreeWithTheOracle) {
  const StateReadCase &stateRead = GetParam();
  StateReadOutcome outcome = runCase(stateRead);
  ASSERT_TRUE(outcome.ran);
  // Nothing is copied or filled besides.
  ASSERT_EQ(outcome.launches.size(), 2u);
  EXPECT_EQ(outcome.launches[0].kernel, "layer_state");
  EXPECT_EQ(outcome.launches[1].kernel, "layer_read");
  // The sums of an f32 read stay in the tensor cores, which cut off.
  EXPECT_LE(outcome.outputError, stateRead.dtype == DType::BF16  ? 4e-3
                                 : stateRead.dtype == DType::F16 ? 6e-4
                                                                 : 4e-6);
  EXPECT_LE(outcome.stateError, 1e-6);
  EXPECT_LE(outcome.normalizerError, 1e-6);
  for (const auto &launch : outcome.launches)
    EXPECT_LE(launch.report.traffic.getCyclesPerPhase(), 1.1) << launch.kernel;
  RecordProperty("output", std::to_string(outcome.outputError));
  RecordProperty("state", std::to_string(outcome.stateError));
}

StateReadCase namedState(std::string name,
                         std::function<void(StateReadCase &)> change) {
  StateReadCase stateRead;
  stateRead.name = std::move(name);
  change(stateRead);
  return stateRead;
}

std::vector<StateReadCase> stateReadCases() {
  using reference::FeatureMapKind;
  std::vector<StateReadCase> cases;
  auto add = [&](std::string name,
                 std::function<void(StateReadCase &)> change) {
    cases.push_back(namedState(name, change));
  };
  auto small = [](StateReadCase &stateRead, int64_t size) {
    stateRead.keySize = stateRead.valueSize = size;
    if (size > 64)
      stateRead.queryHeads = stateRead.keyHeads = stateRead.valueHeads = 1;
    if (size > 128)
      stateRead.queries = stateRead.keys = 100;
  };
  for (int64_t size : {16, 32, 60, 64, 96, 128, 192, 256}) {
    std::string suffix = "d" + std::to_string(size);
    add("plain_" + suffix,
        [&](StateReadCase &stateRead) { small(stateRead, size); });
    add("normalized_" + suffix, [&](StateReadCase &stateRead) {
      small(stateRead, size);
      stateRead.normalize = true;
      stateRead.featureMap = FeatureMapKind::Elu1;
    });
    if (size != 96 && size != 192)
      add("f32_" + suffix, [&](StateReadCase &stateRead) {
        small(stateRead, size);
        stateRead.dtype = DType::F32;
        stateRead.keys = 70;
      });
  }
  add("f16", [](StateReadCase &stateRead) {
    stateRead.dtype = DType::F16;
    stateRead.normalize = true;
    stateRead.featureMap = FeatureMapKind::Relu;
  });
  add("f32_normalized", [](StateReadCase &stateRead) {
    stateRead.dtype = DType::F32;
    stateRead.normalize = true;
    stateRead.featureMap = FeatureMapKind::Elu1;
  });
  add("other_values", [](StateReadCase &stateRead) {
    stateRead.keySize = 34;
    stateRead.valueSize = 154;
    stateRead.normalize = true;
    stateRead.featureMap = FeatureMapKind::Elu1;
  });
  add("from_zero", [](StateReadCase &stateRead) {
    stateRead.fromZero = stateRead.normalize = true;
    stateRead.featureMap = FeatureMapKind::Relu2;
  });
  add("mask", [](StateReadCase &stateRead) {
    stateRead.mask = stateRead.normalize = true;
    stateRead.batch = 2;
    stateRead.keys = 70;
    stateRead.featureMap = FeatureMapKind::Elu1;
  });
  add("plain_mask", [](StateReadCase &stateRead) { stateRead.mask = true; });
  add("grouped_heads", [](StateReadCase &stateRead) {
    stateRead.queryHeads = 4;
    stateRead.valueHeads = 1;
    stateRead.batch = 2;
  });
  add("tokens_first", [](StateReadCase &stateRead) {
    stateRead.tokensFirst = true;
    stateRead.queries = 600;
    stateRead.keys = 40;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(StateRead, StateReadKernels,
                         testing::ValuesIn(draw(stateReadCases())),
                         [](const auto &info) { return info.param.name; });

TEST(StateReadKernelTraffic, EveryOperandMovesOnce) {
  for (DType dtype : {DType::BF16, DType::F32}) {
    StateReadCase stateRead = namedState("", [&](StateReadCase &stateRead) {
      stateRead.dtype = dtype;
      stateRead.queries = stateRead.keys = 256;
      stateRead.queryHeads = stateRead.keyHeads = stateRead.valueHeads = 1;
      stateRead.normalize = true;
      stateRead.featureMap = reference::FeatureMapKind::Elu1;
    });
    StateReadOutcome outcome = runCase(stateRead);
    ASSERT_TRUE(outcome.ran);
    int64_t bytes = 2 * 256 * 64 * getByteSize(dtype);
    int64_t state = 64 * 65 * 4;
    const auto &write = outcome.launches[0].report.traffic;
    const auto &read = outcome.launches[1].report.traffic;
    EXPECT_LE(32 * (write.sectorsRead + write.sectorsWritten),
              1.05 * (bytes + 2 * state));
    EXPECT_LE(32 * (read.sectorsRead + read.sectorsWritten),
              1.05 * (bytes + state));
  }
}

} // namespace
