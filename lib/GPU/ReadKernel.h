//===- ReadKernel.h - Queries that read a state -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `linattn.read`: O = scale · φ(Q) S, divided by scale · φ(Q) z. A block keeps
// a slice of S in shared memory, as summands of 16 bits, and takes a few tiles
// of queries past it; a warp has 16 queries of a tile. As in the chunk form by
// columns S and mapped queries are two summands; of f32 all are three, or as
// many as the schedule says.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_READKERNEL_H
#define LINATTN_LIB_GPU_READKERNEL_H

#include "FloatTile.h"
#include "TilePipeline.h"

namespace mlir::linattn {

struct ReadShape : KernelShape<ReadOp> {
  /// Queries of a tile and of a block: its slice of S is read once for so many.
  static constexpr int64_t tileQueries = 64, blockTiles = 8;
  static constexpr int64_t blockWarps = tileQueries / 16;

  /// The number of queries must be known.
  KernelWork work();

  /// Tiles of f32 that are read by pairs have eight units a row.
  int64_t paddedKey() { return llvm::alignTo(keySize(), isWide() ? 32 : 16); }
  int64_t summands() {
    int64_t all = schedule.getSummands();
    return isWide() ? all : std::min<int64_t>(all, 2);
  }

  SharedTile stateTile() { return {paddedKey(), slice()}; }
  SharedTile queryTile() {
    return {tileQueries, paddedKey() * elementBytes() / 2, /*pairs=*/isWide()};
  }
  SharedTile outputTile() { return {tileQueries, slice()}; }
  /// The normalizer's summands, behind those of the state.
  int64_t normalizerBegin() { return summands() * stateTile().bytes(); }
  int64_t outputBegin() {
    int64_t bytes = op.getNormalizer() ? summands() * paddedKey() * 2 : 0;
    return llvm::alignTo(normalizerBegin() + bytes, 128);
  }
  int64_t stageBegin() {
    return outputBegin() + (isWide() ? 0 : outputTile().bytes());
  }
  int64_t sharedBytes() {
    return stageBegin() + stages() * queryTile().bytes();
  }
};

class ReadKernel : ReadShape {
public:
  /// Begins the code of the kernel, whose arguments `function` has.
  ReadKernel(const ReadShape &shape, KernelBuilder &k,
             KernelFunction &function);

  void run();

private:
  using Values = SmallVector<Value>;

  /// A block: some queries of a head, and a slice of columns.
  struct Place {
    Value shared, thread, batch, head, stateHead;
    Value firstColumn; ///< Null for the only slice.
    Value firstQuery, queryCount, tiles;
  };
  /// A lane: its row and pair in fragments, and places for ldmatrix and stores.
  struct Lane {
    Value number, row, pair; ///< lane / 4, lane % 4.
    Value warpRow, query, state, output;
  };

  void place();
  void placeLane();
  Rows rowsOf(Value buffer, bool isWritten, Value head);
  void loadState();
  void loadNormalizer();

  void tile(Value number, Value base);
  Summands loadQueries(Value base, int64_t step);
  void writeOutput(Value number, Values o, ValueRange denominators);

  KernelBuilder &k;
  KernelFunction &function;
  Place here;
  Lane lane;
  Rows output;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_READKERNEL_H
