//===- ChunkTasks.h - Tasks of one head and sequence ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_TRANSFORMS_CHUNKTASKS_H
#define LINATTN_LIB_TRANSFORMS_CHUNKTASKS_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::linattn {

/// Replaces a scan, a state or a read on tensors, whose head counts are known,
/// by a `scf.forall` over the sequences and heads of its state. Returns the op
/// of one task: all tokens of one sequence, one head of the state, and the
/// heads of the queries that read it.
Operation *makeTasks(RewriterBase &rewriter, Operation *op);

} // namespace mlir::linattn

#endif // LINATTN_LIB_TRANSFORMS_CHUNKTASKS_H
