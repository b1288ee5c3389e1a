//===- ChunkKernel.h - The chunk form on tensor cores -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One pass over the tokens, 64 at a time. With c the sum of a chunk's decays up
// to a token, in the logarithm, and M the causal factors e^(c_t − c_j), j ≤ t:
//
//   O = scale · (e^c ⊙ (Q S) + (Q Kᵀ ⊙ M) V)
//   S = e^(c_64) S + (e^(c_64 − c) ⊙ K)ᵀ V
//
// A block owns a slice of the state's columns, and each group of four of its
// warps some of those. S stays in the registers of the group, in f32; a copy
// goes to shared memory once per chunk, for Q S. Every warp computes 16 rows of
// Q Kᵀ and, from registers, of O. The next chunk arrives meanwhile.
//
// With the products of warpgroups (`wgmma`) the two lines above have warps of
// their own. Each warpgroup of the state holds 64 of its rows, and leaves the
// state before the next chunk in shared memory, where one of two copies is
// being read. One warpgroup makes the outputs. A barrier of the block for each
// chunk is all that they wait for.
//
// Products of matrices take 16-bit operands. Keys that a decay has changed are
// no such numbers: they are split into a sum of some, so that the state keeps
// the accuracy of f32. So are S and Q Kᵀ where outputs are made of them: into
// two, for an output's own rounding is nearly all it may err by.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_CHUNKKERNEL_H
#define LINATTN_LIB_GPU_CHUNKKERNEL_H

#include "ScanKernel.h"
#include "Warpgroup.h"

namespace mlir::linattn {

constexpr int64_t chunkTokens = 64, groupWarps = 4;

struct ChunkShape : ScanShape {
  /// Of one sequence and head.
  KernelWork work();

  bool usesWarpgroups() { return schedule.getMma() == Mma::Wgmma; }
  /// Groups that share the columns of a block. Those of `wgmma` have all.
  int64_t groups() { return usesWarpgroups() ? 1 : warps() / groupWarps; }
  int64_t groupColumns() { return slice() / groups(); }
  /// Warps that hold the state: all, or the first of a block of warpgroups.
  int64_t stateWarps() {
    return usesWarpgroups() ? paddedKey() / 16 : groupWarps;
  }
  /// Those warps, of each group, divide the rows of the state, and what is left
  /// of them the columns.
  int64_t rowWarps() {
    return paddedKey() % 64 == 0 ? stateWarps() : groupWarps / 2;
  }
  int64_t columnWarps() { return stateWarps() / rowWarps(); }
  int64_t paddedKey() {
    return llvm::alignTo(keySize(), usesWarpgroups() ? warpgroupRows : 32);
  }
  /// 16×8 tiles of the state that a warp owns.
  int64_t stateRows() { return paddedKey() / 16 / rowWarps(); }
  int64_t stateColumns() { return groupColumns() / 8 / columnWarps(); }
  int64_t stateAt(int64_t i, int64_t j) { return (i * stateColumns() + j) * 4; }
  /// Numbers of 16 bits whose sum is a key; if decayed, to 22 bits or more.
  int64_t keySummands() {
    int64_t exact = !hasDecay() ? 1 : type().isF16() ? 2 : 3;
    return std::min<int64_t>(exact, schedule.getSummands());
  }
  /// The same of the state and of scores, for outputs.
  int64_t readSummands() {
    return std::min<int64_t>(2, schedule.getSummands());
  }

  SharedTile tile(int64_t rows, int64_t columns) {
    return {rows, columns, /*pairs=*/false, /*panels=*/usesWarpgroups()};
  }
  SharedTile keyTile() { return tile(chunkTokens, paddedKey()); }
  SharedTile valueTile() { return tile(chunkTokens, slice()); }
  SharedTile stateTile() { return tile(paddedKey(), slice()); }
  int64_t keyOffset() { return reads() ? keyTile().bytes() : 0; }
  int64_t valueOffset() { return keyOffset() + keyTile().bytes(); }
  int64_t stageBytes() { return valueOffset() + valueTile().bytes(); }
  int64_t stateOffset() { return stages() * stageBytes(); }
  int64_t stateBytes() { return readSummands() * stateTile().bytes(); }
  /// While one copy is read, warpgroups of the state write the other one.
  int64_t stateCopies() { return usesWarpgroups() ? 2 : 1; }
  int64_t outputOffset() {
    return stateOffset() + stateCopies() * stateBytes();
  }
  /// Outputs of a chunk take the place of its queries, if those are as wide.
  bool replacesQueries() { return slice() <= paddedKey(); }
  /// Rows of `mma.sync` take the place of a warp's own queries.
  SharedTile outputTile() {
    return replacesQueries() && !usesWarpgroups() ? keyTile() : valueTile();
  }
  /// Per stage the decays of the tokens. Then their sums, weights and total:
  /// those of the block, or of each warpgroup.
  int64_t decayOffset() {
    if (!reads())
      return stateOffset();
    return outputOffset() + (replacesQueries() ? 0 : outputTile().bytes());
  }
  int64_t sumsOffset() { return decayOffset() + stages() * chunkTokens * 4; }
  int64_t weightsOffset() { return sumsOffset() + chunkTokens * 4; }
  int64_t totalOffset() { return weightsOffset() + chunkTokens * 4; }
  int64_t sumsBytes() { return totalOffset() + 16 - sumsOffset(); }
  int64_t allBytes() {
    if (!hasDecay())
      return decayOffset();
    int64_t copies = usesWarpgroups() ? warps() / warpgroupWarps : 1;
    return sumsOffset() + copies * sumsBytes();
  }
};

class ChunkKernel : ChunkShape {
public:
  /// Begins the kernel's code. `locator.function` holds its arguments.
  ChunkKernel(const ChunkShape &shape, KernelBuilder &k, ScanLocator &locator)
      : ChunkShape(shape), k(k), locator(locator), block(k, locator.function) {
    block.place(k, shape, locator);
  }

  void run(WrittenTokens &written);

private:
  using Values = SmallVector<Value>;

  /// Addresses that depend on the thread's number. Each half of the work
  /// computes its own: those of both would fill the registers.
  struct Lane {
    Value thread, number, strip, groupColumn;
    Value row, pair; ///< lane / 4, lane % 4.
    Value sums;      ///< The base address of its sums of decays.
    /// Of the warp in the state, and places for its update and copy.
    struct {
      Value rowWarp, columnWarp, key, value, copy;
    } state;
    /// Places for queries' products, and for outputs.
    struct {
      Value query, key, value, output;
    } read;
  };
  /// Decays of tokens in global memory, or the one of the head.
  struct Decays {
    Rows rows;
    Value head;
  };

  Lane placeThread(Value thread);
  void findTokens(WrittenTokens &written);
  TilePipeline makePipeline(Value thread, int64_t threads);
  void copyQueries(TilePipeline &tiles);
  void copyWritten(TilePipeline &tiles, const WrittenTokens &written);
  void copyDecays(const TilePipeline::Arrival &arrival);
  void runChunks(const WrittenTokens &written);

  Values loadState(const Lane &lane);
  void storeState(const Lane &lane, ValueRange state);
  void storeFactor(Value factor);
  void forEachStatePair(
      const Lane &lane, const GlobalView &view,
      function_ref<void(int64_t, Value address, Value exists)> body);
  Value sharedState(Value number);
  void spillState(const Lane &lane, ValueRange state, Value number);

  void sumDecays(const Lane &lane, Value left, Value stage);
  void sumDecaysOfWarp(const Lane &lane, Value left, Value stage, bool toToken,
                       bool toEnd);
  Value decayOf(Value stage, Value left, Value token);
  Values chunk(TilePipeline &tiles, Value number, ValueRange state);
  void multiplyQueries(
      const Lane &lane, Value base, Values &c, int64_t summands,
      function_ref<SmallVector<Value, 4>(int64_t step, int64_t n, int64_t s)>
          load);
  Values scores(const Lane &lane, Value base);
  Values readState(const Lane &lane, Value number, Value base);
  void readChunk(const Lane &lane, Value number, Value base);
  void maskScores(const Lane &lane, Values &p);
  SmallVector<Values> splitScores(ValueRange p);
  void decayOutputs(const Lane &lane, Values &o);
  void readValues(const Lane &lane, Value base, ArrayRef<Values> weights,
                  Values &o);
  void addProducts(MutableArrayRef<Value> s, Value factor,
                   ArrayRef<Values> summands, ValueRange b);
  Values updateState(const Lane &lane, Value base, ValueRange state);
  SmallVector<Values> splitKeys(const Lane &lane, ValueRange keys,
                                Value tokens);
  void writeOutput(const Lane &lane, Value number, Value base, ValueRange o);

  // By warpgroups.
  void runWarpgroups(const WrittenTokens &written);
  void runStates(const WrittenTokens &written);
  void runOutputs();
  Values advanceState(TilePipeline &tiles, Value number, ValueRange state);
  Values addWritten(const Lane &lane, Value base, ValueRange state);
  void addPanel(Value rows, int64_t column,
                ArrayRef<SmallVector<Values>> operands, Value factor,
                Values &state);
  void sumDecaysOfGroup(const Lane &lane, Value number, Value stage,
                        bool toEnd);
  void groupBarrier(const Lane &lane);
  void makeOutputs(TilePipeline &tiles, Value number);
  Values readWarpgroup(const Lane &lane, Value number, Value stage, Value base);

  void multiplyInto(MutableArrayRef<Value> c, ValueRange a, ValueRange b);
  Value sumAt(const Lane &lane, int64_t offset, Value token);
  std::pair<Value, Value> sharedPair(const Lane &lane, int64_t offset,
                                     Value token);

  KernelBuilder &k;
  ScanLocator &locator;
  ScanBlock block;
  Decays decays;
  ScanBlock::Tokens tokens;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_CHUNKKERNEL_H
