//===- ChunkSteps.h - The steps of one chunk --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A recurrence and the ops that compute one chunk of it, on tensors.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_TRANSFORMS_CHUNKSTEPS_H
#define LINATTN_LIB_TRANSFORMS_CHUNKSTEPS_H

#include "linattn/Dialect/LinAttnChunk.h"
#include "linattn/Transforms/Recurrence.h"

namespace mlir::linattn {

/// The values that a loop over chunks carries: the output, null without
/// queries, the state, the normalizer as a state of one column, and the running
/// maximum.
struct CarriedValues {
  Value output, state, normalizer, runningMax;

  SmallVector<Value> present() const;
  /// The same values, taken from `values` in that order.
  CarriedValues with(ValueRange values) const;
};

/// Builds the ops of one chunk.
class ChunkSteps {
public:
  /// `chunk` is the recurrence on the tokens of the chunk alone, `output` the
  /// output's. Under `headByHead` a loop reads the heads of queries one after
  /// the other, where there are more than states. Under `scalesOutputs` a scale
  /// multiplies outputs in place of queries, which stay tokens of 16 bits.
  /// `rowCount` is the number of the chunk's rows if it may have fewer tokens,
  /// behind which rows and numbers are zero; 0: as many.
  ChunkSteps(OpBuilder &b, const Recurrence &chunk, CarriedValues carried,
             bool headByHead = false, bool scalesOutputs = false,
             int64_t rowCount = 0)
      : b(b), loc(chunk.op->getLoc()), r(chunk), carried(carried),
        type(getElementTypeOrSelf(carried.state)), headByHead(headByHead),
        scalesOutputs(scalesOutputs && !chunk.normalize && !chunk.bonus),
        rowCount(rowCount) {}

  /// The chunk as products of matrices.
  CarriedValues emitProducts();
  /// One token, for a recurrence without products: with a decay per column of
  /// the state, or Oja's rule.
  CarriedValues emitToken();
  /// Queries alone: o = scale · Sᵀ φ(q), normalised.
  Value emitRead();
  /// The same, as what a loop carries.
  CarriedValues emitQueries();

private:
  struct Write {
    Value keys, values;
  };

  // Destinations.
  OpFoldResult size(Value x, int64_t dim);
  Value empty(ArrayRef<OpFoldResult> sizes);
  Value zeros(ArrayRef<OpFoldResult> sizes);
  Value numbers(Value x);
  Value rows(OpFoldResult heads, OpFoldResult width);
  Value square(Value rows);
  OpFoldResult heads() { return size(carried.state, 1); }
  OpFoldResult readers() { return size(r.output, 1); }
  OpFoldResult keySize() { return size(carried.state, 2); }
  OpFoldResult valueSize() { return size(carried.state, 3); }
  OpFoldResult tokens();

  // Ops.
  Value firstPart(Value rows, Value like = {});
  Value firstColumns(Value rows, Value like);
  Value columns(Value rows, OpFoldResult first, OpFoldResult count);
  Value packWider(Value x, Value into, function_ref<Value(Value)> packInto);
  Value pack(Value x, Value into, Value shift = {}, Value gate = {},
             Value mask = {}, Scale scale = {}, std::optional<double> fill = {},
             bool reverse = false);
  Value packTokens(Value x, Value into, Value gate = {}, Value mask = {},
                   Scale scale = {}) {
    return pack(x, into, {}, gate, mask, scale, {}, r.reverse);
  }
  Value packGate(Value x, OpFoldResult width, Value mask = {},
                 std::optional<double> fill = {});
  Value features(Value x, Value into, FeatureMapKind kind, Value shift,
                 Value gate, Value mask, Scale scale);
  Value mapped(Value rows, FeatureMapKind kind);
  Value decayed(Value rows, bool before, bool toEnd = false);
  Value scores(Value rows, Value keys, bool strict, bool before,
               Value bonus = {});
  Value read(Value rows, Value state, ArrayRef<Value> scores,
             ArrayRef<Value> values, Value into, bool strict = false,
             bool transpose = false);
  Value update(ArrayRef<Write> writes, Value decay, Value valueDecay,
               Value into);
  Value solve(Value scores, Value gate, Value into);
  Value scaled(Value rows);
  Value unpack(Value rows, Value denominator);

  // Steps.
  void packGates();
  void stabilize();
  void packTokenRows();
  void packQueries();
  SmallVector<Write> transition();
  void readOut(ArrayRef<Write> writes);
  void readHeads(ArrayRef<Write> writes);
  void readHead(ArrayRef<Write> writes);
  Value headOf(Value x, Value head);
  void updateStates(ArrayRef<Write> writes);
  Value mirrored(Value mask);

  OpBuilder &b;
  Location loc;
  Recurrence r;
  CarriedValues carried;
  Type type;
  bool headByHead, scalesOutputs;
  int64_t rowCount;
  /// Rows and numbers of the chunk, in the order in which the recurrence visits
  /// tokens.
  Value mask, decay, valueDecay, beta, keyShift, keyFactor, maxima, queries,
      keys, values;
};

/// A part in place of the slice of `into` that it was made from.
Value insertBack(OpBuilder &b, Value part, Value slice, Value into);

/// [B, H, K] as a state of one column, [B, H, K, 1], and back.
Value expandColumn(OpBuilder &b, Location loc, Value normalizer);
Value collapseColumn(OpBuilder &b, Location loc, Value state);

} // namespace mlir::linattn

#endif // LINATTN_LIB_TRANSFORMS_CHUNKSTEPS_H
