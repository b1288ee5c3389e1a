//===- SegmentedScanSteps.h - The steps of segments -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_SEGMENTEDSCANSTEPS_H
#define LINATTN_TRANSFORMS_SEGMENTEDSCANSTEPS_H

#include "linattn/Dialect/ScanTraits.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {

/// Rewrites one scan of batch size 1.
class SegmentedScan {
public:
  SegmentedScan(RewriterBase &b, ScanOp op)
      : b(b), loc(op.getLoc()), op(op),
        type(getElementTypeOrSelf(op.getState())), reverse(op.getReverse()),
        additive(getRule(op).isAdditive()) {}

  /// The values of the op's results.
  SmallVector<Value> emit();

private:
  using Sizes = SmallVector<OpFoldResult>;

  // Borders.
  void divide();
  Value createOffsets();

  // Step 1.
  void summarize();
  void copyAttributes(StateOp to);
  ScanOp cloneScan(Value query, Value value, Value output, Value state);
  Value localScan(Value value, Value state);
  Value identities();
  Value totalDecay(Value gate);
  Value factorsOfHeadDecay();
  void collectFactors();

  // Step 2.
  void merge();
  SmallVector<Value> step(ValueRange current, Value segment);
  Value mergeState(StringRef dims, Value current, Value local,
                   ArrayRef<std::pair<StringRef, Value>> factors, Value keepOld,
                   Value keepNew);
  Value insert(Value slice, Value into, Value segment);

  // Helpers.
  Value value(OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  }
  OpFoldResult dim(Value tensor, int64_t position) {
    return tensor::getMixedSize(b, loc, tensor, position);
  }
  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, operands);
  }
  /// The sizes of a state-like tensor, one for each of `count` segments.
  Sizes perSegment(Value state, OpFoldResult count) {
    Sizes sizes = tensor::getMixedSizes(b, loc, state);
    sizes[0] = count;
    return sizes;
  }
  /// Entry `segment` of a tensor of all segments, with that dimension (size 1)
  /// or, reduced, without it and without other dimensions of size 1.
  Value entry(Value all, Value segment);
  Value reducedEntry(Value all, Value segment, ArrayRef<int64_t> kept);

  RewriterBase &b;
  Location loc;
  ScanOp op;
  Type type;
  bool reverse, additive;

  OpFoldResult tokens, length, count, summaries;
  /// The first segment that is summarized: all are but the last to run.
  int64_t first = 0;
  Value offsets, localOffsets;
  /// Per summarized segment: U, and for rank-1 transitions M.
  StateValues local;
  Value transitions;
  /// e^{ΣG}: `[n, H, 1, K]`, `[n, H, 1, 1]` or `[n, H]`, and `[n, H, 1, V]`.
  Value keyFactors, valueFactors;
  /// The states that come in.
  SmallVector<Value> incoming;
};

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_SEGMENTEDSCANSTEPS_H
