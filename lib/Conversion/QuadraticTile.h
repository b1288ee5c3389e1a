//===- QuadraticTile.h - The quadratic form, block by block -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_QUADRATICTILE_H
#define LINATTN_CONVERSION_QUADRATICTILE_H

#include "QuadraticPanels.h"

namespace mlir::linattn {

/// Emits the tasks of a quadratic op. The steps of a task are virtual: those
/// here are products of vectors.
class QuadraticTile : public QuadraticPanels {
public:
  QuadraticTile(OpBuilder &b, QuadraticOp op, TileShape shape,
                Value logSum = {},
                std::optional<Dropout> dropout = std::nullopt)
      : QuadraticPanels(b, op, shape, dropout), logSum(logSum) {}
  virtual ~QuadraticTile() = default;

  void emit();

protected:
  virtual void allocateScratch();
  virtual void freeTask() { freeScratch(); }
  virtual void packQueries();
  /// Packs the keys and values of the block.
  virtual void packKeys(Value count);
  virtual void initialize();
  /// Scores of the block's keys, [keys, cols], before any are hidden.
  virtual void scorePanel(Value panel, Value count);
  /// Scores become weights; raises the maxima and adds up the sums.
  virtual void weighPanel(Value panel, Value count);
  virtual void accumulatePanel(Value panel, Value count);
  virtual void writeOutputs();

  void prefetchNextBlock(Value operand, Value head, Value j, int64_t count);
  Value isZero(Value i) {
    return compare(arith::CmpIPredicate::eq, i, index(0));
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  void clearSums(Value panel);
  /// The log-sum-exp of a finished row, if it is kept; returns its factor.
  Value finishRow(Value panel, Value lane, Value query);

  /// [B, H, Tq], or null: where the log-sum-exp of each row goes.
  Value logSum;
  /// i1: whether the tiles of this block prefetch outputs, queries of the next
  /// task, and, at their first panel, keys and values of the next block.
  struct {
    Value outputs, queries, keys;
  } fetches;
  /// Scores [keys, cols]; of each panel's queries outputs, maxima and sums
  /// [panels, cols], and the factor by which this block corrects them.
  Value scores, output, maxima, sums, corrections;

private:
  void emitTask();
  void decidePrefetches(Value panel);
  void processPanel(Value panel, Value count);
  Value seesBlock(Value panel, Value count);
  void prefetchQueries(Value panel, Value j);
  void prefetchWhileAccumulating(Value panel, Value i, Value column);
  void prefetchTokens(Value operand, SmallVector<Value> place, Value first,
                      int64_t count, Value column, Value width,
                      bool isWritten = false);
  void hidePanel(Value panel, Value count);
  SmallVector<Value> accumulateRows(Value panel, Value i, Value column,
                                    Value count, ArrayRef<Value> initial);

  Value rows, transposed, keys, values;
};

/// The same with products in tiles of a matrix unit, of an op with `summands`;
/// see `ChunkProducts` for the options.
void lowerToQuadraticUnit(OpBuilder &b, QuadraticOp op, int64_t tilesEachWay,
                          bool hasBits);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_QUADRATICTILE_H
