//===- ScanTile.h - Base of a scan's schedules ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The scopes that all forms of a scan are emitted in. An object is made where
// the values of its scope are defined, and holds them as constants. A task
// finds its state and its tokens; a block packs some of them.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_SCANTILE_H
#define LINATTN_CONVERSION_SCANTILE_H

#include "OutputNorm.h"
#include "TileBuilder.h"
#include "linattn/Dialect/ScanTraits.h"

#include "linattn/Transforms/Recurrence.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::linattn {

/// A recurrence, its sizes, and its division into tasks.
class ScanTile : public TileBuilder {
public:
  /// Keys are padded to whole vectors and to multiples of `rowMultiple`.
  ScanTile(OpBuilder &b, const Recurrence &recurrence, TileShape shape,
           int64_t rowMultiple, LengthRange range = {});

  /// A task: some panels of a state head of one sequence.
  struct Task {
    Value slot;               ///< Row of the state.
    Value batch;              ///< Of the tokens.
    Value head;               ///< Of the state.
    Value keyHead, valueHead; ///< Heads of keys and values.
    Value begin, end;         ///< Tokens of the sequence.
    Value from, to;           ///< Positions of this task, in [begin, end).
    Value firstPanel, panelCount;
    Value mostPanels; ///< Panels of the largest task.
  };
  /// One task per state head of each sequence, or `columnTasks` of them, each
  /// with some of its panels. A task may come with some tokens at a time, in
  /// whole multiples of `spanMultiple`; 0: with all.
  void forEachTask(Value columnTasks, int64_t spanMultiple,
                   function_ref<void(const Task &)> body);
  /// State heads of all sequences.
  Value countStates();
  /// `count` tasks per state head, as far as its columns are independent and
  /// there are panels for them. The normalizer and the running maximum belong
  /// to all columns.
  Value countColumnTasks(Value count);

  /// An input gate folds the decay into the rescaling.
  bool hasScalarDecay() const {
    return r.decay && rankOf(r.decay) != 4 && !r.inputGate;
  }
  bool hasChannelDecay() const { return r.decay && rankOf(r.decay) == 4; }
  /// A floor of |den| is relative to the running maximum, if there is one.
  bool hasMovingFloor() const {
    return r.state.runningMax && r.normalize && r.normalize->getAbsFloor();
  }
  bool isStabilised() const {
    return r.query ? r.normalize.has_value() : bool(r.state.normalizer);
  }

  bool hasTransition() const { return getRule(update).couplesRows(); }
  /// One factor decays or rescales the whole state.
  bool hasScalarGate() const {
    return !hasChannelDecay() && (hasScalarDecay() || r.state.runningMax);
  }
  /// a = −β k with β a number per token: the rows of keys are enough to compute
  /// it.
  bool readsKeys() const {
    return getRule(update).correctsValues() && !r.erase && !hasChannelDecay();
  }
  /// A transition that writes the key: V + R is written as one.
  bool writesKeys() {
    return getRule(update).isGiven && r.b == r.key &&
           op.getFeatureMapKind() == FeatureMapKind::Identity && !r.mask &&
           !r.inputGate;
  }
  /// Whether the values written under the keys are solved for: δ or V + R.
  bool solvesWritten() {
    return getRule(update).correctsValues() || writesKeys();
  }
  /// The query is a, and sees what a sees: the outputs are R.
  bool readsTransition() {
    return getRule(update).isGiven && before && exclusive && r.query == r.a &&
           !r.mask && !r.bonus && r.scale.isOne() &&
           op.getFeatureMapKind() == FeatureMapKind::Identity;
  }
  /// The rows that are written: of values, and of what is solved for.
  int64_t writers() { return writesKeys() ? 1 : getRule(update).countWrites(); }
  /// The writer whose scores along the values follow from the solution.
  int64_t solvedWriter() { return writers() - 1; }

  void forEachMember(function_ref<void(Value)> body) {
    if (getConstantIntValue(group) == 1)
      return body(index(0));
    forEach(group, body);
  }
  Value panels() { return div(valueSize, index(shape.cols)); }

  /// Runs `body` where the condition holds, which is always so without one.
  void ifTrue(Value condition, function_ref<void()> body);

  /// Fills a row from an element on, which by default is the first.
  void fillRow(Value target, ArrayRef<Value> at, double value, Value from = {});
  /// Elements of a row in whole vectors; an operand may be read up to there.
  Value wholeVectors(Value size) { return roundUp(size, shape.lanes); }
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

  const Recurrence r;
  const Update update;
  const bool exclusive, before;
  /// State heads, output heads per state head, padded key and value size.
  const Value heads, group, keySize, valueSize;

private:
  void clearOutput(const Task &task);
};

/// The scope of one task, made where its values are: scratch memory, released
/// by `freeScratch`, and the state.
class ScanTask : public ScanTile {
public:
  /// Allocates memory for the rows of operands that are not read where they
  /// are, so many tokens at a time; `others` are operands beside those of the
  /// recurrence.
  ScanTask(const ScanTile &tile, const Task &task, int64_t tokens,
           ArrayRef<Value> others = {});

  /// The token behind a position of the sequence.
  Value tokenAt(Value position) {
    if (!r.reverse)
      return position;
    return sub(sub(add(task.begin, task.end), index(1)), position);
  }
  Value outputHead(Value member) { return add(mul(task.head, group), member); }
  Value queryHead(Value member) {
    return headOf(r.query, outputHead(member), dim(r.output, 1));
  }
  /// i1: is the token written? Null without a mask.
  Value keepOf(Value token) {
    return r.mask ? load(r.mask, {task.batch, token}) : Value();
  }
  /// The first column of the task's own panel.
  Value columnOf(Value panel) {
    return mul(add(task.firstPanel, panel), index(shape.cols));
  }
  /// The memory that holds the state before the token at a position.
  Value stateBefore(Value position);
  /// Copies the normalizer to a row of memory, and back.
  void loadNormalizer(Value z);
  void storeNormalizer(Value z);

  const Task task;

protected:
  /// Memory for the rows of operands, and of queries.
  const llvm::SmallMapVector<Value, StagedRows, 8> staged;
  const StagedRows stagedQueries;

private:
  llvm::SmallMapVector<Value, StagedRows, 8>
  allocateStaged(int64_t tokens, ArrayRef<Value> others);
};

/// The scope of some tokens of a task, made where their number is known: how
/// they are packed.
class ScanBlock : public ScanTask {
public:
  ScanBlock(const ScanTask &task, Value first, Value count);

  /// Copies the rows of operands that are not read where they are, except
  /// queries, and those of the queries of one head.
  void stageTokens();
  void stageQueries(Value rowHead);
  /// Where a token's row of an operand is read, `rowHead` its head.
  Place placeOf(Value operand, Value rowHead, Value token);
  Place queryPlaceOf(Value rowHead, Value token);

  /// `x`, or 0 for a masked token.
  Value written(Value x, Value token);

  /// How φ(k) is packed, behind its input gate, and the factor that rescales
  /// the past where a running maximum is carried, else null. With a `shift`,
  /// which the caller has found, the maximum is carried by them.
  std::pair<Row, Value> keyRow(Value token, Value shift = {});

  // Packing one token into the row `at` of scratch buffers.

  /// The row of a key; returns the factor that rescales the past.
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
    return loadGate(r.decay, {task.batch, task.head, token});
  }
  /// scale · φ(q)·(bonus ⊙ φ(k)), from the packed rows.
  Value ownWeight(Value queries, ArrayRef<Value> queryAt, Value keys,
                  ArrayRef<Value> keyAt);

  /// Normalises and writes the row of position `t`, columns from `column` on:
  /// to the output, or to `normRows`, rows of memory that a norm reads.
  void writeRow(Value o, Value inverse, Value member, Value t, Value column,
                Value normRows = {});
  /// Applies the norm behind the scan to whole rows in memory.
  void emitNorm(NormRow &norm, Value normRows);

  /// The first position, and how many.
  const Value first, count;

private:
  Value headOfRows(Value operand);

  /// The first token in memory.
  const Value lowestToken;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_SCANTILE_H
