//===- EmitLoop.h - A loop that carries values ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_EMITLOOP_H
#define LINATTN_DIALECT_EMITLOOP_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::linattn {

/// Emits a loop in place; `body` gets the iteration and the carried values, and
/// returns the next ones. Unlike the builder of `scf.for`, the loop has its
/// place in a function while `body` runs, which may look for its parents.
inline SmallVector<Value>
emitLoop(OpBuilder &b, Location loc, Value from, Value to, Value step,
         ValueRange initial,
         function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, step, initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  // Without values to carry, the loop was made with its terminator.
  if (!initial.empty())
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_EMITLOOP_H
