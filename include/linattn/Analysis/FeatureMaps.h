//===- FeatureMaps.h - The table of feature maps ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The size, the sign and the parameters of each map, which the verifier, shape
// inference, sign analysis, the lowerings and Python look up here. The rows are
// in FeatureMaps.td.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_FEATUREMAPS_H
#define LINATTN_ANALYSIS_FEATUREMAPS_H

#include "linattn/Analysis/FeatureSize.h"

namespace linattn {

/// The known sign of numbers, from the weakest claim to the strongest.
enum class Sign { Any, NotNegative, Positive };

/// One parameter of a map, in the order of `linattn.feature_map`'s `params`.
struct MapParameter {
  enum Shape {
    Matrix,       ///< [m, d]
    Square,       ///< [d, d]
    VectorOfRows, ///< [m]
    VectorOfSize, ///< [d]
  };

  std::string_view name;
  Shape shape;
  bool isOptional = false;

  bool isMatrix() const { return shape == Matrix || shape == Square; }
  /// The rank of a parameter that serves all heads. One per head has one more.
  int64_t rank() const { return isMatrix() ? 2 : 1; }
};

/// One map φ.
struct FeatureMapTraits {
  /// The dialect's spelling.
  std::string_view name;
  /// φ(x), in words for people.
  std::string_view formula = {};
  /// Who proposed it, if anyone.
  std::string_view source = {};
  /// The number of features. With shifts, the linear part counts ν times.
  FeatureSizeFormula size = {};
  /// The sign of φ(x). That of a logarithm is `Any`.
  Sign sign = Sign::Any;
  /// The sign of φ(q)·φ(k) with the same parameters, where it says more than
  /// `sign`.
  Sign weightSign = Sign::Any;
  std::vector<MapParameter> parameters = {};
  /// The default eps. A map without an eps has none.
  std::optional<double> eps = std::nullopt;
  enum Flags : unsigned {
    Log = 1,       ///< It may leave its exponential to a consumer.
    Shifts = 2,    ///< ν
    Positions = 4, ///< One for each token, and `max_length`.
    Random = 8,    ///< A matrix drawn at random: features estimate a kernel.
    Token = 16,    ///< It needs a whole token.
    Variant = 32,  ///< In Python an option of the map before it.
  };
  unsigned flags = 0;

  bool has(Flags flag) const { return flags & flag; }
};

/// Every named map, each once.
const std::vector<FeatureMapTraits> &getFeatureMaps();

/// The map of that name; null for an unknown one.
const FeatureMapTraits *findFeatureMap(std::string_view name);

} // namespace linattn

#endif // LINATTN_ANALYSIS_FEATUREMAPS_H
