//===- SweepSelective.h - The sums of linattn.sweep_selective ---*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_SWEEPSELECTIVE_H
#define LINATTN_CONVERSION_SWEEPSELECTIVE_H

#include "ChannelTasks.h"
#include "linattn/Dialect/LinAttnSweep.h"

namespace mlir::linattn {

/// The sums of tasks, [tasks of a sequence, B, T, N] for b and c and
/// [sequences, C, N] for a, and how they are added up.
class SweepSelective : public ChannelTasks {
public:
  /// States at a time: each takes its cotangent, a and the sum of da.
  static constexpr int64_t rows = 2;
  /// Vectors of channels whose sums for b and c are added in vectors.
  static constexpr int64_t strips = 4;

  SweepSelective(OpBuilder &b, SweepSelectiveOp op, int64_t width, Value groups)
      : ChannelTasks(b, op, width, groups,
                     LoopBuilder(b, op.getLoc()).dim(op.getA(), 1), rows),
        op(op), groups(groups),
        // No groups, no tasks; but the division is made before any.
        perGroup(div(dim(op.getInput(), 2), max(groups, index(1)))),
        blocks(ceilDiv(perGroup, strips * width)) {
    allocateSums();
  }

  void emit();

  SweepSelectiveOp op;
  /// Channels of a group, and their tasks.
  const Value groups, perGroup, blocks;
  Value bSums, cSums, aSums;

private:
  void allocateSums();
  /// The sum of `count` elements of `sums` along dimension 0.
  Value sumTasks(Value count, Value sums, ValueRange first);
  void addProjections();
  void addDecays();
};

/// Emits the task `inSlot` of a sequence: some channels of one group.
void emitSweepTask(const SweepSelective &sweep, Value sequence, Value inSlot);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_SWEEPSELECTIVE_H
