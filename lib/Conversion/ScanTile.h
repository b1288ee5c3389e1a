//===- ScanTile.h - Base of a scan's schedules ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a task of a scan finds its tokens, and how one token's operands are
// packed: what the chunk form and the token form of the rank-1 updates have in
// common.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_SCANTILE_H
#define LINATTN_CONVERSION_SCANTILE_H

#include "TileBuilder.h"
#include "linattn/Dialect/ScanTraits.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::linattn {

class ScanTile : public TileBuilder {
public:
  ScanTile(OpBuilder &b, ScanOp scan, TileShape shape)
      : TileBuilder(b, cast<FeatureMappedOpInterface>(scan.getOperation()),
                    getElementTypeOrSelf(scan.getQuery()), shape),
        scan(scan), update(scan.getUpdate()),
        exclusive(scan.getReadout() == Readout::Exclusive),
        before(scan.getTransition() == Transition::Before) {}

protected:
  static int64_t rankOf(Value v) {
    return cast<ShapedType>(v.getType()).getRank();
  }
  /// An input gate folds the decay into the rescaling.
  bool hasScalarDecay() {
    return scan.getDecay() && rankOf(scan.getDecay()) != 4 &&
           !scan.getInputGate();
  }
  bool hasChannelDecay() {
    return scan.getDecay() && rankOf(scan.getDecay()) == 4;
  }
  /// A floor of |den| is relative to the running maximum, if there is one.
  bool hasMovingFloor() {
    return scan.getRunningMax() && scan.getNormalize() &&
           scan.getNormalize()->getAbsFloor();
  }
  bool isStabilised() { return scan.getNormalize().has_value(); }

  /// One task per state head of each sequence, or several, each with some of
  /// its panels, to have `enoughTasks`; `rowMultiple` pads the keys. A task may
  /// come with some tokens at a time, in whole multiples of `spanMultiple`; 0:
  /// with all.
  void forEachTask(int64_t rowMultiple, function_ref<void()> body,
                   int64_t enoughTasks = 1, int64_t spanMultiple = 0);

  /// The token behind a position of the sequence.
  Value tokenAt(Value position) {
    if (!scan.getReverse())
      return position;
    return sub(sub(add(begin, end), index(1)), position);
  }
  Value outputHead(Value member) { return add(mul(head, group), member); }
  Value queryHead(Value member) {
    return headOf(scan.getQuery(), outputHead(member),
                  dim(scan.getOutput(), 1));
  }
  void forEachMember(function_ref<void(Value)> body) {
    if (getConstantIntValue(group) == 1)
      return body(index(0));
    forEach(group, body);
  }
  Value panels() { return div(valueSize, index(shape.cols)); }
  /// The first column of the task's own panel.
  Value columnOf(Value panel) {
    return mul(add(firstPanel, panel), index(shape.cols));
  }
  /// i1: is the token written? Null without a mask.
  Value keepOf(Value token) {
    return scan.getMask() ? load(scan.getMask(), {batch, token}) : Value();
  }

  /// Memory for the rows of operands that are not read where they are, so many
  /// tokens at a time; `others` are operands beside the scan's.
  void allocateStaged(int64_t tokens, ArrayRef<Value> others = {});
  /// Copies such rows of positions [first, first + count) of the task's head,
  /// except queries, and of the queries of one head.
  void stageTokens(Value first, Value count);
  void stageQueries(Value rowHead, Value first, Value count);
  /// Where a token's row of an operand is read, `rowHead` its head.
  Place placeOf(Value operand, Value rowHead, Value token);
  Place queryPlaceOf(Value rowHead, Value token);

  /// `x`, or 0 for a masked token.
  Value written(Value x, Value token);

  // Packing one token into the row `at` of scratch buffers.

  /// φ(k), behind its input gate; returns the factor that rescales the past
  /// where a running maximum is carried, else null. With a `shift`, which
  /// the caller has found, the maximum is carried by them.
  Value packKey(Value token, Value target, ArrayRef<Value> at,
                Value shift = {});
  /// A row of v, times `gain` if there is one.
  void packValue(Value token, Value target, ArrayRef<Value> at,
                 Value gain = {});
  /// scale · φ(q) of a head of queries.
  void packQuery(Value token, Value rowHead, Value target, ArrayRef<Value> at,
                 Value shift = {});
  /// The row a of the transition, from the packed key `keyAt` of the token for
  /// the delta rule, there times `gain` if there is one.
  void packTransition(Value token, Value keys, ArrayRef<Value> keyAt,
                      Value target, ArrayRef<Value> at, Value gain = {});
  /// A row of a gate, of a or of b: copied, 0 for a masked token, or the
  /// exponential. Adds the row to `total`, if there is one.
  void packGate(Value gate, Value token, Value target, ArrayRef<Value> at,
                bool exponential = false, Value total = {});
  /// The logarithm of the token's scalar decay.
  Value logarithmOfDecay(Value token) {
    return loadGate(scan.getDecay(), {batch, head, token});
  }
  /// scale · φ(q)·(bonus ⊙ φ(k)), from the packed rows.
  Value ownWeight(Value queries, ArrayRef<Value> queryAt, Value keys,
                  ArrayRef<Value> keyAt);
  /// Fills a row from an element on, which by default is the first.
  void fillRow(Value target, ArrayRef<Value> at, double value, Value from = {});
  /// Elements of a row in whole vectors; an operand may be read up to there.
  Value wholeVectors(Value size) { return roundUp(size, shape.lanes); }

  /// An output row of a panel, divided where the scan normalises.
  Value normalized(Value o, Value inverse);
  /// Normalises and writes one row of a panel.
  void writeOutput(Value o, Value inverse, Value member, Value token,
                   Value column);

  /// Runs `body` for every vector of a row of `size` elements, which may carry
  /// values; unrolled where that is short.
  SmallVector<Value>
  reduceRow(Value size, ValueRange initial,
            function_ref<SmallVector<Value>(Value, ValueRange)> body);
  /// Mask of the lanes below `size`, which may be negative or large.
  Value firstLanes(Value size) {
    return vector::CreateMaskOp::create(
        b, loc, VectorType::get(shape.lanes, b.getI1Type()), size);
  }
  /// The sums of several vectors, a power of two and at most as many as lanes,
  /// as one vector; in the same order.
  Value sumVectors(SmallVector<Value> vectors) {
    return combineVectors(std::move(vectors),
                          [&](Value x, Value y) { return addf(x, y); });
  }
  /// Their largest elements.
  Value maxVectors(SmallVector<Value> vectors) {
    return combineVectors(std::move(vectors),
                          [&](Value x, Value y) { return larger(x, y); });
  }

  ScanOp scan;
  Update update;
  bool exclusive, before;

  // Sizes: padded key and value size, output heads per state head.
  Value keySize, valueSize, group, heads;
  // The current task.
  Value slot, batch, head, keyHead, valueHead, begin, end;
  // The positions it is to compute now, within [begin, end).
  Value from, to;
  // Its panels, and how many a task has at most.
  Value firstPanel, panelCount, panelsPerTask;

private:
  /// Of operands, without queries; and of these.
  llvm::SmallMapVector<Value, StagedRows, 8> staged;
  StagedRows stagedQueries;

  Value headOfRows(Value operand);
  Value lowestToken(Value first, Value count);
  Value combineVectors(SmallVector<Value> vectors,
                       function_ref<Value(Value, Value)> combine);
  Value locate(Value state);
  void clearOutput();
  Value countColumnTasks(Value states, int64_t enoughTasks);
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_SCANTILE_H
