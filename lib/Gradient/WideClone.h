//===- WideClone.h - A function's ops in f32 --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_WIDECLONE_H
#define LINATTN_LIB_GRADIENT_WIDECLONE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::linattn {

/// Clones the ops of `source` but its terminator, with f32 for floats of 16
/// bits: arguments and constants are extended once, and nothing in between is
/// rounded to 16 bits, so that neither are cotangents. `mapping` gets the
/// clone's value of each value of `source`. Where an op depends on the width of
/// its numbers the clone keeps all types, and a remark names the op.
SmallVector<Operation *> cloneWide(OpBuilder &b, Block &source,
                                   ValueRange arguments, IRMapping &mapping);

/// `value` extended or truncated to a type of the same shape.
Value convertTo(OpBuilder &b, Value value, Type type);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_WIDECLONE_H
