//===- BlockLowering.h - Chunks on buffers, block by block ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_BLOCKLOWERING_H
#define LINATTN_CONVERSION_BLOCKLOWERING_H

#include "ChunkFusion.h"
#include "ChunkOps.h"
#include "ChunkProducts.h"

namespace mlir::linattn {

/// The role of a matrix that is packed into tiles: rows, scores up to the
/// diagonal or before it, values, a state, or the rows or columns of transposed
/// keys.
enum class TileRole {
  Rows,
  Scores,
  StrictScores,
  Values,
  State,
  KeyRows,
  KeyColumns
};

/// Tokens in bf16 that a buffer holds as they are, or negated; null if it does
/// not.
struct TileTokens {
  Value tokens;
  bool isNegated = false;
};

/// Lowers the ops of a block one after the other.
class BlockLowering {
public:
  /// Values made of buffers, valid while these stay as they are.
  struct Made {
    llvm::MapVector<Value, Value> keysT;
    llvm::MapVector<Value, ChunkVectors::Factors> factors;
    llvm::MapVector<std::tuple<Value, TileRole, int64_t>, PackedTiles> tiles;
    /// By keys, decay and summands.
    llvm::MapVector<std::tuple<Value, Value, int64_t>, ChunkProducts::BlockKeys>
        blockKeys;
    /// By rows, decay and `before`.
    llvm::MapVector<std::tuple<Value, Value, int64_t>, ChunkProducts::BlockRows>
        blockRows;
    /// By its buffer, an op whose f32 result only products in tiles read. It is
    /// not emitted: tiles are packed from its operands.
    llvm::SmallDenseMap<Value, Operation *> deferred;
  };
  struct Target {
    int64_t vectorBits, registers, l1;
    /// Of a block of sums, each way; 0: products in vectors.
    int64_t tiles;
    /// Whether numbers have bits: elements of a field have none.
    bool hasBits;
  };

  BlockLowering(Block &block, const Target &target, Made made)
      : block(block), b(block.getParentOp()->getContext()), target(target),
        vectorBits(target.vectorBits), made(std::move(made)) {}

  void run();

private:
  void findStreams();
  void lower(Operation *op);
  void lowerScores(ChunkScoresOp op);
  void lowerRead(ChunkReadOp op);
  void emitRead(ChunkReadOp op, const ChunkVectors::ReadRows &rows,
                bool fromZero, Value into);
  void lowerUpdate(ChunkUpdateOp op);
  void invalidate(Operation *op);
  void prepare(scf::ForOp loop);
  Value transposedKeys(Value keys);
  ChunkProducts productsInTiles() {
    return {*vectors, target.tiles, target.hasBits};
  }
  PackedTiles tilesOf(Value matrix, TileRole role, int64_t summands);
  PackedTiles packed(Value matrix, TileRole role, int64_t summands);
  std::optional<PackedTiles> packTokens(Value matrix, TileRole role,
                                        int64_t summands);
  bool isForTiles(Value buffer, Operation *writer);
  bool isDeferrable(ChunkPackOp pack);
  bool isDeferrable(ChunkDecayOp decay);
  ChunkReadOp findReader(ChunkScoresOp scores);
  TileTokens tokensOf(Value buffer);
  ChunkProducts::BlockKeys blockKeysOf(ChunkScoresOp op);
  ChunkProducts::BlockRows blockRowsOf(ChunkScoresOp op);
  bool scoresInBlocks(ChunkScoresOp op);
  ChunkScoresOp findScores(ChunkDecayOp decay);
  PackedTiles packDecayed(ChunkDecayOp decay, int64_t summands);
  void emitCompact(ChunkScoresOp op);
  void materialize(Value buffer);
  void materialize(ValueRange buffers) {
    for (Value buffer : buffers)
      materialize(buffer);
  }
  void keepPacked(scf::ForOp loop);
  ChunkVectors::Factors factorsOf(Value decay);
  ChunkVectors &at(Operation *op);
  ArrayRef<int64_t> summandsOf(Operation *op) {
    return target.tiles ? tileSummandsOf(op) : ArrayRef<int64_t>();
  }
  ArrayRef<ChunkVectors::Stream> streamsOf(Operation *op) {
    auto it = streams.find(op);
    return it == streams.end() ? ArrayRef<ChunkVectors::Stream>() : it->second;
  }

  Block &block;
  OpBuilder b;
  const Target &target;
  int64_t vectorBits;
  Made made;
  std::optional<ChunkVectors> vectors;
  llvm::SmallDenseMap<Operation *, SmallVector<ChunkVectors::Stream>> streams;
  /// Reads, by what they read: rows that were to be decayed.
  llvm::SmallDenseMap<Operation *, ChunkVectors::ReadRows> decayedReads;
  SmallVector<Operation *> lowered;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_BLOCKLOWERING_H
