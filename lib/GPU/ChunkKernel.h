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
// Products of matrices take 16-bit operands. Keys that a decay has changed are
// no such numbers: they are split into a sum of some, so that the state keeps
// the accuracy of f32. So are S and Q Kᵀ where outputs are made of them: into
// two, for an output's own rounding is nearly all it may err by.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_CHUNKKERNEL_H
#define LINATTN_LIB_GPU_CHUNKKERNEL_H

#include "ScanKernel.h"
#include "SharedTile.h"
#include "Summands.h"

namespace mlir::linattn {

constexpr int64_t chunkTokens = 64, groupWarps = 4;

class ChunkKernel {
public:
  ChunkKernel(ScanOp op, ScheduleAttr schedule, const StateSource &source,
              const Segments &segments)
      : op(op), schedule(schedule), source(source), segments(segments),
        locator(op, function, schedule.getSplit(), chunkTokens) {}

  LaunchOp build(ModuleOp module, StringRef name);

  /// Of one sequence and head.
  KernelWork work();

  /// Bytes of shared memory.
  static int64_t sharedBytes(ScanOp op, ScheduleAttr schedule);

private:
  using Values = SmallVector<Value>;

  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  int64_t slice() const { return schedule.getValueSlice(); }
  int64_t slices() const { return llvm::divideCeil(valueSize, slice()); }
  int64_t groups() const { return schedule.getWarps() / groupWarps; }
  int64_t groupColumns() const { return slice() / groups(); }
  /// The warps of a group divide the rows of the state, and what is left of
  /// them the columns.
  int64_t rowWarps() const { return paddedKey() % 64 == 0 ? 4 : 2; }
  int64_t columnWarps() const { return groupWarps / rowWarps(); }
  int64_t paddedKey() const { return llvm::alignTo(keySize, 32); }
  /// 16×8 tiles of the state that a warp owns.
  int64_t stateRows() const { return paddedKey() / 16 / rowWarps(); }
  int64_t stateColumns() const { return groupColumns() / 8 / columnWarps(); }
  int64_t stateAt(int64_t i, int64_t j) const {
    return (i * stateColumns() + j) * 4;
  }
  /// Numbers of 16 bits whose sum is a key; if decayed, to 22 bits or more.
  int64_t keySummands() const {
    int64_t exact = !hasDecay ? 1 : type.isF16() ? 2 : 3;
    return std::min<int64_t>(exact, schedule.getSummands());
  }
  /// The same of the state and of scores, for outputs.
  int64_t readSummands() const {
    return std::min<int64_t>(2, schedule.getSummands());
  }
  bool hasTokenDecay() { return hasDecay && rankOf(op.getDecay()) == 3; }
  /// Whether there are queries and outputs.
  bool reads() const { return segments.part != Segments::Increments; }

  SharedTile keyTile() const { return {chunkTokens, paddedKey()}; }
  SharedTile valueTile() const { return {chunkTokens, slice()}; }
  SharedTile stateTile() const { return {paddedKey(), slice()}; }
  int64_t keyOffset() const { return reads() ? keyTile().bytes() : 0; }
  int64_t valueOffset() const { return keyOffset() + keyTile().bytes(); }
  int64_t stageBytes() const { return valueOffset() + valueTile().bytes(); }
  int64_t stateOffset() const { return schedule.getStages() * stageBytes(); }
  int64_t outputOffset() const {
    return stateOffset() + readSummands() * stateTile().bytes();
  }
  /// Outputs of a chunk take the place of its queries, if those are as wide.
  bool replacesQueries() const { return slice() <= paddedKey(); }
  SharedTile outputTile() const {
    return replacesQueries() ? keyTile() : valueTile();
  }
  /// Per stage the decays of the tokens, then their sums, weights, and total.
  int64_t decayOffset() const {
    if (!reads())
      return stateOffset();
    return outputOffset() + (replacesQueries() ? 0 : outputTile().bytes());
  }
  int64_t sumsOffset() const {
    return decayOffset() + schedule.getStages() * chunkTokens * 4;
  }
  int64_t weightsOffset() const { return sumsOffset() + chunkTokens * 4; }
  int64_t totalOffset() const { return weightsOffset() + chunkTokens * 4; }
  int64_t allBytes() const {
    return hasDecay ? totalOffset() + 16 : decayOffset();
  }

  //===--------------------------------------------------------------------===//
  // Emission
  //===--------------------------------------------------------------------===//

  void declare();
  void run();
  void place();
  void placeThread();
  void prepareCopies();
  Value stageBase(Value stage);
  void startChunk(Value number, Value stage);
  void copyDecays(Value first, Value left, Value stage);

  Values loadState();
  void storeState(ValueRange state);
  void forEachStatePair(
      const GlobalView &view,
      function_ref<void(int64_t, Value address, Value exists)> body);
  void spillState(ValueRange state);

  void sumDecays(Value left, Value stage);
  Value decayOf(Value stage, Value left, Value token);
  Values chunk(Value number, ValueRange state);
  void arrive(Value number, Value stage, ValueRange state);
  void multiplyQueries(
      Value base, Values &c, int64_t summands,
      function_ref<SmallVector<Value, 4>(int64_t step, int64_t n, int64_t s)>
          load);
  Values scores(Value base);
  Values readState(Value base);
  void readChunk(Value number, Value base);
  void maskScores(Values &p);
  SmallVector<Values> splitScores(ValueRange p);
  void readValues(Value base, ArrayRef<Values> weights, Values &o);
  void addProducts(MutableArrayRef<Value> s, Value factor,
                   ArrayRef<Values> summands, ValueRange b);
  Values updateState(Value base, ValueRange state);
  SmallVector<Values> splitKeys(ValueRange keys, Value tokens);
  void writeOutput(Value number, Value base, ValueRange o);

  void multiplyInto(MutableArrayRef<Value> c, ValueRange a, ValueRange b);
  std::pair<Value, Value> sharedPair(int64_t offset, Value token);

  ScanOp op;
  ScheduleAttr schedule;
  StateSource source;
  Segments segments;
  KernelFunction function;
  ScanLocator locator;
  WrittenTokens written;
  int64_t keySize = staticSize(op.getState(), 2);
  int64_t valueSize = staticSize(op.getState(), 3);
  int64_t members = reads() ? membersOf(op) : 1;
  bool hasDecay = op.getDecay() != Value();
  Type type = getElementTypeOrSelf(op.getQuery());
  Type decayType = gateTypeOf(op, op.getDecay());

  unsigned q, key, v, o, decay, stateIn, stateOut, factors;
  std::optional<KernelBuilder> builder;
  KernelBuilder &k() { return *builder; }
  ScanPlace here;
  Value shared, thread, lane, strip, firstColumn, groupColumn, member;
  Value fragmentRow, fragmentPair; ///< lane / 4, lane % 4.
  Value stateRowWarp, stateColumnWarp;
  Value headDecay, decayBase, decayStride;
  std::optional<TileCopy> copyQuery, copyKey, copyValue;
  Value queryBase, keyBase, valueBase, outputBase;
  Value queryStride, keyStride, valueStride, outputStride;
  // Places of this lane for ldmatrix and for stores of fragments.
  Value queryPlace, keyPlace, valuePlace, keyColumnPlace, statePlace;
  Value valueStatePlace, spillPlace, outputPlace;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_CHUNKKERNEL_H
