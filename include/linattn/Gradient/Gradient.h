//===- Gradient.h - Vector-Jacobian products --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_GRADIENT_GRADIENT_H
#define LINATTN_GRADIENT_GRADIENT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::linattn {

/// How gradients of recurrences may run as loops over chunks.
struct ChunkLoops {
  int64_t tokens = 0; ///< Tokens of a chunk; 0 for no such loops.
  int64_t vectorBits = 512;
};

/// The cotangents of values while a program is walked backwards. A value
/// without one has the cotangent zero.
class Cotangents {
public:
  ChunkLoops chunks;

  /// Declares that `value` depends on an operand of the gradient.
  void activate(Value value) { active.insert(value); }
  bool isActive(Value value) const { return active.contains(value); }

  /// Marks the float results of ops with an active operand as active, in the
  /// order of the ops. Operands of nested ops count as well.
  void activateThrough(ArrayRef<Operation *> ops);

  /// The sum of the cotangents, null for zero.
  Value get(Value value) const { return values.lookup(value); }

  /// Adds `cotangent` to that of `value`, in the order of the calls. Does
  /// nothing if the value is not active or the cotangent is null.
  void add(OpBuilder &b, Value value, Value cotangent);

private:
  DenseMap<Value, Value> values;
  DenseSet<Value> active;
};

/// Walks `ops` backwards and adds the cotangents of all their operands. An op
/// without a gradient is an error on it.
LogicalResult differentiate(OpBuilder &b, ArrayRef<Operation *> ops,
                            Cotangents &cotangents);

/// Adds the gradient of `op` by way of other ops that compute the same.
/// `rewrite` builds them and returns one value (or null) for each result; these
/// ops are then differentiated.
LogicalResult differentiateThrough(
    OpBuilder &b, Operation *op, Cotangents &cotangents,
    function_ref<FailureOr<SmallVector<Value>>(OpBuilder &)> rewrite);

/// Gives the ops of linattn, arith, math, tensor and linalg their gradients.
void registerGradientExternalModels(DialectRegistry &registry);

} // namespace mlir::linattn

#include "linattn/Gradient/GradientInterface.h.inc"

#endif // LINATTN_GRADIENT_GRADIENT_H
