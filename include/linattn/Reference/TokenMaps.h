//===- TokenMaps.h - Feature maps of whole tokens ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle of `linattn.feature_map`: maps that need a whole token, have
// parameters, or make another number of features.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_REFERENCE_TOKENMAPS_H
#define LINATTN_REFERENCE_TOKENMAPS_H

#include "linattn/Reference/Reference.h"

namespace linattn::reference {

/// A map with its parameters, as `linattn.feature_map` takes them.
struct TokenMap {
  /// "favor", "taylor", …: the names of the dialect.
  std::string name;
  /// Matrices [m, d] or [H, m, d], vectors [n] or [H, n].
  std::vector<Array> parameters = {};
  /// [T] or [B, T], for cosformer.
  std::optional<Array> positions = std::nullopt;
  /// ν of dpfp.
  int64_t shifts = 1;
  /// M of cosformer.
  int64_t maxLength = 0;
  /// Multiplies x beforehand.
  double scale = 1.0;
  /// Of l2norm (1e-6), sum_norm (1e-4), rebased (1e-5).
  std::optional<double> eps = std::nullopt;
  /// The logarithm of favor, favor_hyperbolic, hedgehog_exp.
  bool log = false;
};

/// φ of every token of [B, H, T, d].
Result<Array> applyTokenMap(const Array &x, const TokenMap &map);

/// The names that `applyTokenMap` knows.
std::vector<std::string> getTokenMapNames();

} // namespace linattn::reference

#endif // LINATTN_REFERENCE_TOKENMAPS_H
