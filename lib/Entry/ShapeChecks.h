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

/// One thing that the verifier could not decide.
struct ShapeCheck {
  /// i1.
  Value holds;
  /// The sizes that the message shows, of type index.
  SmallVector<Value, 4> sizes;
  /// With `{0}`, `{1}`, … for the sizes.
  std::string message;
};

/// Emits the checks of every op of `func` in front of its entry block's
/// terminator. Remarks name the relations that cannot be checked before the
/// function runs.
SmallVector<ShapeCheck> emitShapeChecks(func::FuncOp func, bool looksAtIndices);

/// The same for decays that are arguments of `func`: no element of them may be
/// positive or NaN.
SmallVector<ShapeCheck> emitDecayChecks(func::FuncOp func);

} // namespace mlir::linattn

#endif // LINATTN_LIB_ENTRY_SHAPECHECKS_H
