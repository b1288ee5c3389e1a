//===- CostFunctionsTest.cpp - Values quoted by the documentation ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/CostFunctions.h"

#include "gtest/gtest.h"

using namespace linattn::reference;

TEST(CostFunctionsTest, FlopsOfHeadSize64) {
  EXPECT_EQ(softmaxFlops(128, 64), 4276224.0);
  EXPECT_EQ(linearFlops(128, 64), 2130048.0);
  EXPECT_NEAR(softmaxFlops(128, 64) / linearFlops(128, 64), 2.0, 0.05);
  EXPECT_NEAR(softmaxFlops(4096, 64) / linearFlops(4096, 64), 64.2, 0.05);
  EXPECT_NEAR(softmaxFlops(16384, 64) / linearFlops(16384, 64), 257.0, 0.05);
}

TEST(CostFunctionsTest, BytesOfScoresAndState) {
  EXPECT_EQ(softmaxScoreBytes(16384), 1073741824.0);
  EXPECT_EQ(linearStateBytes(64), 16640.0);
  EXPECT_NEAR(softmaxScoreBytes(512) / linearStateBytes(64), 63.0, 0.5);
  EXPECT_NEAR(softmaxScoreBytes(16384) / linearStateBytes(64), 64528.0, 0.5);
}

TEST(CostFunctionsTest, TwoOrdersOfTheProduct) {
  EXPECT_EQ(quadraticMultiplyAdds(5, 4, 4), 200.0);
  EXPECT_EQ(reassociatedMultiplyAdds(5, 4, 4), 160.0);
  EXPECT_EQ(quadraticMultiplyAdds(7, 3, 2), 7.0 * 7 * 3 + 7.0 * 7 * 2);
  EXPECT_EQ(reassociatedMultiplyAdds(7, 3, 2), 7.0 * 3 * 2 + 7.0 * 3 * 2);
}

TEST(CostFunctionsTest, CrossoverIsWhereBothOrdersCostTheSame) {
  EXPECT_EQ(crossoverTokens(64, 64), 64.0);
  EXPECT_EQ(crossoverTokens(64, 64, /*causal=*/true), 128.0);
  EXPECT_EQ(crossoverTokens(64, 192), 96.0);
  EXPECT_EQ(quadraticMultiplyAdds(96, 64, 192),
            reassociatedMultiplyAdds(96, 64, 192));
  EXPECT_LT(quadraticMultiplyAdds(95, 64, 192),
            reassociatedMultiplyAdds(95, 64, 192));
  EXPECT_GT(quadraticMultiplyAdds(97, 64, 192),
            reassociatedMultiplyAdds(97, 64, 192));
}

TEST(CostFunctionsTest, LayerCostsAt4096Tokens) {
  double softmax = softmaxLayerMultiplyAdds(4096, 64);
  EXPECT_NEAR(softmax, 1.07e9, 0.005e9);
  EXPECT_NEAR(linearLayerMultiplyAdds(4096, 64), 16.8e6, 0.05e6);
  EXPECT_EQ(softmax / linearLayerMultiplyAdds(4096, 64), 64.0);
  EXPECT_NEAR(favorLayerMultiplyAdds(4096, 64, 256), 67.1e6, 0.05e6);
  EXPECT_EQ(softmax / favorLayerMultiplyAdds(4096, 64, 256), 16.0);
  EXPECT_EQ(softmax / nystromLayerMultiplyAdds(4096, 64, 64), 64.0);
  EXPECT_NEAR(fnetLayerMultiplyAdds(4096, 64), 3.1e6, 0.05e6);
  EXPECT_NEAR(softmax / fnetLayerMultiplyAdds(4096, 64), 341.0, 0.5);
}

TEST(CostFunctionsTest, ShortAndVeryLongSequences) {
  EXPECT_EQ(fnetLayerMultiplyAdds(0, 64), 0.0);
  EXPECT_EQ(fnetLayerMultiplyAdds(1, 64), 0.0);
  // 4 n^2 d overflows 64-bit integers here.
  EXPECT_GT(softmaxFlops(1e9, 64), 2.56e20);
}
