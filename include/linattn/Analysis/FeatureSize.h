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

/// What the size of φ(x) depends on. The state of a head is as many rows high
/// as φ has features.
struct FeatureParameters {
  int64_t headSize;           ///< d, the size of x.
  int64_t randomFeatures = 0; ///< m, rows of the random or trained matrix.
  int64_t shifts = 1;         ///< ν of DPFP.
};

/// The names that `featureSize` takes, each once.
std::vector<std::string_view> getFeatureMapNames();

/// The number of features that the map called `name` makes of a head:
///
///   identity, relu, relu2, elu1, softmax_kernel, exp, l2norm      d
///   favor (FAVOR+), t2r, hadamard                                 m
///   favor_hyperbolic, random_fourier                              2m
///   cosformer, hedgehog                                           2d
///   dpfp                                                          2dν
///   taylor                                         1 + d + d(d + 1)/2
///   rebased, outer_product                                 d(d + 1)/2
///
/// Nothing, and the reason in `error`, for an unknown name or a parameter that
/// the map needs and that is not from 1 to 2^30.
std::optional<int64_t> featureSize(std::string_view name,
                                   const FeatureParameters &parameters,
                                   std::string *error = nullptr);

} // namespace linattn

#endif // LINATTN_ANALYSIS_FEATURESIZE_H
