//===- FeatureMaps.cpp - The table of feature maps ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FeatureMaps.h"

using namespace linattn;

/// Sizes, twice those that they stand for.
static constexpr FeatureSizeFormula sameSize{0, 2, 0}, twiceTheSize{0, 4, 0},
    pairs{0, 1, 1}, rows{0, 2, 0, /*countsRows=*/true},
    twiceTheRows{0, 4, 0, /*countsRows=*/true};

const std::vector<FeatureMapTraits> &linattn::getFeatureMaps() {
  using T = FeatureMapTraits;
  constexpr Sign any = Sign::Any, notNegative = Sign::NotNegative,
                 positive = Sign::Positive;
  static const std::vector<MapParameter> none,
      projection{{"W", MapParameter::Matrix}},
      square{{"W", MapParameter::Square}},
      affine{{"W", MapParameter::Matrix},
             {"b", MapParameter::VectorOfRows, /*isOptional=*/true}},
      two{{"W1", MapParameter::Matrix}, {"W2", MapParameter::Matrix}},
      twoSquare{{"W1", MapParameter::Square}, {"W2", MapParameter::Square}},
      norm{{"gamma", MapParameter::VectorOfSize},
           {"beta", MapParameter::VectorOfSize}};

  static const std::vector<FeatureMapTraits> maps = {
      {"identity", sameSize},
      {"relu", sameSize, notNegative},
      {"relu2", sameSize, notNegative},
      {"elu1", sameSize, positive},
      {"softmax_kernel", sameSize, positive},
      {"exp", sameSize, positive},
      {"softmax", sameSize, positive},
      {"l2norm", sameSize, any, any, none, 1e-6},
      {"sum_norm", sameSize, any, any, none, 1e-4},
      {"favor", rows, positive, any, projection, {}, T::Log | T::Random},
      {"favor_hyperbolic",
       twiceTheRows,
       positive,
       any,
       projection,
       {},
       T::Log | T::Random},
      {"random_fourier", twiceTheRows, any, any, projection, {}, T::Random},
      {"random_fourier_exp", twiceTheRows, any, any, projection, {}, T::Random},
      {"t2r", rows, notNegative, any, affine},
      {"hadamard", rows, any, any, two},
      // Angles from 0 to π/2.
      {"cosformer", twiceTheSize, notNegative, any, none, {}, T::Positions},
      {"hedgehog", twiceTheSize, positive, any, square},
      {"hedgehog_exp", twiceTheSize, positive, any, square, {}, T::Log},
      {"dpfp", twiceTheSize, notNegative, any, none, {}, T::Shifts},
      // Weights 1 + y + y²/2 and y².
      {"taylor", {2, 3, 1}, any, positive},
      {"taylor_full", {2, 2, 2}, any, positive},
      {"rebased", pairs, any, notNegative, norm, 1e-5},
      {"outer_product", pairs, any, any, twoSquare},
  };
  return maps;
}

const FeatureMapTraits *linattn::findFeatureMap(std::string_view name) {
  for (const FeatureMapTraits &map : getFeatureMaps())
    if (map.name == name)
      return &map;
  return nullptr;
}
