//===- OperandLoops.h - Loops of the structured ops -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_OPERANDLOOPS_H
#define LINATTN_DIALECT_OPERANDLOOPS_H

#include "mlir/IR/Operation.h"

namespace mlir::linattn {

/// For each operand of a structured op the loop of each of its dimensions: 0
/// the batch, 1 the head, 2 the token, -1 for a dimension that is never split.
/// Empty for ops without such loops.
SmallVector<SmallVector<int, 4>> getOperandLoops(Operation *op);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_OPERANDLOOPS_H
