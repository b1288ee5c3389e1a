//===- SignAnalysis.h - The sign of attention weights -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A normalised output is divided by a sum of weights φ(q)·φ(k). It stays away
// from zero only if the weights are positive.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_SIGNANALYSIS_H
#define LINATTN_DIALECT_SIGNANALYSIS_H

#include "linattn/Analysis/FeatureMaps.h"
#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

using ::linattn::Sign;

/// The sign of every feature of a map, for any token. The arithmetic of a
/// region is evaluated on intervals, branches on the argument included.
Sign getFeatureSign(FeatureMappedOpInterface op);

/// The sign of φ(q)·φ(k), where `query` and `key` may be mapped already (by
/// `linattn.feature_map`) before the op applies its own map. Null stands for
/// unknown tokens.
Sign getWeightSign(FeatureMappedOpInterface op, Value query, Value key);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_SIGNANALYSIS_H
