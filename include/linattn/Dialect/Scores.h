//===- Scores.h - The scores of attention -----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_SCORES_H
#define LINATTN_DIALECT_SCORES_H

#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

/// i1: whether a query at `position` sees `key` under the pattern. The caller
/// handles causality. Numbers are of type index, or vectors of it.
Value emitSees(OpBuilder &b, Location loc, PatternAttr pattern, Value position,
               Value key);

/// The score of softmax attention after softcap and ALiBi's bias, a scalar or a
/// vector of the accumulation type. `slope` is a scalar of that type, or null
/// without slopes; position and key are as above.
Value emitAdjustedScore(OpBuilder &b, Location loc, QuadraticOp op, Value score,
                        Value slope, Value position, Value key);

/// The derivative of the softcap at a score before it, 1 − tanh²; null without
/// a softcap.
Value emitCapDerivative(OpBuilder &b, Location loc, QuadraticOp op,
                        Value score);

/// |position − key| in `type`, a float or a vector of them.
Value emitDistance(OpBuilder &b, Location loc, Type type, Value position,
                   Value key);

/// The share of weights that are dropped, by the bits that a seed gives.
struct Dropout {
  Value seed;
  double share;
  /// Of `linattn.softmax` or its gradient.
  template <typename OpTy>
  static std::optional<Dropout> of(OpTy op) {
    if (!op.getSeed())
      return std::nullopt;
    return Dropout{op.getSeed(), op.getDropout()->convertToDouble()};
  }
};

/// The factor of a weight of type `type`, or of a vector of them: 0 where it is
/// dropped, or 1 / (1 − share). The numbers are of type index; `query` is a
/// vector of them where `type` is one.
Value emitKept(OpBuilder &b, Location loc, Type type, const Dropout &dropout,
               Value batch, Value head, Value query, Value key);

/// True if `emitAdjustedScore` changes the score.
bool adjustsScores(QuadraticOp op);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_SCORES_H
