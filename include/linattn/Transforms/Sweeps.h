//===- Sweeps.h - Sweeps as scans -------------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_SWEEPS_H
#define LINATTN_TRANSFORMS_SWEEPS_H

#include "linattn/Dialect/LinAttnSweep.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::linattn {

/// Expands a sweep on tensors into scans. Returns the sweep's results, in
/// order.
SmallVector<Value> buildSplitSweep(OpBuilder &b, SweepOp op);
/// Replaces the sweep by these scans.
void splitSweep(RewriterBase &rewriter, SweepOp op);
/// Splits all sweeps on tensors; returns their number.
int64_t splitSweeps(Operation *root);

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_SWEEPS_H
