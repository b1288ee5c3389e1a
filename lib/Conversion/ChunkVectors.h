//===- ChunkVectors.h - The ops of a chunk in register tiles ----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHUNKVECTORS_H
#define LINATTN_CONVERSION_CHUNKVECTORS_H

#include "VectorBuilder.h"

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/LinAttnChunk.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::linattn {

inline int64_t sizeOf(Value memref, int64_t dim) {
  return cast<MemRefType>(memref.getType()).getDimSize(dim);
}

/// Emits the ops of one head's chunk, all of whose sizes are known, as loops
/// over tiles of sums in registers: so many rows by two vectors. Features come
/// in whole vectors, tokens in any number.
class ChunkVectors : public VectorBuilder {
public:
  ChunkVectors(OpBuilder &b, Location loc, Type type, int64_t lanes,
               int64_t rows)
      : VectorBuilder(b, loc, type), lanes(lanes), rows(rows) {}

  /// The same sums in the same order with the least code: for products that
  /// hardly ever run.
  ChunkVectors compact() {
    ChunkVectors least(b, loc, type, lanes, /*rows=*/1);
    least.unroll = 1;
    return least;
  }
  bool isCompact() const { return unroll == 1; }

  /// The factors of decays g, in scratch memory: those of one number per token,
  /// [1, 1, C], or those of one per channel, [1, 1, C, K].
  struct Factors {
    Value between; ///< [C + 1, C]: e^{g_(j+1) + … + g_t} in row t + 1.
    Value start;   ///< [C + 1]: e^{g_0 + … + g_t} in element t + 1.
    Value gates;   ///< [C, K]: e^{g_t} of each channel.
    Value total;   ///< [K]: e^{g_0 + … + g_(C-1)} of each channel.
    Value
        residual; ///< [1] or [K]: what the rounding of the last one left over.
  };
  Factors factorsOf(Value decay);
  /// Those of one of two decays.
  Factors selected(Value condition, const Factors &x, const Factors &y);
  /// The factor of row t.
  Value factorOf(ChunkDecayOp op, const Factors &factors, Value t);
  /// Keys as vectors of tokens, [C / lanes, K, lanes], the last one padded.
  Value transposedKeys(Value keys);

  /// Rows of the next chunk, which are prefetched during a product.
  struct Stream {
    Value source;
    Value batch, head, first, last; ///< The next tokens are [first, last].
    int64_t tokens, width;
    bool isWritten;
  };

  void emit(ChunkPackOp op);
  void emit(ChunkUnpackOp op);
  void emit(ChunkDecayOp op, const Factors &factors);
  void emit(ChunkScoresOp op, Value keysT, const Factors &factors);
  /// The same under a decay per channel.
  void emitDecaying(ChunkScoresOp op, const Factors &factors);
  /// The two steps of it: zeros, and the scores of pairs within blocks of so
  /// many tokens, a multiple of 4, or of all pairs.
  void clearScores(ChunkScoresOp op);
  void scoreBlocks(ChunkScoresOp op, const Factors &factors, Value blockTokens);
  /// Rows [1, 1, C, K] that decay per channel from the start of their block, or
  /// to its end.
  struct BlockDecay {
    Value rows, gates, output;
    bool toEnd = false, before = false;
    Value fades = {}; ///< [blocks, K]: gets the product of each block's gates.
  };
  /// Of one block, so many tokens from one on.
  void decayBlock(const BlockDecay &decay, Value first, int64_t tokens);
  void emit(ChunkSolveOp op);
  /// Rows of a read: those of the op, or those before a decay, which then
  /// multiplies their sums.
  struct ReadRows {
    Value rows;
    Value rowsT; ///< As vectors of tokens, for the transposed state.
    ChunkDecayOp decay;
    Factors factors;
    ChunkPackOp scaled; ///< Scales the sums in the end; null if nothing does.
  };
  Value scaledBy(ChunkPackOp op, Value sums) {
    return op ? Scale::of(op).apply(b, loc, sums) : sums;
  }
  /// Sums start from zero if `fromZero`, and go to `into`.
  void emit(ChunkReadOp op, const ReadRows &rows, bool fromZero, Value into,
            ArrayRef<Stream> streams);
  /// The same of columns that decay.
  void emitDecaying(ChunkReadOp op, const ReadRows &rows,
                    const Factors &factors, bool fromZero, Value into,
                    ArrayRef<Stream> streams);
  void emit(ChunkUpdateOp op, const Factors &factors, ArrayRef<Stream> streams);
  /// A map of single elements of rows [1, 1, C, K].
  void emit(FeatureMapOp op);
  /// A read and an update of one column, and rows divided by such a read.
  void emitColumn(ChunkReadOp op, const ReadRows &rows, bool fromZero);
  void emitColumn(ChunkUpdateOp op, const Factors &factors);
  void emitDivided(ChunkUnpackOp op);

  /// The rows of a chunk with fewer tokens, or as many.
  struct AllRows {
    Value rows;   ///< The tokens where they are as many, `own` otherwise.
    Value own;    ///< Other memory, [1, 1, C, N] of the tokens' type.
    Value tokens; ///< How many there are.
    Value areAll; ///< Whether they are as many; null if they are fewer.
  };
  /// `count` rows for [1, 1, T, N] with T ≤ count; with `isRead` they hold the
  /// tokens, and zeros behind them.
  AllRows allRowsOf(Value tokens, int64_t count, bool isRead);
  /// Writes to the tokens what is not in their memory.
  void writeBack(const AllRows &all, Value tokens);

  /// Vectors of `width` columns, in a loop if code is to be small.
  void forEachVector(int64_t width, function_ref<void(Value)> body);
  /// Blocks of `step`, in a loop, and what is left over.
  void forEachBlock(int64_t size, int64_t step,
                    function_ref<void(Value, int64_t)> body);
  SmallVector<Value> at(Value t) { return {index(0), index(0), t}; }
  SmallVector<Value> at(Value t, Value d) { return {index(0), index(0), t, d}; }
  /// The first `size` lanes.
  Value firstLanes(Value size) {
    return vector::CreateMaskOp::create(
        b, loc, VectorType::get(lanes, b.getI1Type()), size);
  }
  /// Sums of row t from column j on as scores: decayed, and without what lies
  /// above the diagonal.
  Value weigh(ChunkScoresOp op, Value sums, Value t, Value j,
              const Factors &factors);
  /// The factor of a state before a chunk's writes are added; null without a
  /// decay.
  struct Memory {
    Value factor, residual; ///< Vectors.
  };
  /// Of all elements, or of those at a row and column if channels or columns
  /// decay.
  Memory memoryOf(ChunkUpdateOp op, const Factors &factors, int64_t width,
                  Value row = {}, Value column = {});
  /// Returns the new elements.
  Value addToState(Value state, ValueRange place, Value sum,
                   const Memory &memory);
  /// Where a tile of sums is, and how large.
  struct Tile {
    Value row, column;
    int64_t height, width;
  };
  /// Prefetches the columns of a tile in one token of the next chunk.
  void prefetch(ArrayRef<Stream> streams, const Tile &tile, Value token);
  /// The same in the share of a tile of the state in all tokens.
  void prefetchShare(ArrayRef<Stream> streams, const Tile &tile,
                     int64_t stateRows);
  /// The same line by line, in one of several steps.
  void prefetchLines(ArrayRef<Stream> streams, Value step, int64_t steps);

private:
  void copyTokens(Value from, Value to, Value count);
  Factors channelFactorsOf(Value decay);
  Value forEachSum(Value decay, Value from,
                   function_ref<void(Value, Value)> body);
  void decayFromBlock(Value decay, Value between, Value rest, Value j);
  Value prefixSums(Value x);
  Value timesTransposed(ChunkReadOp op, Value rowsT, ArrayRef<Stream> streams);
  Rows timesState(ChunkReadOp op, const ReadRows &read, Value products,
                  Rows sums, const Tile &tile, ArrayRef<Stream> streams);
  void storeSums(Rows sums, int64_t columns, Value output, Value row,
                 Value column, int64_t height);
  struct RunningKeys;
  void scoreOwnRows(ChunkScoresOp op, const Factors &factors,
                    const RunningKeys &running, Value row, int64_t height);
  void scoreEarlierKeys(ChunkScoresOp op, const RunningKeys &running,
                        Value first, Value row, int64_t height);
  struct RunningValues;
  Rows readEarlierValues(ChunkReadOp op, const RunningValues &running,
                         Rows sums, const Tile &tile, Value fade);
  Rows readOwnValues(ChunkReadOp op, const RunningValues &running, Rows sums,
                     const Tile &tile, function_ref<Value(int64_t)> gate);
  /// The rows of tiles from the first to the last, or from the last one on:
  /// then all of them are whole.
  void forEachRows(int64_t tokens, function_ref<void(Value, int64_t)> body,
                   bool fromLast);
  void forEachTile(Value output, function_ref<void(const Tile &)> body,
                   bool fromLast = false);
  Rows addScores(Rows sums, Value scores, Value values, const Tile &tile,
                 bool diagonal, bool strict);
  Rows addLaterScores(Rows sums, Value scores, Value values, const Tile &tile,
                      bool diagonal, bool strict);
  Rows addScoresOfColumn(Rows sums, Value scores, Value column, Value token,
                         bool strict);
  void clearRow(Value output, Value t);
  Rows product(Rows sums, int64_t size,
               function_ref<Value(int64_t, Value)> left,
               function_ref<Value(Value)> right);
  Value tokenOf(Value t, Value rows, bool reverse) {
    return reverse ? sub(sub(dim(rows, 2), index(1)), t) : t;
  }

  int64_t lanes, rows;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKVECTORS_H
