//===- ScanNormalForm.h - Scans as their gradient sees them -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_SCANNORMALFORM_H
#define LINATTN_LIB_GRADIENT_SCANNORMALFORM_H

#include "TensorBuilder.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Gradient/Gradient.h"

namespace mlir::linattn {

/// An error on scans that have no gradient yet.
LogicalResult checkScanGradient(ScanOp op);

/// The number of heads of [B, H, …].
inline int64_t headsOf(Value tokens) {
  return cast<ShapedType>(tokens.getType()).getDimSize(1);
}

/// Fails unless head counts are static: they determine which heads share
/// others.
LogicalResult checkKnownHeads(Operation *op, ValueRange values);

/// True if the scan is more than the additive or dplr recurrence of equal heads
/// on tokens of the state's type.
bool needsNormalForm(ScanOp op);

/// The same scan by such a recurrence and the ops around it. Returns a value
/// for each result; null for snapshots, unless `keepsStates`.
SmallVector<Value> buildNormalForm(ScanOp op, OpBuilder &b, bool keepsStates);

/// φ of the tokens in the builder's element type; without φ, they themselves.
Value buildFeatures(TensorBuilder &t, FeatureMappedOpInterface op,
                    Value tokens);

/// e^{x − max x} of each token, which is what the map `exp` makes of queries
/// under a normalizer.
Value buildStabilised(TensorBuilder &t, Value tokens);

/// Numerators [B, H, T, D] over denominators [B, H, T]; `runningMax`, [B, H, T]
/// or [B, H], is what an absolute floor is relative to, if anything.
Value buildQuotient(TensorBuilder &t, NormalizeAttr normalize, Type tokenType,
                    Value numerator, Value denominator, Value runningMax = {});

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_SCANNORMALFORM_H
