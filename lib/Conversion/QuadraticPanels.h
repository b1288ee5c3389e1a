//===- QuadraticPanels.h - Panels of queries against keys -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The base of schedules that hold a few panels of queries, one query in each
// vector lane, while blocks of keys stream past: the forward and the backward
// pass.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_QUADRATICPANELS_H
#define LINATTN_CONVERSION_QUADRATICPANELS_H

#include "QuadraticBuilder.h"
#include "Softmax.h"

namespace mlir::linattn {

class QuadraticPanels : public QuadraticBuilder {
public:
  QuadraticPanels(OpBuilder &b, QuadraticOp op, TileShape shape,
                  std::optional<Dropout> dropout = std::nullopt)
      : QuadraticBuilder(b, op, shape), dropout(dropout) {
    unroll = std::min(unroll, shape.lanes);
  }

protected:
  int64_t blockKeys() { return shape.block; }
  /// So many queries share one packing of the keys, or one panel that is wider.
  int64_t sharedQueries = 128;
  int64_t panelsPerTask() {
    return std::max<int64_t>(sharedQueries / shape.cols, 1);
  }
  int64_t queriesOfTask() { return panelsPerTask() * shape.cols; }
  /// Takes the queries of a task from this one on, or those that are left.
  void setQueries(Value first);
  /// Panels the queries fill, the last one perhaps in part.
  Value panelCount() { return ceilDiv(range.queryCount, shape.cols); }

  Value firstOfPanel(Value panel) {
    return add(range.firstQuery, mul(panel, index(shape.cols)));
  }

  /// Packs the row of each query transposed into panels [panels, size, cols],
  /// by way of `rows`: of all queries, if there are so many, or else of as many
  /// as a vector has lanes. Rows and lanes past the last query hold zeros.
  void packPanels(Value size, Value rows, Value panels,
                  function_ref<Row(Value)> rowOf);
  /// Packs the block's keys and values; rows past the last one are zeros, up to
  /// a whole tile of them.
  void packBlock(Value keys, Value values, Value count);

  /// Σ_d rows[j + r, d] · panels[panel][d][:], for a tile of rows.
  Rows dotPanel(Value rows, Value panels, Value size, Value panel, Value j);

  /// first, first + 1, …, one in each lane.
  Value countFrom(Value first);
  /// The positions of a panel's queries, one in each lane.
  Value positions(Value panel);
  /// The factors of the weights of a panel's queries and key j of the block;
  /// null without dropout.
  Value keptWeights(Value panel, Value j);
  /// i1: may a query of the panel not see a key of the block? Null if none.
  Value mayHide(Value panel, Value count);
  /// Scores of keys the query may not see become `otherwise`.
  Value maskScores(Value scores, Value panel, Value j, double otherwise);

  /// The queries of now, the keys that they may see, and the block of keys.
  struct Range {
    Value firstQuery, queryCount, keyLimit, firstKey;
  };
  Range range;
  std::optional<Dropout> dropout;
  /// Head sizes, in whole vectors of keys and whole accumulators of values.
  Value keySize, valueSize;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_QUADRATICPANELS_H
