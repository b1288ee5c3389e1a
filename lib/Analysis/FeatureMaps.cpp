//===- FeatureMaps.cpp - The table of feature maps ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FeatureMaps.h"

using namespace linattn;

namespace {

using Parameters = std::vector<MapParameter>;

/// A row, the fields in the order of FeatureMaps.td.
struct FeatureMapRow {
  unsigned number;
  const char *name, *formula, *source;
  FeatureSizeFormula size;
  Sign sign, weightSign;
  const Parameters &parameters;
  std::optional<double> eps;
  unsigned flags;
};

} // namespace

const std::vector<FeatureMapTraits> &linattn::getFeatureMaps() {
  // The names in the rows. Sizes are doubled, so that they are integers.
  using T = FeatureMapTraits;
  constexpr FeatureSizeFormula sameSize{0, 2, 0}, twiceTheSize{0, 4, 0},
      pairs{0, 1, 1}, upToPairs{2, 3, 1}, upToAllPairs{2, 2, 2},
      rows{0, 2, 0, /*countsRows=*/true},
      twiceTheRows{0, 4, 0, /*countsRows=*/true};
  constexpr Sign any = Sign::Any, notNegative = Sign::NotNegative,
                 positive = Sign::Positive;
  static const Parameters none, projection{{"W", MapParameter::Matrix}},
      square{{"W", MapParameter::Square}},
      affine{{"W", MapParameter::Matrix},
             {"b", MapParameter::VectorOfRows, /*isOptional=*/true}},
      two{{"W1", MapParameter::Matrix}, {"W2", MapParameter::Matrix}},
      twoSquare{{"W1", MapParameter::Square}, {"W2", MapParameter::Square}},
      norm{{"gamma", MapParameter::VectorOfSize},
           {"beta", MapParameter::VectorOfSize}};
  static const std::vector<FeatureMapTraits> maps = [&] {
#define GET_FeatureMapTable_IMPL
#include "linattn/Analysis/FeatureMaps.inc"
    std::vector<FeatureMapTraits> maps;
    for (const FeatureMapRow &row : FeatureMapTable)
      maps.push_back({row.name, row.formula, row.source, row.size, row.sign,
                      row.weightSign, row.parameters, row.eps, row.flags});
    return maps;
  }();
  return maps;
}

const FeatureMapTraits *linattn::findFeatureMap(std::string_view name) {
  for (const FeatureMapTraits &map : getFeatureMaps())
    if (map.name == name)
      return &map;
  return nullptr;
}
