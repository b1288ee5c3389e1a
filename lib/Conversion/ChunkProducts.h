//===- ChunkProducts.h - The products of a chunk in tiles -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of AMX is a matrix of 16 rows of 16 pairs of bf16, a tile of sums one
// of 16 by 16 f32. A product contracts 32 indices, in pairs: the m-th pair
// holds the indices m and m + 16 here, which two vectors of f32 make without a
// permutation.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHUNKPRODUCTS_H
#define LINATTN_CONVERSION_CHUNKPRODUCTS_H

#include "ChunkVectors.h"

namespace mlir::linattn {

/// A matrix as bf16 summands, in tiles as an operand of `amx.tile_mulf`.
struct PackedTiles {
  /// [summands, rows or columns / 16, contracted / 32, 16, 32] of bf16.
  Value memory;
  int64_t summands;
  Value isFinite; ///< Whether all numbers of it are.
};

/// Emits the products of one head's chunk, all of whose sizes are multiples of
/// 16, in tiles. The steps before and after them use vectors of 16 f32.
class ChunkProducts {
public:
  /// `tilesEachWay` of a block of sums, 1 or 2.
  ChunkProducts(ChunkVectors &v, int64_t tilesEachWay)
      : v(v), tilesEachWay(tilesEachWay) {}

  /// Rows [1, 1, N, M] as a left operand with N rows.
  PackedTiles packRows(Value rows, int64_t summands);
  /// The same of scores, without what lies above the diagonal, or on it if
  /// `strict`.
  PackedTiles packScores(Value scores, bool strict, int64_t summands);
  /// Rows [1, 1, N, M] as a right operand with M columns.
  PackedTiles packColumns(Value rows, int64_t summands);
  /// Keys [1, 1, C, K] as a left operand with K rows, and as a right one with C
  /// columns. `keysT` are `ChunkVectors::transposedKeys`.
  PackedTiles packKeyRows(Value keys, Value keysT, int64_t summands);
  PackedTiles packKeyColumns(Value keys, Value keysT, int64_t summands);

  /// As the functions of `ChunkVectors`, with the matrices of the op. Where one
  /// is not finite, it is those: a product with a zero would not be one.
  void emit(ChunkScoresOp op, ArrayRef<PackedTiles> matrices, Value keysT,
            const ChunkVectors::Factors &factors);
  void emit(ChunkReadOp op, ArrayRef<PackedTiles> matrices,
            const ChunkVectors::ReadRows &rows, bool fromZero, Value into,
            ArrayRef<ChunkVectors::Stream> streams);
  void emit(ChunkUpdateOp op, ArrayRef<PackedTiles> matrices,
            const ChunkVectors::Factors &factors,
            ArrayRef<ChunkVectors::Stream> streams);

private:
  /// Tiles of sums, fewer than `tilesEachWay` at an end, from a row and a
  /// column of tiles on.
  struct Block {
    Value row, column;
    int64_t height, width;
    SmallVector<Value> sums = {};
  };

  PackedTiles
  pack(int64_t lines, int64_t contracted, int64_t summands,
       function_ref<Value(Value line, Value block, Value index)> vectorAt,
       bool isLeft);
  SmallVector<Value> split(Value low, Value high, int64_t summands,
                           Value &probe);
  void clear(Block &block);
  void multiply(Block &block, const PackedTiles &left, const PackedTiles &right,
                int64_t steps);
  Value scratchOfSums();
  void store(const Block &block, Value memory);
  void forEachLine(
      const Block &block, ArrayRef<Value> memories,
      function_ref<void(Value row, Value column, ArrayRef<Value> sums)> body);
  void ifFinite(ArrayRef<PackedTiles> matrices, function_ref<void()> tiles,
                function_ref<void()> vectors);

  ChunkVectors &v;
  int64_t tilesEachWay;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKPRODUCTS_H
