//===- TokenMapTest.cpp - Feature maps of whole tokens --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The maps against the kernels φ(q)·φ(k) that they stand for.
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/RandomFeatures.h"
#include "linattn/Reference/TokenMaps.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace linattn;
using namespace linattn::reference;

namespace {

constexpr int64_t d = 5;
const Array q({1, 1, 1, d}, {0.3, -0.7, 0.2, 0.9, -0.1});
const Array k({1, 1, 1, d}, {-0.4, -0.5, 0.8, 0.6, 0.2});

Array random(std::vector<int64_t> shape, uint64_t seed) {
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  ProjectionOptions options{size, 1};
  options.kind = ProjectionKind::Independent;
  options.seed = seed;
  return Array(std::move(shape), *randomProjection(options));
}

std::vector<double> apply(const Array &x, const TokenMap &map) {
  Result<Array> result = applyTokenMap(x, map);
  EXPECT_TRUE(result) << result.error();
  return result ? result->data : std::vector<double>();
}

double dot(const std::vector<double> &x, const std::vector<double> &y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i)
    sum += x[i] * y[i];
  return sum;
}

double kernel(const TokenMap &map) { return dot(apply(q, map), apply(k, map)); }

const double qk = dot(q.data, k.data);

TEST(TokenMap, TaylorIsTheExponentialToSecondOrder) {
  double y = qk / std::sqrt(double(d)), expected = 1 + y + y * y / 2;
  EXPECT_NEAR(kernel({"taylor"}), expected, 1e-15);
  EXPECT_NEAR(kernel({"taylor_full"}), expected, 1e-15);
}

TEST(TokenMap, RebasedIsTheSquareOfNormalizedTokens) {
  Array gamma = random({d}, 1), beta = random({d}, 2);
  auto affine = [&](const Array &x) {
    double mean = 0, variance = 0;
    for (double value : x.data)
      mean += value / d;
    for (double value : x.data)
      variance += (value - mean) * (value - mean) / d;
    std::vector<double> y;
    for (int64_t i = 0; i < d; ++i)
      y.push_back((x.data[i] - mean) / std::sqrt(variance + 1e-5) *
                      gamma.data[i] +
                  beta.data[i]);
    return y;
  };
  double product = dot(affine(q), affine(k));
  EXPECT_NEAR(kernel({"rebased", {gamma, beta}}), product * product / d, 1e-14);
}

TEST(TokenMap, RandomFeaturesEstimateTheirKernels) {
  constexpr int64_t m = 40000;
  ProjectionOptions options{m, d};
  Array w({m, d}, *randomProjection(options));
  double distance = 0;
  for (int64_t i = 0; i < d; ++i)
    distance += (q.data[i] - k.data[i]) * (q.data[i] - k.data[i]);
  // On halved tokens, whose standard errors are below 0.01.
  auto estimate = [&](const char *name) {
    TokenMap map{name, {w}};
    map.scale = 0.5;
    return kernel(map);
  };
  double exponential = std::exp(qk / 4);
  EXPECT_NEAR(estimate("favor"), exponential, 0.03);
  EXPECT_NEAR(estimate("favor_hyperbolic"), exponential, 0.03);
  EXPECT_NEAR(estimate("random_fourier"), std::exp(-distance / 8), 0.01);
  EXPECT_NEAR(estimate("random_fourier_exp"), exponential, 0.03);
}

TEST(TokenMap, LogarithmsAreLogarithms) {
  Array w = random({d, d}, 3);
  for (const char *name : {"favor", "favor_hyperbolic", "hedgehog_exp"}) {
    TokenMap map{name, {w}};
    std::vector<double> features = apply(q, map);
    map.log = true;
    std::vector<double> logs = apply(q, map);
    for (size_t i = 0; i < logs.size(); ++i)
      EXPECT_NEAR(std::exp(logs[i]), features[i], 1e-15 * features[i]);
  }
}

TEST(TokenMap, CosformerReweighsByDistance) {
  TokenMap map{"cosformer"};
  map.maxLength = 10;
  double positive = 0;
  for (int64_t i = 0; i < d; ++i)
    positive += std::max(q.data[i], 0.0) * std::max(k.data[i], 0.0);
  map.positions = Array({1}, 7.0);
  std::vector<double> atSeven = apply(q, map);
  map.positions = Array({1, 1}, 4.0);
  std::vector<double> atFour = apply(k, map);
  EXPECT_NEAR(dot(atSeven, atFour), positive * std::cos(std::acos(-1.0) * 0.15),
              1e-15);
}

TEST(TokenMap, SmallMapsByHand) {
  Array x({1, 1, 1, 2}, {3.0, -4.0});
  using List = std::vector<double>;
  EXPECT_EQ(apply(x, {"dpfp"}), (List{3 * 4.0 * 1, 0, 0, 0}));
  TokenMap two{"dpfp"};
  two.shifts = 2;
  // r = [3, 0, 0, 4]; rolled by 1 [4, 3, 0, 0], by 2 [0, 4, 3, 0].
  EXPECT_EQ(apply(x, two), (List{12, 0, 0, 0, 0, 0, 0, 0}));
  Array w({2, 2}, {1, 1, 1, -1}), v({2, 2}, {2, 0, 0, 1});
  EXPECT_EQ(apply(x, {"t2r", {w}}), (List{0, 7}));
  EXPECT_EQ(apply(x, {"t2r", {w, Array({2}, {2, -3})}}), (List{1, 4}));
  EXPECT_EQ(apply(x, {"hadamard", {w, v}}), (List{-6, -28}));
  EXPECT_EQ(apply(x, {"outer_product", {w, v}}), (List{-6, 4, -28}));
  TokenMap norm{"l2norm"};
  norm.eps = 0.0;
  EXPECT_EQ(apply(x, norm), (List{0.6, -0.8}));
  TokenMap sum{"sum_norm"};
  sum.eps = 2.0;
  EXPECT_EQ(apply(x, sum), (List{3, -4}));
  TokenMap scaled{"hadamard", {w, v}};
  scaled.scale = 2.0;
  EXPECT_EQ(apply(x, scaled), (List{-24, -112}));
}

TEST(TokenMap, SoftmaxesSumToOne) {
  Array w = random({d, d}, 3);
  for (const TokenMap &map : {TokenMap{"softmax"}, TokenMap{"hedgehog", {w}}}) {
    double sum = 0;
    for (double value : apply(q, map))
      sum += value;
    EXPECT_NEAR(sum, 1.0, 1e-15) << map.name;
  }
}

TEST(TokenMap, ParametersPerHead) {
  Array x = random({1, 2, 3, d}, 4), w = random({2, 6, d}, 5);
  std::vector<double> both = apply(x, {"favor", {w}});
  for (int64_t head : {0, 1}) {
    Array mine({1, 1, 3, d},
               std::vector<double>(x.row({0, head}), x.row({0, head}) + 3 * d));
    Array its({6, d},
              std::vector<double>(w.row({head}), w.row({head}) + 6 * d));
    EXPECT_EQ(apply(mine, {"favor", {its}}),
              std::vector<double>(both.begin() + head * 18,
                                  both.begin() + head * 18 + 18));
  }
}

std::string getError(const TokenMap &map) {
  return applyTokenMap(q, map).error();
}

TEST(TokenMap, Errors) {
  EXPECT_EQ(getError({"elu1"}),
            "expected a feature map of whole tokens, but got \"elu1\"");
  EXPECT_EQ(getError({"favor"}),
            "expected favor to have 1 parameters, but got 0");
  EXPECT_EQ(getError({"hedgehog", {random({4, d}, 1)}}),
            "expected parameter 0 to have shape [5, 5] or [1, 5, 5], but got "
            "[4, 5]");
  EXPECT_EQ(getError({"cosformer"}),
            "expected positions with cosformer, but got none");
  TokenMap map{"taylor"};
  map.positions = Array({1}, 0.0);
  EXPECT_EQ(getError(map),
            "expected positions only with cosformer, but got some");
}

} // namespace
