//===- FeatureSize.h - How many features a map makes ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_FEATURESIZE_H
#define LINATTN_ANALYSIS_FEATURESIZE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace linattn {

/// The parameters that the size of φ(x) depends on. The state of a head is as
/// many rows high as φ has features.
struct FeatureParameters {
  int64_t headSize;           ///< d, the size of x.
  int64_t randomFeatures = 0; ///< m, rows of the random or trained matrix.
  int64_t shifts = 1;         ///< ν of DPFP.
};

/// The names that `featureSize` takes, each once.
std::vector<std::string_view> getFeatureMapNames();

/// The number of features that the map called `name` makes of a head: the size
/// in its row of FeatureMaps.td.
///
/// Nothing, and the reason in `error`, for an unknown name or a parameter that
/// the map needs and that is not from 1 to 2^30.
std::optional<int64_t> featureSize(std::string_view name,
                                   const FeatureParameters &parameters,
                                   std::string *error = nullptr);

/// The number of features as a polynomial in one size n, the head size or the
/// rows of the map's matrix: (constant + linear·n + quadratic·n²) / 2. The
/// dialect states the shape of `linattn.feature_map` by it.
struct FeatureSizeFormula {
  int64_t constant = 0, linear = 0, quadratic = 0;
  bool countsRows = false; ///< n is the number of rows, not the head size.

  int64_t evaluate(int64_t n) const {
    return (constant + linear * n + quadratic * n * n) / 2;
  }
};

/// The formula of a map; nothing for a name that `featureSize` does not take.
std::optional<FeatureSizeFormula> featureSizeFormula(std::string_view name,
                                                     int64_t shifts = 1);

} // namespace linattn

#endif // LINATTN_ANALYSIS_FEATURESIZE_H
