//===- FeatureMapsTest.cpp - The table of feature maps --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FeatureMaps.h"
#include "linattn/Reference/TokenMaps.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace linattn;
namespace ref = linattn::reference;

namespace {

ref::Array fill(std::vector<int64_t> shape, double step) {
  ref::Array array(shape);
  for (size_t i = 0; i < array.data.size(); ++i)
    array.data[i] = std::sin(step * double(i + 1));
  return array;
}

/// Features of 5 tokens of size 4; matrices of 6 rows.
ref::Array featuresOf(const FeatureMapTraits &traits) {
  ref::TokenMap map{std::string(traits.name)};
  double step = 0.7;
  for (const MapParameter &parameter : traits.parameters) {
    step += 0.6;
    int64_t rows = parameter.shape == MapParameter::Matrix ||
                           parameter.shape == MapParameter::VectorOfRows
                       ? 6
                       : 4;
    map.parameters.push_back(parameter.isMatrix() ? fill({rows, 4}, step)
                                                  : fill({rows}, step));
  }
  if (traits.has(FeatureMapTraits::Shifts))
    map.shifts = 3;
  if (traits.has(FeatureMapTraits::Positions)) {
    map.positions = ref::Array({5});
    for (int64_t t = 0; t < 5; ++t)
      map.positions->data[t] = double(t);
    map.maxLength = 5;
  }
  auto features = ref::applyTokenMap(fill({1, 1, 5, 4}, 0.9), map);
  EXPECT_TRUE(bool(features)) << traits.name;
  return *features;
}

// The oracle states each map by itself: sizes and signs of the table hold for
// its features.
TEST(FeatureMaps, SizesAndSignsAreThoseOfTheOracle) {
  std::vector<std::string> names = ref::getTokenMapNames();
  for (const FeatureMapTraits &traits : getFeatureMaps()) {
    SCOPED_TRACE(traits.name);
    bool isKnown =
        std::find(names.begin(), names.end(), traits.name) != names.end();
    EXPECT_EQ(isKnown, traits.has(FeatureMapTraits::Token));
    if (!isKnown)
      continue;
    ref::Array features = featuresOf(traits);
    FeatureSizeFormula size = *featureSizeFormula(traits.name, 3);
    EXPECT_EQ(features.dim(3), size.evaluate(size.countsRows ? 6 : 4));
    double least =
        *std::min_element(features.data.begin(), features.data.end());
    if (traits.sign == Sign::Positive)
      EXPECT_GT(least, 0.0);
    if (traits.sign == Sign::NotNegative)
      EXPECT_GE(least, 0.0);
    if (traits.sign == Sign::Any && traits.weightSign == Sign::Any)
      EXPECT_LT(least, 0.0);
  }
}

TEST(FeatureMaps, WeightsHaveTheSignOfTheTable) {
  for (const FeatureMapTraits &traits : getFeatureMaps()) {
    if (traits.weightSign == Sign::Any)
      continue;
    SCOPED_TRACE(traits.name);
    EXPECT_GT(traits.weightSign, traits.sign);
    ref::Array features = featuresOf(traits);
    int64_t size = features.dim(3);
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 5; ++j) {
        double weight = 0.0;
        for (int64_t n = 0; n < size; ++n)
          weight += features.at({0, 0, i, n}) * features.at({0, 0, j, n});
        EXPECT_GE(weight, -1e-12);
      }
  }
}

TEST(FeatureMaps, AreFoundByName) {
  for (const FeatureMapTraits &traits : getFeatureMaps())
    EXPECT_EQ(findFeatureMap(traits.name), &traits);
  EXPECT_EQ(findFeatureMap("region"), nullptr);
}

} // namespace
