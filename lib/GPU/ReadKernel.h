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
#include "KernelFunction.h"

namespace mlir::linattn {

class ReadKernel {
public:
  /// Queries of a tile and of a block: its slice of S is read once for so many.
  static constexpr int64_t tileQueries = 64, blockTiles = 8;
  static constexpr int64_t warps = tileQueries / 16;

  ReadKernel(ReadOp op, ScheduleAttr schedule);

  LaunchOp build(ModuleOp module, StringRef name);

  int64_t sharedBytes() {
    return stageBegin() + schedule.getStages() * queryTile().bytes();
  }
  /// The number of queries must be known.
  KernelWork work();

private:
  using Values = SmallVector<Value>;

  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  int64_t slice() { return schedule.getValueSlice(); }
  int64_t slices() { return llvm::divideCeil(valueSize, slice()); }
  /// Tiles of f32 that are read by pairs have eight units a row.
  int64_t paddedKey() { return llvm::alignTo(keySize, isWide ? 32 : 16); }
  int64_t elementBytes() { return isWide ? 4 : 2; }
  FeatureMapKind map() {
    return cast<FeatureMappedOpInterface>(op.getOperation())
        .getFeatureMapKind();
  }
  bool isMapped() { return map() != FeatureMapKind::Identity; }
  int64_t summands() {
    int64_t all = schedule.getSummands();
    return isWide ? all : std::min<int64_t>(all, 2);
  }

  SharedTile stateTile() { return {paddedKey(), slice()}; }
  SharedTile queryTile() {
    return {tileQueries, paddedKey() * elementBytes() / 2, /*pairs=*/isWide};
  }
  SharedTile outputTile() { return {tileQueries, slice()}; }
  /// The normalizer's summands, behind those of the state.
  int64_t normalizerBegin() { return summands() * stateTile().bytes(); }
  int64_t outputBegin() {
    int64_t bytes = op.getNormalizer() ? summands() * paddedKey() * 2 : 0;
    return llvm::alignTo(normalizerBegin() + bytes, 128);
  }
  int64_t stageBegin() {
    return outputBegin() + (isWide ? 0 : outputTile().bytes());
  }

  //===--------------------------------------------------------------------===//
  // Emission
  //===--------------------------------------------------------------------===//

  void declare();
  void place();
  void prepareCopies();
  Value stageBase(Value stage);
  void startTile(Value number, Value stage);
  void arrive(Value number, Value stage);
  void loadState();
  void loadNormalizer();

  void tile(Value number);
  Summands loadQueries(Value base, int64_t step);
  void writeOutput(Value number, Values o, ValueRange denominators);

  ReadOp op;
  ScheduleAttr schedule;
  KernelFunction function;
  int64_t keySize, valueSize;
  Type type, summandType;
  bool isWide;

  unsigned query, state, normalizer, output;
  std::optional<KernelBuilder> builder;
  KernelBuilder &k() { return *builder; }
  Value shared, thread, lane, warpRow, batch, head, stateHead;
  Value row, pair;   ///< lane / 4, lane % 4.
  Value firstColumn; ///< Of the slice; null for the only one.
  Value firstQuery, queryCount, tiles;
  std::optional<TileCopy> copyQuery;
  Value queryBase, outputBase, queryStride, outputStride;
  Value queryPlace, statePlace, outputPlace; ///< Places of this lane.
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_READKERNEL_H
