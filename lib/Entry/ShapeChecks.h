//===- ShapeChecks.h - Checks of arguments' shapes --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_ENTRY_SHAPECHECKS_H
#define LINATTN_LIB_ENTRY_SHAPECHECKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::linattn {

/// A relation that the verifier could not decide.
struct ShapeCheck {
  /// i1: whether the relation holds.
  Value holds;
  /// The sizes in the message, of type index.
  SmallVector<Value, 4> sizes;
  /// The message, with `{0}`, `{1}`, … for the sizes.
  std::string message;
};

/// Emits the checks of every op of `func` in front of its entry block's
/// terminator. Remarks name the relations that cannot be checked before the
/// function runs.
SmallVector<ShapeCheck> emitShapeChecks(func::FuncOp func, bool looksAtIndices);

/// Emits checks that no element of the decays among `func`'s arguments is
/// positive or NaN.
SmallVector<ShapeCheck> emitDecayChecks(func::FuncOp func);

} // namespace mlir::linattn

#endif // LINATTN_LIB_ENTRY_SHAPECHECKS_H
