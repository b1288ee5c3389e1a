//===- FeatureMapTest.cpp - Arrays, feature maps and the normalizer -------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceTestUtils.h"

#include <cmath>

using namespace linattn::reference;
using namespace linattn::reference::test;

static std::vector<double> mapped(FeatureMap map, std::vector<double> token) {
  Array x({static_cast<int64_t>(token.size())}, token);
  return take(applyFeatureMap(x, map)).data;
}

//===----------------------------------------------------------------------===//
// Feature maps
//===----------------------------------------------------------------------===//

TEST(FeatureMapTest, ElementwiseMaps) {
  using Values = std::vector<double>;
  Values x = {-2, 0, 3};
  EXPECT_EQ(mapped(makeMap(FeatureMapKind::Identity), x), x);
  EXPECT_EQ(mapped(makeMap(FeatureMapKind::Relu), x), (Values{0, 0, 3}));
  EXPECT_EQ(mapped(makeMap(FeatureMapKind::Relu2), x), (Values{0, 0, 9}));
  EXPECT_EQ(mapped(makeMap(FeatureMapKind::Elu1), x),
            (Values{std::exp(-2.0), 1, 4}));
  EXPECT_EQ(mapped(makeMap(FeatureMapKind::Exp), x),
            (Values{std::exp(-2.0), 1, std::exp(3.0)}));
  EXPECT_EQ(
      mapped(FeatureMap::fromFunction([](double v) { return v * v - 1; }), x),
      (Values{3, -1, 8}));
}

TEST(FeatureMapTest, SoftmaxKernelTakesTheMaximumOfEachToken) {
  Array x({2, 2}, std::vector<double>{1000, 999, -5, -3});
  Array phi = take(applyFeatureMap(x, makeMap(FeatureMapKind::SoftmaxKernel)));
  EXPECT_EQ(phi.data,
            (std::vector<double>{1, std::exp(-1.0), std::exp(-2.0), 1}));
}

TEST(FeatureMapTest, SoftmaxKernelOfMinusInfinityIsZero) {
  FeatureMap map = makeMap(FeatureMapKind::SoftmaxKernel);
  EXPECT_EQ(mapped(map, {-infinity, -infinity}), (std::vector<double>{0, 0}));
  EXPECT_EQ(mapped(map, {5, -infinity}), (std::vector<double>{1, 0}));
}

TEST(FeatureMapTest, NaNPassesThroughEveryMap) {
  for (FeatureMapKind kind : allNamedMaps)
    EXPECT_TRUE(std::isnan(mapped(makeMap(kind), {notANumber, 1.0})[0]))
        << featureMapName(kind);
}

TEST(FeatureMapTest, NamesParseBack) {
  for (FeatureMapKind kind : allNamedMaps)
    EXPECT_EQ(take(FeatureMap::parse(featureMapName(kind))).kind, kind);
  EXPECT_EQ(take(FeatureMap::parse("elu1")).kind, FeatureMapKind::Elu1);
  for (const char *name : {"", "custom", "ELU", "elu+1"})
    expectError(FeatureMap::parse(name),
                "expected feature map to be identity, relu, relu2, elu, elu1, "
                "softmax_kernel or exp, but got \"" +
                    std::string(name) + "\"");
}

TEST(FeatureMapTest, RefusesUnmappableTokens) {
  expectError(applyFeatureMap(Array({2}), makeMap(FeatureMapKind::Custom)),
              "expected feature map custom to have a function, but got none");
  expectError(applyFeatureMap(Array({2}, std::vector<double>{1}), {}),
              "expected input of shape [2] to hold 2 elements, but got 1");
  expectError(applyFeatureMap(Array(std::vector<int64_t>{}), {}),
              "expected input to have at least rank 1, but got 0");
}

//===----------------------------------------------------------------------===//
// Normalizer
//===----------------------------------------------------------------------===//

static Normalize withEps(double eps) {
  return {eps, std::nullopt, std::nullopt};
}
static Normalize withFloor(double floor) {
  return {std::nullopt, floor, std::nullopt};
}

TEST(NormalizeTest, EpsIsAddedAndDefaultsToOneMillionth) {
  EXPECT_EQ(normalizeValue(3.0, 1.5, withEps(0.5)), 1.5);
  EXPECT_EQ(normalizeValue(1.0, 0.0, Normalize()), 1e6);
  EXPECT_EQ(normalizeValue(-1.0, -0.5, withEps(0.0)), 2.0);
}

TEST(NormalizeTest, FloorBoundsAndAddsNothing) {
  EXPECT_DOUBLE_EQ(normalizeValue(-1.0, -0.5, withFloor(1e-4)), -1e4);
  EXPECT_EQ(normalizeValue(3.0, 1.5, withFloor(1e-4)), 2.0);
}

TEST(NormalizeTest, NothingAttendedGivesZero) {
  EXPECT_EQ(normalizeValue(0.0, 0.0, withEps(1e-6)), 0.0);
  EXPECT_EQ(normalizeValue(0.0, 0.0, withEps(0.0)), 0.0);
  EXPECT_EQ(normalizeValue(0.0, 0.0, withFloor(1e-4)), 0.0);
}

TEST(NormalizeTest, ClampComesLast) {
  Normalize normalize = withEps(0.0);
  normalize.clamp = 3.0;
  EXPECT_EQ(normalizeValue(8.0, 2.0, normalize), 3.0);
  EXPECT_EQ(normalizeValue(-8.0, 2.0, normalize), -3.0);
  // The numerator and denominator themselves are not clamped.
  EXPECT_EQ(normalizeValue(8.0, 4.0, normalize), 2.0);
  EXPECT_TRUE(std::isnan(normalizeValue(notANumber, 2.0, normalize)));
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

TEST(ArrayTest, OffsetsAreRowMajor) {
  Array x({2, 3, 4});
  EXPECT_EQ(x.data.size(), 24u);
  EXPECT_EQ(x.offset({1, 2, 3}), 23);
  EXPECT_EQ(x.offset({1, 2}), 20);
  EXPECT_EQ(x.offset({1}), 12);
}

TEST(ArrayTest, SliceTakesTokens) {
  Array x({2, 3, 2}, std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  Array middle = take(slice(x, 1, 1, 3));
  EXPECT_EQ(middle.shape, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(middle.data, (std::vector<double>{2, 3, 4, 5, 8, 9, 10, 11}));
  EXPECT_TRUE(take(slice(x, 1, 2, 2)).data.empty());
  expectError(slice(x, 3, 0, 1), "expected axis below 3, but got 3");
  expectError(slice(x, 1, 2, 4),
              "expected a range within 0 to 3, but got 2 to 4");
}

TEST(CompareTest, RelatesTheLargestDifferenceToTheLargestReference) {
  Array ref({3}, std::vector<double>{1, -4, 2});
  Array out({3}, std::vector<double>{1, -4, 3});
  EXPECT_EQ(compare(out, ref), 0.25);
  EXPECT_EQ(compare(ref, ref), 0.0);
  EXPECT_EQ(compare(Array({2}), Array({2})), 0.0);
  EXPECT_EQ(compare(Array({0}), Array({0})), 0.0);
}

TEST(CompareTest, InfiniteWhenTheArraysCannotAgree) {
  Array ref({2}, std::vector<double>{1, 2});
  EXPECT_EQ(compare(Array({1, 2}, ref.data), ref), infinity);
  EXPECT_EQ(compare(Array({2}, std::vector<double>{1, notANumber}), ref),
            infinity);
  EXPECT_EQ(compare(ref, Array({2}, std::vector<double>{notANumber, 2})),
            infinity);
  EXPECT_EQ(compare(Array({2}, std::vector<double>{1, infinity}), ref),
            infinity);
  EXPECT_EQ(compare(ref, Array({2}, std::vector<double>{1, -infinity})),
            infinity);
  EXPECT_EQ(compare(ref, Array({2})), infinity);
}

TEST(CompareTest, EqualInfinitiesAgreeAndHideNothing) {
  Array ref({2}, std::vector<double>{-infinity, 2});
  EXPECT_EQ(compare(ref, ref), 0.0);
  EXPECT_EQ(compare(Array({2}, std::vector<double>{-infinity, 1}), ref), 0.5);
}
