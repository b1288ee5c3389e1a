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

/// i1: may a query at `position` see `key` under the pattern? Causality is the
/// caller's. Numbers are of type index, or vectors of it.
Value emitSees(OpBuilder &b, Location loc, PatternAttr pattern, Value position,
               Value key);

/// The score of softmax attention after softcap and ALiBi's bias: a scalar or a
/// vector of the accumulation type, `slope` one of its scalars or null without
/// slopes, position and key as above.
Value emitAdjustedScore(OpBuilder &b, Location loc, QuadraticOp op, Value score,
                        Value slope, Value position, Value key);

/// The derivative of the softcap at a score before it, 1 − tanh²; null without
/// a softcap.
Value emitCapDerivative(OpBuilder &b, Location loc, QuadraticOp op,
                        Value score);

/// |position − key| in `type`, a float or a vector of them.
Value emitDistance(OpBuilder &b, Location loc, Type type, Value position,
                   Value key);

/// True if `emitAdjustedScore` returns another score than it is given.
bool adjustsScores(QuadraticOp op);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_SCORES_H
