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

/// The loop of each dimension of an operand; kNoLoop for a dimension that is
/// never split.
using DimLoops = SmallVector<int64_t, 5>;
constexpr int64_t kNoLoop = -1;

/// The loops of each operand of a structured op: 0 the batch, 1 the head, 2 the
/// token. Empty for ops without such loops.
SmallVector<DimLoops> getOperandLoops(Operation *op);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_OPERANDLOOPS_H
