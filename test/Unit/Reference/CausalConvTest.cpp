//===- CausalConvTest.cpp - The oracle of the short convolution -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/Recurrences.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace linattn::reference;

namespace {

// Two channels of three tokens.
const Array tokens({1, 3, 2}, {1, 10, 2, 20, 3, 30});
const Array weights({2, 2}, {1, 100, 1, 2});

CausalConvResult convolved(const CausalConvOperands &operands,
                           const CausalConvOptions &options = {},
                           const std::optional<Array> &initial = std::nullopt) {
  Result<CausalConvResult> result = causalConv(operands, options, initial);
  EXPECT_TRUE(static_cast<bool>(result)) << result.error();
  return result ? *result : CausalConvResult();
}

TEST(CausalConv, AddsTheInputsBefore) {
  CausalConvResult result = convolved({tokens, weights});
  EXPECT_EQ(result.y.data, (std::vector<double>{100, 20, 201, 50, 302, 80}));
  EXPECT_EQ(result.state.data, (std::vector<double>{3, 30}));
}

TEST(CausalConv, StartsFromTheState) {
  CausalConvResult result = convolved({tokens, weights, Array({2}, {0.5, 0})},
                                      {}, Array({1, 2, 2}, {7, 4, 8, 5}));
  EXPECT_EQ(result.y.data,
            (std::vector<double>{104.5, 25, 201.5, 50, 302.5, 80}));
  EXPECT_EQ(result.state.data, (std::vector<double>{2, 3, 20, 30}));
}

TEST(CausalConv, KeepsInputsThatFewTokensDoNotReplace) {
  CausalConvResult result = convolved({Array({1, 1, 2}, {1, 10}), weights}, {},
                                      Array({1, 2, 3}, {6, 7, 4, 9, 8, 5}));
  EXPECT_EQ(result.state.data, (std::vector<double>{7, 4, 1, 8, 5, 10}));
}

TEST(CausalConv, RunsBackwards) {
  CausalConvOptions options;
  options.reverse = true;
  CausalConvResult result = convolved({tokens, weights}, options);
  EXPECT_EQ(result.y.data, (std::vector<double>{102, 40, 203, 70, 300, 60}));
  EXPECT_EQ(result.state.data, (std::vector<double>{1, 10}));
}

TEST(CausalConv, LeavesGaps) {
  CausalConvOptions options;
  options.dilation = 2;
  CausalConvResult result = convolved({tokens, weights}, options);
  EXPECT_EQ(result.y.data, (std::vector<double>{100, 20, 200, 40, 301, 70}));
  EXPECT_EQ(result.state.data, (std::vector<double>{2, 3, 20, 30}));
}

TEST(CausalConv, Activates) {
  CausalConvOptions options;
  options.activation = Activation::Silu;
  Array x({1, 1, 1}, std::vector<double>{-2});
  Array weight({1, 1}, std::vector<double>{1});
  EXPECT_NEAR(convolved({x, weight}, options).y.data[0],
              -2 / (1 + std::exp(2.0)), 1e-16);
  options.activation = Activation::Sigmoid;
  EXPECT_NEAR(convolved({x, weight}, options).y.data[0],
              1 / (1 + std::exp(2.0)), 1e-16);
}

TEST(CausalConv, RefusesOperandsThatDoNotFit) {
  auto error = [](const CausalConvOperands &operands,
                  const CausalConvOptions &options = {},
                  const std::optional<Array> &initial = std::nullopt) {
    return causalConv(operands, options, initial).error();
  };
  EXPECT_NE(error({Array({3, 2}), weights}).find("x [B, T, C]"),
            std::string::npos);
  EXPECT_NE(error({tokens, Array({3, 2})}).find("weight [2, W]"),
            std::string::npos);
  EXPECT_NE(error({tokens, weights, Array({3})}).find("bias"),
            std::string::npos);
  CausalConvOptions options;
  options.dilation = 0;
  EXPECT_NE(error({tokens, weights}, options).find("dilation"),
            std::string::npos);
  options.dilation = 3;
  EXPECT_NE(error({tokens, weights}, options, Array({1, 2, 2}))
                .find("S of at least 3"),
            std::string::npos);
}

} // namespace
