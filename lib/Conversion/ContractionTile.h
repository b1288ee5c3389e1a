//===- ContractionTile.h - Products of matrices in vectors ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// C_mn += Σ_k A_mk B_kn. C may have further dimensions, which become loops
// around it, and k may stand for several.
//
// A task is a block of rows of a few panels of columns. It takes the summands
// block by block: it packs the block's panels of B one after the other, so that
// the vectors of each k are neighbours, and keeps MR rows of C in registers for
// all k of the block. Each element of A is read alone and multiplies a whole
// row of the panel. Where C has a dimension that A lacks, such as the heads of
// keys that all have the same weights, its panels share the elements of A. Each
// tile prefetches its share of the rows of the panel that is packed next, since
// rows of a head lie far apart.
//
// A is packed, too, where its rows are neighbours in memory or have 16 bits,
// and several panels share them: tile by tile, the MR elements of a k side by
// side.
//
// A fill with zeros right before it takes no pass over C: the first block
// starts from zeros instead of reading it.
//
// Every element of C is one chain of fused multiply-adds in the order of k. Its
// bits depend neither on its position nor on the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CONVERSION_CONTRACTIONTILE_H
#define LINATTN_LIB_CONVERSION_CONTRACTIONTILE_H

#include "VectorBuilder.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::linattn {

/// The loops and operands of a contraction.
struct ContractionDims {
  unsigned m, n;
  /// Sums; and the other loops, without those that the rows of A lack, which
  /// give more panels of B.
  SmallVector<unsigned> k, outer, ofPanels;
  /// The operands without and with n, and their maps.
  Value left, right, output;
  AffineMap leftMap, rightMap, outputMap;

  static unsigned lastOf(AffineMap map) {
    return cast<AffineDimExpr>(map.getResults().back()).getPosition();
  }
};

class ContractionTile : public VectorBuilder {
public:
  ContractionTile(OpBuilder &b, linalg::LinalgOp op, ContractionDims dims,
                  bool startsAtZero, int64_t lanes, int64_t cols, int64_t rows)
      : VectorBuilder(b, op.getLoc(),
                      getAccumulationType(getElementTypeOrSelf(dims.output))),
        dims(std::move(dims)), startsAtZero(startsAtZero), lanes(lanes),
        cols(cols), rowsAtOnce(rows), blockDepth(chooseDepth()),
        at(op.getNumLoops()) {}

  void emit();

private:
  /// A task has up to `taskPanels` panels, fewer where less than `leastTasks`
  /// tasks would be left. Its rows of A stay in a second cache for all of them.
  static constexpr int64_t leastTaskRows = 192, taskPanels = 8, leastTasks = 8;
  /// Summands between prefetches, some steps; a block has several parts.
  static constexpr int64_t part = 32;

  /// Panels of a task that are worth packed rows of A.
  static constexpr int64_t leastPanels = 4;

  int64_t taskRows() const { return llvm::alignTo(leastTaskRows, rowsAtOnce); }
  /// Tiles without rows past the end: of a task at most, of rows [first, end).
  int64_t mostTiles();
  Value panelsPerTask(Value panels, Value others);
  Value wholeTiles(Value first, Value end) {
    return div(sub(end, first), index(rowsAtOnce));
  }
  bool packsRows();
  int64_t chooseDepth();

  Value sizeOf(unsigned loop);
  Value sizeOf(ArrayRef<unsigned> loops);
  int64_t leastSizeOf(ArrayRef<unsigned> loops);
  /// Sets the values of loops from the number of their step.
  void locate(ArrayRef<unsigned> loops, Value number);
  bool isBlocked();
  /// Whether there may be a next panel, whose rows lie apart in memory.
  bool prefetches();
  Value depthOfPanel();
  void sumBlocks(function_ref<void()> body);
  /// The bounds of the sum at `level`, of the first one those of the block.
  std::pair<Value, Value> boundsOf(unsigned level);
  SmallVector<Value> indices(AffineMap map);
  void packPanel();
  SmallVector<Value> readSummands(Value operand, AffineMap map, int64_t count,
                                  function_ref<void(int64_t)> select);
  void packTransposed(Value row);
  void packRows(Value first, Value end);
  void packNeighbours(Value first, Value end);
  void packTransposedRows(Value row, Value tile);
  void prefetchNext(Value number);
  void locatePanel(Value number);
  void forEachPanel(Value from, Value to, function_ref<void()> body);
  void sweepTask(Value first, Value end);
  void sweepRows(Value tile, Value row, int64_t count, Value last);
  Value initialRow();
  SmallVector<Value> sum(SmallVector<Value> sums, unsigned level, Value row,
                         function_ref<Value(int64_t, Value)> left);
  void forEachSummed(unsigned level, Value row, function_ref<void(Value)> body);
  /// Rows of the panel of one step of the sum at `level`.
  Value stride(unsigned level);

  ContractionDims dims;
  /// C holds nothing yet.
  bool startsAtZero;
  int64_t lanes, cols, rowsAtOnce;
  /// Summands of a block.
  int64_t blockDepth;
  /// The current value of each loop.
  SmallVector<Value> at;
  /// Of a block B[k, column], and A[tile, k, row] or null.
  Value panel, packedRows;
  Value column;
  struct {
    Value begin, end;
  } block;
  /// The panel that is packed next: where it begins, the rows that each part of
  /// a tile prefetches, and the parts of the tiles before this one.
  struct {
    SmallVector<Value> at;
    Value rowsOfPart, partsBefore;
  } next;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_CONVERSION_CONTRACTIONTILE_H
