//===- QuadraticKernel.h - Attention by tiles of keys -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Softmax attention as in FlashAttention-2 (Dao, 2023), and linear weights on
// the same tiles. A block has a tile of queries and goes over the keys they
// see, a tile of keys at a time. With c = scale · log2(e) and m the maximum of
// a query's scores so far:
//
//   X = Q Kᵀ        m' = max(m, max X)        P = 2^(c (X − m'))
//   l = 2^(c (m − m')) l + Σ P        O = 2^(c (m − m')) O + P V
//
// and O / l in the end. Each warp has rows of its own; X and P stay in its
// registers, where the accumulators of one product are the operands of the
// next. No weight is written anywhere. With linear weights P = scale · X.
//
// The products are those of a warp (`mma.sync`) or of four (`wgmma`): sums and
// P lie in the same registers, so that only the products and the layout of
// their tiles differ.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_QUADRATICKERNEL_H
#define LINATTN_LIB_GPU_QUADRATICKERNEL_H

#include "FloatTile.h"
#include "TilePipeline.h"
#include "Warpgroup.h"

namespace mlir::linattn {

struct QuadraticShape : KernelShape<QuadraticOp> {
  /// On the average block; the numbers of tokens must be known.
  KernelWork work();

  int64_t sharedBytes() {
    return mapBegin() + (usesTensorMaps()
                             ? TensorMaps::sharedBytes(numMaps, barriers())
                             : 0);
  }
  /// Registers of a lane that hold outputs and scores of a tile.
  int64_t accumulators() {
    return outputAt(rowTiles(), 0) + scoreAt(rowTiles(), 0);
  }

  int64_t keys() { return schedule.getChunk(); }
  bool usesWarpgroups() { return schedule.getMma() == Mma::Wgmma; }
  bool usesTensorMaps() { return schedule.getCopy() == CopyEngine::Tma; }
  /// Rows of f32 have eight units, or there would be no swizzle for them.
  int64_t padded(int64_t size) {
    return llvm::alignTo(size, isWide() ? 32 : 16);
  }
  int64_t paddedKey() { return padded(keySize()); }
  int64_t keySteps() { return llvm::divideCeil(keySize(), 16); }
  int64_t paddedValue() { return llvm::alignTo(valueSize(), 16); }
  /// Blocks of 16 rows of a warp. With two, each fragment of keys and values
  /// serves both, if registers suffice.
  int64_t rowTiles();
  int64_t warpRows() { return 16 * rowTiles(); }
  int64_t queries() { return warpRows() * warps(); }
  int64_t tokenSummands() { return isWide() ? schedule.getSummands() : 1; }
  /// Of weights: an output of bf16 may err by little but its own rounding.
  int64_t weightSummands() {
    return type().isBF16() ? std::min<int64_t>(2, schedule.getSummands())
                           : tokenSummands();
  }
  /// Queries stay in registers.
  bool holdsQueries() {
    return paddedKey() <= 64 && !usesWarpgroups() && !isWide();
  }

  SharedTile operandTile(int64_t rows, int64_t columns, bool pairs = false) {
    return {rows, columns * elementBytes() / 2, pairs,
            /*panels=*/usesWarpgroups()};
  }
  SharedTile queryTile() {
    return operandTile(queries(), paddedKey(), /*pairs=*/isWide());
  }
  SharedTile keyTile() {
    return operandTile(keys(), paddedKey(), /*pairs=*/isWide());
  }
  SharedTile valueTile() { return operandTile(keys(), padded(valueSize())); }
  /// Takes the place of the queries in the end; f32 needs none.
  SharedTile outputTile() { return {isWide() ? 0 : queries(), paddedValue()}; }
  int64_t stageBegin() {
    return std::max(queryTile().bytes(), outputTile().bytes());
  }
  int64_t stageBytes() { return keyTile().bytes() + valueTile().bytes(); }

  // With tensor maps: those of queries, keys, values, and a barrier for each
  // stage, then one for the queries.
  static constexpr int64_t numMaps = 3;
  int64_t barriers() { return stages() + 1; }
  int64_t mapBegin() { return stageBegin() + stages() * stageBytes(); }

  // A lane carries O, then m and l of its rows, from tile to tile.
  int64_t outputAt(int64_t r, int64_t n) {
    return (r * (paddedValue() / 8) + n) * 4;
  }
  int64_t scoreAt(int64_t r, int64_t n) { return (r * (keys() / 8) + n) * 4; }
  int64_t maximumAt(int64_t r, int64_t half) {
    return outputAt(rowTiles(), 0) + 2 * r + half;
  }
  int64_t sumAt(int64_t r, int64_t half) {
    return maximumAt(rowTiles() + r, half);
  }

  bool isSoftmax() { return op.getWeights() == Weights::Softmax; }
  /// c, or the scale of linear weights.
  double factor();
  /// The largest score is that of the largest exponent for c > 0 only.
  bool scalesScores() { return !isSoftmax() || factor() <= 0; }
  double exponentFactor() { return scalesScores() ? 1 : factor(); }
  bool seesWholeTiles() {
    int64_t count = staticSize(op.getKey(), 2);
    return !op.getCausal() && !op.getMask() && !ShapedType::isDynamic(count) &&
           count % keys() == 0;
  }
};

class QuadraticKernel : QuadraticShape {
public:
  /// Begins the code of the kernel, whose arguments `function` has.
  QuadraticKernel(const QuadraticShape &shape, KernelBuilder &k,
                  KernelFunction &function);

  /// `maps`: memory for the tensor maps of all blocks; null without them.
  void run(Value maps);

private:
  using Values = SmallVector<Value>;

  /// A block: a tile of queries of a head, and the keys they see.
  struct Place {
    Value shared, thread, batch, head;
    Value queryCount, keyCount;
    Value prefixCount; ///< Keys that every query sees; null without a prefix.
    Value firstQuery;
    Value tiles;     ///< Of keys that its queries see.
    Value warpLimit; ///< Keys that all rows of the warp see.
    GlobalView mask;
  };
  /// A lane: its row and pair in fragments, and places for ldmatrix and stores.
  struct Lane {
    Value number, row, pair; ///< lane / 4, lane % 4.
    Value warpRow, query, key, value, output;
  };
  /// The tokens of a block in global memory.
  struct Tokens {
    Rows query, key, value, output;
  };

  void place();
  void placeLane();
  Value limitOf(Value row);
  void findVisibleKeys();
  Tokens findTokens();
  TensorMaps makeMaps(const Tokens &tokens, Value memory);
  TileCopy prepareQueries(const Rows &rows);
  TilePipeline prepareTiles(const Tokens &tokens, TensorMaps *maps);
  void holdQueries();
  SmallVector<Summands> loadQueries(LanePointer &tile, int64_t step);
  Summands loadKeys(LanePointer &tile, int64_t n, int64_t step);
  Summands loadValues(LanePointer &tile, int64_t step, int64_t n);
  void addProduct(MutableArrayRef<Value> c, const Summands &a,
                  const Summands &b, int64_t terms);

  Values initialValues();
  Values tile(Value number, Value base, ValueRange carried);
  Values scores(Value base);
  void addScores(MutableArrayRef<Value> x, ArrayRef<Summands> queries,
                 LanePointer &tile, int64_t step);
  Values scoresOfWarp(Value base);
  Values scoresOfWarpgroup(Value base);
  Values maskScores(Value number, ValueRange x);
  void weigh(MutableArrayRef<Value> x, MutableArrayRef<Value> carried);
  void softmax(MutableArrayRef<Value> x, MutableArrayRef<Value> carried,
               int64_t r, int64_t half);
  Summands splitWeights(ValueRange p, int64_t r, int64_t step);
  void readValues(Value base, ValueRange p, MutableArrayRef<Value> o);
  void readValuesOfWarpgroup(Value base, ValueRange p,
                             MutableArrayRef<Value> o);
  void scaleOutput(MutableArrayRef<Value> o, Value sum);
  void writeOutput(const Rows &rows, ValueRange carried);

  KernelBuilder &k;
  KernelFunction &function;
  Place here;
  Lane lane;
  SmallVector<SmallVector<Summands>> heldQueries; ///< By step.
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_QUADRATICKERNEL_H
