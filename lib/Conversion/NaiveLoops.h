//===- NaiveLoops.h - Scalar loops of every op ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Scalar loops that follow the ops' descriptions literally. Every other
// execution of IR is checked against them.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CONVERSION_NAIVELOOPS_H
#define LINATTN_LIB_CONVERSION_NAIVELOOPS_H

#include "LoopBuilder.h"

#include "linattn/Dialect/LinAttn.h"

#include <limits>

namespace mlir::linattn {

/// The base of all ops' loops: φ, the token type and the scale.
class NaiveOp : public LoopBuilder {
public:
  NaiveOp(OpBuilder &b, FeatureMappedOpInterface op, Value tokens, Scale scale,
          bool stabilised)
      : LoopBuilder(b, op->getLoc()), op(op),
        tokenType(getElementTypeOrSelf(tokens)), type(getAccumulationType(op)),
        scale(scale), rowMax(needsRowMax(op.getFeatureMapKind(), stabilised)) {}

  Value zero() { return constant(type, 0.0); }
  Value loadAs(Value memref, ValueRange indices) {
    return convert(load(memref, indices), type);
  }

  /// The start of a maximum.
  Value lowestStart() {
    return constant(type, -std::numeric_limits<double>::infinity());
  }
  Value maximumOf(Value tokens, Value batch, Value head, Value t) {
    return reduce(dim(tokens, 3), lowestStart(), [&](Value d, Value best) {
      return maxf(best, loadAs(tokens, {batch, head, t, d}));
    });
  }
  /// The shift φ of one query needs, or nothing.
  Value queryShift(Value tokens, Value batch, Value head, Value t) {
    return rowMax ? maximumOf(tokens, batch, head, t) : Value();
  }
  /// φ of one element.
  Value feature(Value tokens, ValueRange indices, Value shift) {
    Value x = loadAs(tokens, indices);
    if (shift)
      x = subf(x, shift);
    return emitFeatureMap(b, loc, op, x);
  }
  Value scaled(Value x) { return scale.apply(b, loc, x); }
  Value normalized(std::optional<NormalizeAttr> normalize, Value num, Value den,
                   Value runningMax = {}) {
    return normalize ? emitNormalize(b, loc, *normalize, tokenType, num, den,
                                     runningMax)
                     : num;
  }

  FeatureMappedOpInterface op;
  Type tokenType, type;
  Scale scale;
  bool rowMax;
};

/// Emit an op on buffers as loops at the builder's insertion point; with
/// `lanes` threads of a GPU share a task.
void lowerToNaiveLoops(OpBuilder &b, ScanOp op, bool lanes);
void lowerToNaiveLoops(OpBuilder &b, StateOp op, bool lanes);
void lowerToNaiveLoops(OpBuilder &b, ReadOp op, bool lanes);
void lowerToNaiveLoops(OpBuilder &b, QuadraticOp op, bool lanes);
void lowerToNaiveLoops(OpBuilder &b, FeatureMapOp op, bool lanes);

} // namespace mlir::linattn

#endif // LINATTN_LIB_CONVERSION_NAIVELOOPS_H
