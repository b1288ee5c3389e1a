//===- ChunkProducts.h - The products of a chunk in tiles -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of AMX is a matrix of 16 rows of 16 pairs of bf16, a tile of sums one
// of 16 by 16 f32. A product contracts 32 indices, in pairs. The m-th pair
// holds the features 2m and 2m + 1, as they lie in a row of tokens, or the
// tokens m and m + 16, which two vectors make without a permutation.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHUNKPRODUCTS_H
#define LINATTN_CONVERSION_CHUNKPRODUCTS_H

#include "ChunkVectors.h"

#include "linattn/Transforms/Forms.h"

namespace mlir::linattn {

/// The features of tokens with the zeros that fill up the last tile.
inline int64_t tiledFeatures(Value tokens) {
  return llvm::alignTo(sizeOf(tokens, 3), kTileRows);
}

/// A matrix as bf16 summands, in tiles as an operand of `amx.tile_mulf`.
struct PackedTiles {
  /// [summands, rows or columns / 16, contracted / 32, 16, 32] of bf16.
  Value memory;
  int64_t summands;
  /// Whether all numbers of it are finite; null where a product has the same
  /// results if they are not.
  Value isFinite;
  /// The same in memory, [1], of a matrix that is packed where it is made.
  Value flag = {};
  /// Whether the op that writes the matrix packs it, too.
  bool isKept = false;
};

/// Emits the products of one head's chunk, all of whose sizes are multiples of
/// 16, in tiles. The steps before and after them use vectors of 16 f32.
class ChunkProducts {
public:
  /// Rows of a tile, and elements of a vector that is a row of sums.
  static constexpr int64_t lines = kTileRows;

  /// `tilesEachWay` of a block of sums, 1 or 2; `hasBits` unless numbers are
  /// elements of a field.
  ChunkProducts(ChunkVectors &v, int64_t tilesEachWay, bool hasBits)
      : v(v), tilesEachWay(tilesEachWay), hasBits(hasBits) {}

  // A matrix goes to memory of its own or to that of `into`, if given.

  /// Rows [1, 1, N, M] of f32 as a left operand with N rows.
  PackedTiles packRows(Value rows, int64_t summands,
                       const PackedTiles *into = nullptr);
  /// The same of scores, without what lies above the diagonal, or on it if
  /// `strict`.
  PackedTiles packScores(Value scores, bool strict, int64_t summands);
  /// Rows of tokens as a right operand with M columns.
  PackedTiles packValues(Value rows, int64_t summands);
  /// A state as a right operand with M columns.
  PackedTiles packState(Value state, int64_t summands,
                        const PackedTiles *into = nullptr);
  /// Keys as a left operand with K rows, and the first blocks of 16 as a right
  /// one. `keysT` are `ChunkVectors::transposedKeys`.
  PackedTiles packKeyRows(Value keysT, int64_t summands,
                          const PackedTiles *into = nullptr);
  PackedTiles packKeyColumns(Value keysT, int64_t blocks, int64_t summands,
                             const PackedTiles *into = nullptr);

  /// Keys that decay per channel to the end of their block of 16 tokens.
  struct BlockKeys {
    Value transposed; ///< [C / 16, K, 16].
    Value rest; ///< [C / 16, K]: the factors from there to the chunk's end.
    /// As a right operand, without the last block, which no later row scores.
    PackedTiles columns;
  };
  BlockKeys decayKeys(Value keys, Value gates, int64_t summands);
  /// Rows that decay per channel from the start of their block on.
  struct BlockRows {
    Value rows;  ///< [1, 1, C, K].
    Value fades; ///< [C / 16, K]: the product of a block's gates.
    Value past;  ///< [C / 16, K]: the factors from the chunk's start to there.
  };
  BlockRows decayRows(Value rows, Value gates, bool before);
  /// As left operands, keys decayed to the end of the chunk, with K rows, and
  /// rows decayed from its start.
  PackedTiles packKeyRows(const BlockKeys &keys, int64_t summands);
  PackedTiles packRows(const BlockRows &rows, int64_t summands);

  // The same of tokens in bf16, as they are or negated.
  PackedTiles packTokenRows(Value tokens, bool isNegated,
                            const PackedTiles *into = nullptr);
  PackedTiles packTokenValues(Value tokens, bool isNegated);
  PackedTiles packTokenKeyColumns(Value tokens, bool isNegated,
                                  const PackedTiles *into = nullptr);
  /// Tokens from one row on that each have a factor.
  struct TokenFactors {
    Value factors; ///< Rows of [C], or null.
    Value row = {};
  };
  /// From `packTokenKeyColumns`.
  PackedTiles packTokenKeyRows(const PackedTiles &columns, int64_t features,
                               const TokenFactors &factors, int64_t summands,
                               const PackedTiles *into = nullptr);
  /// A line of a right operand that contracts tokens: 16 columns of the tokens
  /// m and m + 16, interleaved.
  void packTokenPair(Value low, Value high, const PackedTiles &tiles,
                     Value column, Value contractionStep, Value line);
  /// Zeros in such steps of a right operand from `first` on.
  void clearSteps(const PackedTiles &tiles, Value first);

  /// left · right, of rows of tiles [row, row + height) and so many columns of
  /// tiles from one on, as those rows of `into`, [rows, 16 · columns] of f32.
  void multiplyInto(Value into, const PackedTiles &left,
                    const PackedTiles &right, Value row, int64_t height,
                    Value firstColumn, int64_t columns);

  /// Emits the vector fallback of a product, for matrices that are not finite:
  /// a tile would multiply them by the zeros above the diagonal.
  using Otherwise = function_ref<void()>;
  /// As the functions of `ChunkVectors`, with the matrices of the op. Scores go
  /// to `packed`, if given, in place of the output.
  void emit(ChunkScoresOp op, ArrayRef<PackedTiles> matrices,
            const ChunkVectors::Factors &factors, PackedTiles *packed,
            Otherwise otherwise);
  /// The same under a decay per channel, with the op's rows and keys.
  void emitDecaying(ChunkScoresOp op, int64_t rowSummands,
                    const BlockRows &rows, const BlockKeys &keys,
                    const ChunkVectors::Factors &factors);
  void emit(ChunkReadOp op, ArrayRef<PackedTiles> matrices,
            const ChunkVectors::ReadRows &rows, bool fromZero, Value into,
            ArrayRef<ChunkVectors::Stream> streams, Otherwise otherwise);
  /// The new state is packed into `packed`, if given.
  void emit(ChunkUpdateOp op, ArrayRef<PackedTiles> matrices,
            const ChunkVectors::Factors &factors, const PackedTiles *packed,
            ArrayRef<ChunkVectors::Stream> streams, Otherwise otherwise);

  /// Memory for the summands of a matrix.
  PackedTiles allocate(int64_t lines, int64_t contracted, int64_t summands);
  /// Whether all numbers of the matrices are finite; null if no product needs
  /// to know.
  Value areFinite(ArrayRef<PackedTiles> matrices);
  /// Emits the branch on whether all numbers of the matrices are finite.
  void ifFinite(ArrayRef<PackedTiles> matrices, function_ref<void()> tiles,
                Otherwise vectors);
  /// Tiles of sums each way of a block.
  int64_t blockTiles() const { return tilesEachWay; }

private:
  /// Indices that one product contracts.
  static constexpr int64_t step = 2 * lines;

  /// Tiles of sums, fewer than `tilesEachWay` at an end, from a row and a
  /// column of tiles on.
  struct Block {
    Value row, column;
    int64_t height, width;
    /// Only the products of row i with column i.
    bool isDiagonal = false;
    SmallVector<Value> sums = {};
  };
  /// Where a row of an operand is: in which row or column of tiles, step of
  /// the contraction, and line.
  struct Place {
    Value tile, step, line;
  };

  using TwoVectors = std::pair<Value, Value>;
  PackedTiles pack(int64_t lines, int64_t contracted, int64_t summands,
                   bool pairsFeatures, bool isLeft,
                   function_ref<TwoVectors(const Place &, bool isHalf)> at,
                   const PackedTiles *into = nullptr);
  Value factorsOfBlocks(Value rows);
  Value productsBeside(Value fades, Value rows, bool behind);
  PackedTiles packRowsTimes(Value rows, int64_t tiles, Value factors,
                            int64_t summands,
                            function_ref<Value(Value)> blockOf);
  void extendReach(Value reach, Value fades, int64_t row);
  void forEachStep(int64_t contracted, function_ref<void(Value, bool)> body);
  Value reduceSteps(int64_t contracted, Value initial,
                    function_ref<Value(Value, bool, Value)> body);
  SmallVector<Value> split(Value low, Value high, int64_t summands,
                           Value &probe);
  SmallVector<Value> splitNeighbours(Value low, Value high, int64_t summands,
                                     Value &probe);
  using TwoLines = std::pair<SmallVector<Value>, SmallVector<Value>>;
  TwoLines splitWords(const TwoVectors &words, const TwoVectors &factors,
                      int64_t summands, Value &probe);
  Value startProbe();
  void enlarge(Value &probe, Value pairs);
  Value finishProbe(Value probe);
  void storeProbe(Value probe, const PackedTiles &tiles);
  Value concat(Value low, Value high);
  Value negated(Value pairs);
  Value loadPairs(Value tokens, Value t, Value d, bool isHalf);
  void storePairs(Value pairs, const PackedTiles &tiles, int64_t summand,
                  const Place &place);
  void clear(Block &block);
  void multiply(Block &block, const PackedTiles &left, const PackedTiles &right,
                int64_t steps);
  Value scratchOfSums();
  void store(const Block &block, Value memory);
  Value loadSums(Value memory, int64_t i, int64_t j, Value line);
  void forEachLine(const Block &block,
                   function_ref<void(int64_t tile, Value line)> body);
  Value element(Value tile, int64_t i, Value line);
  Value reduceBlocks(int64_t size, Value initial,
                     function_ref<Value(Value, int64_t, Value)> body);

  ChunkVectors &v;
  int64_t tilesEachWay;
  bool hasBits;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKPRODUCTS_H
