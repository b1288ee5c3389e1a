//===- TileBuilder.h - Emitting vector tiles --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The base of the vector lowerings of mapped ops: packing rows of tokens into
// scratch buffers with the feature map applied, zero-padded to whole vectors so
// that the loops that do the work have no tails.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_TILEBUILDER_H
#define LINATTN_CONVERSION_TILEBUILDER_H

#include "VectorBuilder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"

#include <limits>

namespace mlir::linattn {

/// The registers a schedule is cut for. `cols` is a multiple of `lanes`.
struct TileShape {
  int64_t lanes; ///< Elements of one hardware vector.
  int64_t rows;  ///< Accumulators of one tile.
  int64_t cols;  ///< Elements of one accumulator.
  int64_t block; ///< Tokens between two loads of a tile.
  /// Tokens that a row of the state in memory sees at once.
  int64_t tokensAtOnce = 1;
  /// Bytes of the first data cache; 0 if that is not known.
  int64_t l1 = 0;
};

/// The sequences that a schedule is for, by their own lengths: all of them, or
/// those of a number of tokens at least, at most, or both.
struct LengthRange {
  int64_t from = 0;
  int64_t to = std::numeric_limits<int64_t>::max();

  bool isAll() const { return from <= 0 && !isBounded(); }
  bool isBounded() const { return to < std::numeric_limits<int64_t>::max(); }
};

class TileBuilder : public VectorBuilder {
public:
  TileBuilder(OpBuilder &b, FeatureMappedOpInterface op, Type tokenType,
              TileShape shape)
      : VectorBuilder(b, op->getLoc(), getAccumulationType(op)), op(op),
        tokenType(tokenType), shape(shape) {
    setFirstCache(shape.l1);
  }

  /// Largest element of the row `indices` of an operand.
  Value rowMaximum(Value memref, ArrayRef<Value> row);

  /// Where a token's row of an operand is read: its indices but the last one.
  struct Place {
    Value source;
    SmallVector<Value> index;
  };

  /// How a row of features is packed.
  struct Row {
    Value source;             ///< [B, H, T, D] operand, or staged rows.
    SmallVector<Value> index; ///< Batch, head, token.
    Value shift;              ///< Subtracted before φ; null if none.
    bool mapped = true;       ///< Apply φ; else copy.
    Scale scale = {};         ///< Applied after φ.
    Value gain;               ///< A factor of the row; null if none.
    Value keep;               ///< i1; the row is 0 where false. Null if none.

    void from(const Place &place) {
      source = place.source;
      index = place.index;
    }
  };
  /// Packs a row into `target[position, 0 …]`, a scratch buffer whose last
  /// dimension is padded to whole lanes, and clears the padding.
  void packRow(const Row &row, Value target, ArrayRef<Value> position);

  // A running maximum lies in memory at `place`, a row of states and a head.

  /// Raises it; returns e^(old − new), the factor of the past.
  Value raiseRunningMax(Value maximum, ArrayRef<Value> place, Value keyRowMax,
                        Value keep);
  /// m_t = max(decay_t + m_{t-1}, input_gate_t), without a decay if that is
  /// null; both gates are those of `token`, a batch element, head and position.
  /// Returns the factor of the past, e^(decay_t + m_{t-1} − m_t), and sets that
  /// of the key, e^(input_gate_t − m_t), in its row.
  Value openInputGate(Value maximum, ArrayRef<Value> place, Value decay,
                      Value inputGate, ArrayRef<Value> token, Row &row);
  /// The token's number of a gate [H] or [B, H, T].
  Value loadGate(Value gate, ArrayRef<Value> token);

  /// Rows of an operand that do not lie in memory as such, some tokens at a
  /// time: [tokens, D] of the accumulation type.
  struct StagedRows {
    Value rows;
    /// Rows of transposed operands that the rows are made of.
    llvm::SmallMapVector<Value, Value, 2> sources;

    explicit operator bool() const { return bool(rows); }
    /// The row of a token, where the first row is that of token `first`.
    Place at(TileBuilder &b, Value token, Value first) const {
      return {rows, {b.sub(token, first)}};
    }
  };
  /// Memory for rows of a [B, H, T, D] operand that is transposed, or made
  /// here; null for any other one. `tokens` is how many come at a time, at
  /// most.
  StagedRows allocateRows(Value operand, int64_t tokens);
  /// Transposes or makes the rows of tokens [first, first + count) of one head.
  void stageRows(const StagedRows &staged, Value operand, Value batch,
                 Value head, Value first, Value count);
  /// The buffer that an operand's rows come from: the operand itself if it is
  /// in memory.
  static SmallVector<Value> rowSources(Value operand);
  /// Prefetches one of `parts` equal parts of the rows that `stageRows` reads.
  void prefetchColumns(Value operand, ArrayRef<Value> place, Value first,
                       int64_t tokens, Value part, Value parts);

  /// Copies columns [column, column + cols) of a state, whose indices before
  /// its last two dimensions are `place`, to target[at, d, 0 …] or from there;
  /// a transposed state in blocks, up to whole ones. Storing prefetches the
  /// panel at (nextPlace, nextColumn), if there is one.
  void loadPanel(Value state, ArrayRef<Value> place, Value column, Value target,
                 ArrayRef<Value> at);
  void storePanel(Value state, ArrayRef<Value> place, Value column,
                  Value target, ArrayRef<Value> at,
                  ArrayRef<Value> nextPlace = {}, Value nextColumn = {});
  /// Prefetches a block of a transposed state for writing.
  void prefetchBlock(Value state, ArrayRef<Value> place, Value row,
                     Value column);

  /// Tokens, in whole multiples, for which all heads are computed before anyone
  /// goes on. Where the rows of one token's heads are neighbours, in
  /// [B, T, H, D], a head alone would touch every page of all of them. Null:
  /// all tokens at once. The state rests in its operand meanwhile.
  Value chooseSpan(Value rows, Value state, int64_t multiple);
  /// Runs `body` for the tokens [from, to) of each span, or of all.
  void forEachSpan(Value span, Value tokens,
                   function_ref<void(Value, Value)> body);

  /// Runs `body` where a sequence of that many tokens is one of `lengths`.
  void ifInRange(Value tokens, function_ref<void()> body);

  FeatureMappedOpInterface op;
  Type tokenType;
  TileShape shape;
  /// The sequences that are run; the others are left alone.
  LengthRange lengths;

private:
  int64_t mapLanes(Value operand);

  // StagedRows.cpp; a token is its batch, head and position, and row `t`.
  void transposeRows(Value operand, Value rows, Value batch, Value head,
                     Value first, Value count);
  void makeRow(Value operand, const StagedRows &staged, ArrayRef<Value> token,
               Value t);
  Value makeNumber(linalg::GenericOp op, const StagedRows &staged,
                   ArrayRef<Value> token, Value t);
  Value readNumber(linalg::GenericOp op, OpOperand *input,
                   const StagedRows &staged, ArrayRef<Value> token, Value t);
  Value readFeatures(linalg::GenericOp op, OpOperand *input,
                     const StagedRows &staged, ArrayRef<Value> token, Value t,
                     Value d);
  Value emitBody(linalg::GenericOp op, ArrayRef<Value> arguments);
  Value emitFeatures(linalg::GenericOp op, ArrayRef<Value> numbers,
                     const StagedRows &staged, ArrayRef<Value> token, Value t,
                     Value d);
};

/// The vector schedules: each emits its loops for an op on buffers at the
/// builder's insertion point. `tokenForm` streams through the state in memory
/// instead of keeping tiles of it in registers: for a few tokens. It reads the
/// state before the first one from `initial`, if that is given.
void lowerToStateTile(OpBuilder &b, ScanOp op, TileShape shape, bool tokenForm,
                      LengthRange range = {}, Value initial = {});
void lowerToStateTile(OpBuilder &b, StateOp op, TileShape shape, bool tokenForm,
                      bool startsAtZero = false);
void lowerToStateTile(OpBuilder &b, ReadOp op, TileShape shape, bool tokenForm);
/// Queries in blocks, as products of matrices.
void lowerToReadTile(OpBuilder &b, ReadOp op, TileShape shape);
/// The tokens of a chunk, and facts about the state.
struct ChunkSizes {
  int64_t chunk; ///< Tokens at a time.
  int64_t whole; ///< Sequences of up to that many are one chunk.
  bool startsAtZero, endsUnused;
};
/// Another read of the state that a scan carries: along its values.
struct ValueRead {
  Value query, output;      ///< [B, H, T, V] and [B, H, T, K].
  bool decayWrites = false; ///< Keys meet the decay of their token.

  explicit operator bool() const { return bool(query); }
};
/// A chunk of tokens at a time, as products of matrices.
void lowerToChunkTile(OpBuilder &b, ScanOp op, TileShape shape,
                      ChunkSizes sizes, LengthRange range = {},
                      ValueRead valueRead = {});
/// A rank-1 update token by token, on the state in memory; the same of
/// `initial`.
void lowerToTokenTile(OpBuilder &b, ScanOp op, TileShape shape,
                      LengthRange range = {}, Value initial = {});
void lowerToQuadraticTile(OpBuilder &b, QuadraticOp op, TileShape shape);
/// A map of whole tokens.
void lowerToFeatureTile(OpBuilder &b, FeatureMapOp op, int64_t lanes);
/// Adds the patterns of feature maps, output norms and convolutions, which have
/// one lowering to vectors.
void populateRowPatterns(RewritePatternSet &patterns, int64_t vectorBits);
/// One query at a time: for a few.
void lowerToQuadraticRows(OpBuilder &b, QuadraticOp op, TileShape shape);

/// Why a schedule cannot run the op; empty if it can.
StringRef whyNoQuadraticTile(QuadraticOp op);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_TILEBUILDER_H
