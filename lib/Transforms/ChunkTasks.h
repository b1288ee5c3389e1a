//===- ChunkTasks.h - Tasks of one head and sequence ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_TRANSFORMS_CHUNKTASKS_H
#define LINATTN_LIB_TRANSFORMS_CHUNKTASKS_H

#include "linattn/Transforms/Recurrence.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::linattn {

/// The recurrence of a task, and the norm of its outputs, or null.
struct Task {
  Operation *op;
  OutputNormOp norm;
};

/// Replaces a scan, a state or a read on tensors, whose head counts are known,
/// and the norm that alone reads its outputs, if not null, by a `scf.forall`
/// over the sequences and heads of its state. A task has all tokens of one
/// sequence, one head of the state, and the heads of the queries that read it.
/// It has all columns of the values, or as many as `columns` says, which divide
/// them; then there is neither a norm nor a normaliser that is read afterwards.
Task makeTasks(RewriterBase &rewriter, const Recurrence &recurrence,
               OutputNormOp norm, int64_t columns = 0);

} // namespace mlir::linattn

#endif // LINATTN_LIB_TRANSFORMS_CHUNKTASKS_H
