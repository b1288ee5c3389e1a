//===- OutputNormTest.cpp - The oracle of output norms --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/Reference.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace linattn::reference;

namespace {

const Array row({1, 1, 1, 4}, {1, 2, 3, 6});

Array normalized(const OutputNormOptions &options) {
  Result<Array> result = outputNorm(row, options);
  EXPECT_TRUE(static_cast<bool>(result)) << result.error();
  return result ? *result : Array();
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// mean(x²) = 12.5, mean 3, variance 3.5.
TEST(OutputNorm, DividesByTheRowsOwnStatistics) {
  OutputNormOptions options;
  options.eps = 0;
  Array rms = normalized(options);
  options.kind = NormKind::Layer;
  Array layer = normalized(options);
  for (int64_t d = 0; d < 4; ++d) {
    EXPECT_NEAR(rms.data[d], row.data[d] / std::sqrt(12.5), 1e-15);
    EXPECT_NEAR(layer.data[d], (row.data[d] - 3) / std::sqrt(3.5), 1e-15);
  }
}

TEST(OutputNorm, WeightsThenGates) {
  OutputNormOptions options;
  options.eps = 3.5;
  options.weight = Array({1, 4}, {2, 3, 4, 5});
  options.bias = Array({4}, {1, 0, -1, 0.5});
  options.gate = Array({1, 1, 1, 4}, {-1, 0, 1, 2});
  Array silu = normalized(options);
  options.activation = Activation::Sigmoid;
  Array sigmoids = normalized(options);
  for (int64_t d = 0; d < 4; ++d) {
    double g = options.gate->data[d];
    double y =
        row.data[d] / 4 * options.weight->data[d] + options.bias->data[d];
    EXPECT_NEAR(silu.data[d], y * g * sigmoid(g), 1e-15);
    EXPECT_NEAR(sigmoids.data[d], y * sigmoid(g), 1e-15);
  }
}

TEST(OutputNorm, GatesFirstOnRequest) {
  OutputNormOptions options;
  options.gate = Array({1, 1, 1, 4}, {-1, 0, 1, 2});
  options.gateFirst = true;
  Array after = normalized(options);
  Array gated = row;
  for (int64_t d = 0; d < 4; ++d) {
    double g = options.gate->data[d];
    gated.data[d] *= g * sigmoid(g);
  }
  Result<Array> expected = outputNorm(gated, {});
  ASSERT_TRUE(static_cast<bool>(expected));
  EXPECT_LT(compare(after, *expected), 1e-15);
}

TEST(OutputNorm, SkipsComeFirstAndOffsetsAreOfTheWeight) {
  OutputNormOptions options;
  options.skip = Array({1, 1, 1, 4}, {1, -1, 2, 0.5});
  options.skipWeight = Array({1, 4}, {2, 3, -1, 4});
  options.weight = Array({4}, {0.5, 1, 0, -1});
  options.weightOffset = 1.0;
  Array sum = row;
  for (int64_t d = 0; d < 4; ++d)
    sum.data[d] += options.skipWeight->data[d] * options.skip->data[d];
  options.kind = NormKind::None;
  Array plain = normalized(options);
  for (int64_t d = 0; d < 4; ++d)
    EXPECT_NEAR(plain.data[d], sum.data[d] * (options.weight->data[d] + 1),
                1e-15);
  options.kind = NormKind::Rms;
  Array after = normalized(options);
  Result<Array> expected = outputNorm(sum, {});
  ASSERT_TRUE(static_cast<bool>(expected));
  for (int64_t d = 0; d < 4; ++d)
    EXPECT_NEAR(after.data[d],
                expected->data[d] * (options.weight->data[d] + 1), 1e-15);
}

TEST(OutputNorm, RefusesOperandsThatDoNotFit) {
  OutputNormOptions options;
  options.weight = Array({3});
  EXPECT_NE(outputNorm(row, options).error().find("weight"), std::string::npos);
  options.weight = std::nullopt;
  options.gateFirst = true;
  EXPECT_EQ(outputNorm(row, options).error(),
            "expected gate_first only with a gate, but got none");
  options.gateFirst = false;
  options.eps = -1;
  EXPECT_NE(outputNorm(row, options).error().find("eps"), std::string::npos);
  options.eps = 0;
  options.skip = row;
  EXPECT_EQ(outputNorm(row, options).error(),
            "expected skip and skip_weight together, but got only one of them");
}

} // namespace
