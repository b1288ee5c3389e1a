//===- AttentionTest.cpp - Attention, weights, and state with read --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceTestUtils.h"

#include <cmath>
#include <limits>

using namespace linattn::reference;
using namespace linattn::reference::test;

/// The denominators are what attention gives for values of one.
static Array denominators(AttentionOptions options) {
  options.normalize.reset();
  return take(
      attention(exampleQ(), exampleK(), Array({1, 1, 5, 1}, 1.0), options));
}

//===----------------------------------------------------------------------===//
// Worked examples
//===----------------------------------------------------------------------===//

TEST(WorkedExamples, EluNonCausal) {
  AttentionOptions options = linear(FeatureMapKind::Elu1);
  StateOptions stateOptions;
  stateOptions.featureMap = options.featureMap;
  stateOptions.normalize = true;
  State sums = take(state(exampleK(), exampleV(), stateOptions));
  EXPECT_EQ(sums.z->data, (std::vector<double>{8, 7, 7.5, 7.5}));
  EXPECT_EQ(sums.S.data, (std::vector<double>{2, 3, 3, 2,             //
                                              2.5, 1.5, 2.5, 1.5,     //
                                              1.75, 2.75, 1.75, 2.75, //
                                              2.75, 1.75, 1.75, 2.75}));
  EXPECT_EQ(denominators(options).data,
            (std::vector<double>{45.5, 51.5, 52.5, 45, 45.5}));

  AttentionOptions unnormalized = linear(FeatureMapKind::Elu1, false, false);
  Array numerators =
      take(attention(exampleQ(), exampleK(), exampleV(), unnormalized));
  EXPECT_EQ(numerators.data, (std::vector<double>{12.75, 14.75, 13.75, 13.75, //
                                                  16.75, 13.75, 15.75, 14.75, //
                                                  15.25, 16.25, 16.25, 15.25, //
                                                  13.5,  13.5,  12.5,  14.5,  //
                                                  13.75, 13.75, 13.75, 13.75}));
  expectNear(take(attention(exampleQ(), exampleK(), exampleV(), options)),
             {.2802, .3242, .3022, .3022, //
              .3252, .2670, .3058, .2864, //
              .2905, .3095, .3095, .2905, //
              .3,    .3,    .2778, .3222, //
              .3022, .3022, .3022, .3022},
             printed);
}

TEST(WorkedExamples, EluImplicitWeights) {
  AttentionOptions options = linear(FeatureMapKind::Elu1);
  expectNear(take(weights(exampleQ(), exampleK(), options)),
             {.1758, .2198, .1978, .1978, .2088, //
              .2330, .1748, .2136, .1942, .1845, //
              .1905, .2095, .2095, .1905, .2,    //
              .2,    .2,    .1778, .2222, .2,    //
              .1978, .1978, .1978, .1978, .2088},
             printed);
  options.normalize.reset();
  EXPECT_EQ(take(weights(exampleQ(), exampleK(), options)).data,
            (std::vector<double>{8,  10, 9,  9,  9.5,  //
                                 12, 9,  11, 10, 9.5,  //
                                 10, 11, 11, 10, 10.5, //
                                 9,  9,  8,  10, 9,    //
                                 9,  9,  9,  9,  9.5}));
}

TEST(WorkedExamples, Softmax) {
  // K^-1/2 = 1/2 is the default scale.
  expectNear(take(weights(exampleQ(), exampleK(), softmax())),
             {.1095, .2976, .1805, .1805, .2318, //
              .4026, .0898, .2442, .1481, .1153, //
              .1519, .2505, .2505, .1519, .1951, //
              .1903, .1903, .1154, .3137, .1903, //
              .1892, .1892, .1892, .1892, .2430},
             printed);
  expectNear(take(attention(exampleQ(), exampleK(), exampleV(), softmax())),
             {.2254, .4135, .2964, .2964, //
              .4602, .1475, .3018, .2058, //
              .2495, .3481, .3481, .2495, //
              .2854, .2854, .2106, .4089, //
              .3108, .3108, .3108, .3108},
             printed);
}

TEST(WorkedExamples, EluCausal) {
  AttentionOptions options = linear(FeatureMapKind::Elu1, /*causal=*/true);
  // 11/32 lies halfway between two printed values, which any eps would decide.
  options.normalize->eps = 0.0;
  expectNear(take(attention(exampleQ(), exampleK(), exampleV(), options)),
             {1,     0,     0,     0,     //
              .5714, .4286, 0,     0,     //
              .3125, .3438, .3438, 0,     //
              .25,   .25,   .2222, .2778, //
              .3022, .3022, .3022, .3022},
             printed);
  Array matrix = take(weights(exampleQ(), exampleK(), options));
  const double sums[] = {2.3317, 1.2201, .7638, .4756, .2088};
  for (int64_t j = 0; j < 5; ++j) {
    double sum = 0.0;
    for (int64_t i = 0; i < 5; ++i)
      sum += matrix.at({0, 0, i, j});
    EXPECT_NEAR(sum, sums[j], printed) << "column " << j;
  }
}

TEST(WorkedExamples, Relu) {
  AttentionOptions options = linear(FeatureMapKind::Relu);
  EXPECT_EQ(denominators(options).data,
            (std::vector<double>{5.5, 6.5, 7.5, 5, 5.5}));
  expectNear(take(attention(exampleQ(), exampleK(), exampleV(), options)),
             {.1364, .5,    .3182, .3182, //
              .5,    .0385, .3462, .1923, //
              .2333, .3667, .3667, .2333, //
              .3,    .3,    .1,    .5,    //
              .3182, .3182, .3182, .3182},
             printed);
  options.causal = true;
  EXPECT_EQ(denominators(options).data, (std::vector<double>{0, 3, 5, 4, 5.5}));
  Array causal = take(attention(exampleQ(), exampleK(), exampleV(), options));
  for (int64_t d = 0; d < 4; ++d)
    EXPECT_EQ(causal.at({0, 0, 0, d}), 0.0);
}

TEST(WorkedExamples, UnnormalizedNonCausal) {
  Array k = oneHead({{1, 0}, {0, 1}, {1, 1}});
  Array v = oneHead({{10, 20}, {30, 40}, {50, 60}});
  AttentionOptions options = linear(FeatureMapKind::Identity, false, false);
  EXPECT_EQ(take(attention(k, k, v, options)).data,
            (std::vector<double>{60, 80, 80, 100, 140, 180}));
  options.causal = true;
  EXPECT_EQ(take(attention(k, k, v, options)).data,
            (std::vector<double>{10, 20, 30, 40, 140, 180}));
  State two = take(state(take(slice(k, 2, 0, 2)), take(slice(v, 2, 0, 2)), {}));
  EXPECT_EQ(two.S.data, (std::vector<double>{10, 20, 30, 40}));
  EXPECT_EQ(take(read(oneHead({{.5, .5}}), two, {})).data,
            (std::vector<double>{20, 30}));
}

TEST(WorkedExamples, SoftmaxKernelIsNotExp) {
  Array q = oneHead({{0, 0}}), k = oneHead({{0, 0}, {2, 0}});
  expectNear(take(weights(q, k, linear(FeatureMapKind::SoftmaxKernel))),
             {.6379, .3621}, printed);
  expectNear(take(weights(q, k, linear(FeatureMapKind::Exp))), {.1925, .8075},
             printed);
}

TEST(WorkedExamples, NegativeDenominator) {
  // Score -1/2 and value 2: numerator -1 over denominator -1/2.
  Array q = oneHead({{1}}), k = oneHead({{-.5}}), v = oneHead({{2}});
  AttentionOptions options = linear(FeatureMapKind::Identity);
  options.normalize->eps = 0.0;
  EXPECT_EQ(take(attention(q, k, v, options)).data[0], 2.0);
  options.normalize = Normalize{std::nullopt, 1e-4, std::nullopt};
  EXPECT_DOUBLE_EQ(take(attention(q, k, v, options)).data[0], -1e4);
  options.normalize->clamp = 5.0;
  EXPECT_EQ(take(attention(q, k, v, options)).data[0], -5.0);
}

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

TEST(AttentionTest, IsWeightsTimesValues) {
  Array q = randomArray({2, 4, 6, 3}, 1), k = randomArray({2, 2, 6, 3}, 2);
  Array v = randomArray({2, 2, 6, 5}, 3);
  std::vector<AttentionOptions> all = {softmax(), softmax(true)};
  for (FeatureMapKind kind : allNamedMaps)
    for (int flags = 0; flags < 4; ++flags)
      all.push_back(linear(kind, flags & 1, flags & 2));
  for (const AttentionOptions &options : all) {
    Array matrix = take(weights(q, k, options));
    Array expected({2, 4, 6, 5});
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < 6; ++i)
          for (int64_t j = 0; j < 6; ++j)
            for (int64_t d = 0; d < 5; ++d)
              expected.at({b, h, i, d}) +=
                  matrix.at({b, h, i, j}) * v.at({b, h / 2, j, d});
    // The sums of a normalized identity map may be small: compare generously.
    EXPECT_LT(compare(take(attention(q, k, v, options)), expected), 1e-11)
        << featureMapName(options.featureMap.kind);
  }
}

TEST(AttentionTest, CustomMapIsTheNamedMap) {
  Array q = randomArray({1, 2, 4, 3}, 1), k = randomArray({1, 2, 4, 3}, 2);
  AttentionOptions custom = linear(FeatureMapKind::Elu1);
  custom.featureMap = FeatureMap::fromFunction(
      [](double x) { return x > 0 ? x + 1 : std::exp(x); });
  EXPECT_EQ(take(weights(q, k, custom)).data,
            take(weights(q, k, linear(FeatureMapKind::Elu1))).data);
}

TEST(AttentionTest, StateAndReadAreNonCausalAttention) {
  Array q = randomArray({2, 4, 3, 3}, 4), k = randomArray({2, 1, 7, 3}, 5);
  Array v = randomArray({2, 2, 7, 2}, 6);
  Array mask({2, 7}, std::vector<double>{1, 0, 1, 1, 0, 1, 1, //
                                         0, 0, 1, 1, 1, 1, 0});
  for (FeatureMapKind kind : allNamedMaps)
    for (bool normalized : {false, true}) {
      AttentionOptions options = linear(kind, false, normalized);
      options.scale = 0.7;
      options.mask = mask;
      State sums = take(state(k, v, {options.featureMap, normalized, mask}));
      EXPECT_EQ(sums.S.shape, (std::vector<int64_t>{2, 2, 3, 2}));
      EXPECT_EQ(sums.z.has_value(), normalized);
      EXPECT_EQ(sums.m.has_value(), normalized && kind == FeatureMapKind::Exp);
      Array got =
          take(read(q, sums, {options.featureMap, options.normalize, 0.7}));
      EXPECT_LT(compare(got, take(attention(q, k, v, options))), 1e-11)
          << featureMapName(kind) << " normalized " << normalized;
    }
}

TEST(AttentionTest, GroupedHeadsAreRepeatedHeads) {
  // One query head, two key heads and four value heads: four state heads. Then
  // four query heads that read the same.
  Array k = randomArray({1, 2, 5, 3}, 2), v = randomArray({1, 4, 5, 2}, 3);
  Array all = randomArray({1, 4, 5, 3}, 1);
  for (int64_t queryHeads : {1, 2, 4}) {
    Array q = take(slice(all, 1, 0, queryHeads));
    AttentionOptions options = linear(FeatureMapKind::Exp, true);
    Array grouped = take(attention(q, k, v, options));
    EXPECT_EQ(grouped.shape, (std::vector<int64_t>{1, 4, 5, 2}));
    for (int64_t head = 0; head < 4; ++head) {
      int64_t queryHead = head * queryHeads / 4, keyHead = head / 2;
      Array one = take(attention(take(slice(q, 1, queryHead, queryHead + 1)),
                                 take(slice(k, 1, keyHead, keyHead + 1)),
                                 take(slice(v, 1, head, head + 1)), options));
      EXPECT_EQ(take(slice(grouped, 1, head, head + 1)).data, one.data);
    }
  }
}

TEST(AttentionTest, ExpOfMinusInfinityWeighsNothing) {
  double lowest = -std::numeric_limits<double>::infinity();
  Array q = oneHead({{0, 0}}), v = oneHead({{1}, {2}});
  AttentionOptions options = linear(FeatureMapKind::Exp);
  options.normalize->eps = 0.0;
  StateOptions sums{options.featureMap, true, std::nullopt};
  ReadOptions reads{options.featureMap, options.normalize, std::nullopt};
  Array k = oneHead({{lowest, lowest}, {3, lowest}});
  EXPECT_EQ(take(attention(q, k, v, options)).data[0], 2.0);
  EXPECT_EQ(take(read(q, take(state(k, v, sums)), reads)).data[0], 2.0);
  k = Array(k.shape, lowest);
  EXPECT_EQ(take(attention(q, k, v, options)).data[0], 0.0);
  EXPECT_EQ(take(read(q, take(state(k, v, sums)), reads)).data[0], 0.0);
}

TEST(AttentionTest, MaskIsTheSameAsLeavingKeysOut) {
  Array q = randomArray({1, 1, 4, 3}, 1), k = randomArray({1, 1, 4, 3}, 2);
  Array v = randomArray({1, 1, 4, 2}, 3);
  Array shortK = take(slice(k, 2, 0, 2)), shortV = take(slice(v, 2, 0, 2));
  // Padding may hold anything.
  for (int64_t t = 2; t < 4; ++t)
    for (int64_t d = 0; d < 2; ++d)
      k.at({0, 0, t, d}) = v.at({0, 0, t, d}) = notANumber;
  Array mask({1, 4}, std::vector<double>{1, 1, 0, 0});
  std::vector<AttentionOptions> all = {softmax()};
  for (FeatureMapKind kind : allNamedMaps)
    all.push_back(linear(kind));
  for (AttentionOptions options : all) {
    Array expected = take(attention(q, shortK, shortV, options));
    options.mask = mask;
    EXPECT_EQ(take(attention(q, k, v, options)).data, expected.data);
  }
}

TEST(AttentionTest, NothingToAttendGivesZero) {
  Array x = randomArray({1, 1, 3, 2}, 1);
  std::vector<AttentionOptions> all = {softmax()};
  for (FeatureMapKind kind : allNamedMaps)
    all.push_back(linear(kind));
  for (AttentionOptions options : all) {
    options.mask = Array({1, 3}, 0.0);
    EXPECT_EQ(take(attention(x, x, x, options)).data,
              std::vector<double>(6, 0.0));
    EXPECT_EQ(take(weights(x, x, options)).data, std::vector<double>(9, 0.0));
    Array none({1, 1, 0, 2});
    options.mask.reset();
    EXPECT_EQ(take(attention(x, none, none, options)).data,
              std::vector<double>(6, 0.0));
  }
}

TEST(AttentionTest, NoTokensAndOneToken) {
  Array none({2, 1, 0, 3}), one = randomArray({1, 1, 1, 3}, 1, 0.5, 1);
  AttentionOptions options = linear(FeatureMapKind::Relu, true);
  Array empty = take(attention(none, none, none, options));
  EXPECT_EQ(empty.shape, none.shape);
  EXPECT_TRUE(empty.data.empty());
  options.normalize->eps = 0.0;
  EXPECT_LT(compare(take(attention(one, one, one, options)), one), roundoff);
  EXPECT_EQ(take(attention(one, one, one, softmax(true))).data, one.data);
}

TEST(AttentionTest, ScaleMultipliesNumeratorAndDenominator) {
  Array q = oneHead({{2}}), k = oneHead({{3}}), v = oneHead({{1}});
  AttentionOptions options = linear(FeatureMapKind::Identity, false, false);
  options.scale = 0.5;
  EXPECT_EQ(take(attention(q, k, v, options)).data[0], 3.0);
  options.normalize = Normalize{1.0, std::nullopt, std::nullopt};
  EXPECT_EQ(take(attention(q, k, v, options)).data[0], 0.75);
}

TEST(AttentionTest, ExpIsStabilizedWhenNormalized) {
  // Plain e^500 * e^500 would overflow, e^-500 * e^-500 underflow.
  Array q = oneHead({{500, 499}, {-500, -500}});
  Array k = oneHead({{-500, -501}, {500, 499}});
  Array v = oneHead({{1}, {3}});
  AttentionOptions options = linear(FeatureMapKind::Exp, /*causal=*/true);
  options.normalize->eps = 0.0;
  expectNear(take(attention(q, k, v, options)), {1, 3}, roundoff);
  options.causal = false;
  expectNear(take(attention(q, k, v, options)), {3, 3}, roundoff);
  EXPECT_EQ(take(weights(q, k, options)).data,
            (std::vector<double>{0, 1, 0, 1}));
}

TEST(AttentionTest, EpsOfExpAppliesToTheStabilizedDenominator) {
  // Keys seen by the first query: -3 only; by the second: 0 as well.
  Array q = oneHead({{7}, {-9}}), k = oneHead({{-3}, {0}});
  Array v = oneHead({{1}, {2}});
  AttentionOptions options = linear(FeatureMapKind::Exp, /*causal=*/true);
  options.normalize->eps = 0.5;
  double e = std::exp(-3.0);
  expectNear(take(attention(q, k, v, options)),
             {1 / 1.5, (e + 2) / (e + 1 + 0.5)}, roundoff);
  options.causal = false;
  expectNear(take(attention(q, k, v, options)),
             {(e + 2) / (e + 1.5), (e + 2) / (e + 1.5)}, roundoff);
}

TEST(AttentionTest, UnnormalizedExpIsPlain) {
  AttentionOptions options = linear(FeatureMapKind::Exp, false, false);
  expectNear(take(weights(oneHead({{1, 2}}), oneHead({{3, -1}}), options)),
             {std::exp(4.0) + std::exp(1.0)}, 1e-12);
}
