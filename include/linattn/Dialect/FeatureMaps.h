//===- FeatureMaps.h - Emitting feature maps --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_FEATUREMAPS_H
#define LINATTN_DIALECT_FEATUREMAPS_H

#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

/// True if φ needs the maximum over one token's features before it can be
/// applied: `softmax_kernel` always, `exp` when it is stabilised.
bool needsRowMax(FeatureMapKind kind, bool stabilised);

/// True if each feature is an element of the token as it is, or 0.
bool keepsElements(FeatureMapKind kind);

/// True if the feature of an element 0 is 0.
bool mapsZeroToZero(FeatureMapKind kind);

/// Emits φ of `x`, a scalar or a vector of the accumulation type. Maps that
/// need a maximum get it subtracted by the caller beforehand and are e^x here.
Value emitFeatureMap(OpBuilder &builder, Location loc,
                     FeatureMappedOpInterface op, Value x);

/// Emits the division of `#linattn.normalize` on scalars or vectors of the
/// accumulation type; `tokenType` picks the default eps, 1e-6 for f32 and f64,
/// 1e-4 for f16 and bf16. `runningMax` is the m of a state that an input gate
/// has written, if there is one: what is stored times e^-m.
Value emitNormalize(OpBuilder &builder, Location loc, NormalizeAttr normalize,
                    Type tokenType, Value numerator, Value denominator,
                    Value runningMax = {});

/// The two halves of `emitNormalize` for kernels that divide once per token:
/// the inverse to multiply with (0 for a divisor of 0), and the clamp that
/// follows.
Value emitInverseDenominator(OpBuilder &builder, Location loc,
                             NormalizeAttr normalize, Type tokenType,
                             Value denominator, Value runningMax = {});
Value emitClamp(OpBuilder &builder, Location loc, NormalizeAttr normalize,
                Value value);

/// Emits the constant `value` of a float type or of a vector of them.
Value emitFloat(OpBuilder &builder, Location loc, Type type, double value);

/// True if the two ops apply the same φ.
bool haveSameFeatureMap(FeatureMappedOpInterface a, FeatureMappedOpInterface b);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_FEATUREMAPS_H
