//===- StateKernel.h - Sums of keys and values ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// `linattn.state`: S = S_0 + φ(K)ᵀ V and z = z_0 + φ(K)ᵀ 1, in one pass over
// the tokens. A block owns some columns of the state; each group of four warps
// owns some of those and keeps them in registers, in f32. Mapped keys and f32
// tokens are split into three 16-bit numbers, or as many as the schedule says.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_STATEKERNEL_H
#define LINATTN_LIB_GPU_STATEKERNEL_H

#include "FloatTile.h"
#include "ScanKernel.h"
#include "TilePipeline.h"

namespace mlir::linattn {

struct StateShape : KernelShape<StateOp> {
  static constexpr int64_t groupWarps = 4;

  /// The number of tokens must be known.
  KernelWork work();

  int64_t heads() { return staticSize(op.getState(), 1); }
  int64_t tokens() { return schedule.getChunk(); }
  int64_t groupColumns() { return slice() * groupWarps / warps(); }
  /// The warps of a group divide the rows of the state, and what is left of
  /// them the columns.
  int64_t rowWarps() { return paddedKey() % 64 == 0 ? 4 : 2; }
  int64_t columnWarps() { return groupWarps / rowWarps(); }
  int64_t paddedKey() { return llvm::alignTo(keySize(), 32); }
  /// 16×16 tiles of the state that a warp owns.
  int64_t stateRows() { return paddedKey() / 16 / rowWarps(); }
  int64_t stateColumns() { return groupColumns() / 16 / columnWarps(); }
  int64_t stateAt(int64_t i, int64_t n) { return (i * stateColumns() + n) * 8; }
  /// Of a row of tiles, behind the state: four sums of keys, two times the
  /// same.
  int64_t normalizerAt(int64_t i) { return stateAt(stateRows(), 0) + 4 * i; }
  int64_t carriedValues() {
    return op.getNormalizer() ? normalizerAt(stateRows())
                              : stateAt(stateRows(), 0);
  }

  /// The number of summands of a value wider than 16 bits.
  int64_t summands() { return schedule.getSummands(); }
  SharedTile tileOf(int64_t columns) {
    return {tokens(), columns * elementBytes() / 2};
  }
  SharedTile keyTile() { return tileOf(paddedKey()); }
  SharedTile valueTile() { return tileOf(slice()); }
  int64_t stageBytes() { return keyTile().bytes() + valueTile().bytes(); }
  int64_t sharedBytes() { return stages() * stageBytes(); }
  /// Whether absent and masked keys must be set to zero after the feature map.
  bool dropsKeys() {
    bool keepsZero = featureMap() == FeatureMapKind::Identity ||
                     featureMap() == FeatureMapKind::Relu ||
                     featureMap() == FeatureMapKind::Relu2;
    return op.getMask() || !keepsZero;
  }
};

class StateKernel : StateShape {
public:
  /// Begins the code of the kernel, whose arguments `function` has.
  StateKernel(const StateShape &shape, KernelBuilder &k,
              KernelFunction &function);

  /// The states that `state` and `normalizer` start from; null: 0.
  void run(Value state, Value normalizer);

private:
  using Values = SmallVector<Value>;
  using Visitor =
      function_ref<void(int64_t number, Value address, Value exists)>;

  /// A block: a head and its slice of columns.
  struct Place {
    Value shared, thread, batch, head, tokens;
    Value firstColumn; ///< Null for the only slice.
    GlobalView mask;
  };
  /// A lane: its rows and columns of the state.
  struct Lane {
    Value number, row, pair; ///< lane / 4, lane % 4.
    Value rowWarp, column;   ///< The warp's rows and first column.
    Value key, value;        ///< Places of its fragments.
  };

  void placeFragments();
  TilePipeline prepareCopies();

  void forEachState(const GlobalView &view, Visitor body);
  void forEachNormalizer(const GlobalView &view, Visitor body);
  Values loadState(const GlobalView &from, const GlobalView &normalizer);
  void storeState(ValueRange state);

  Values step(Value number, Value base, Value step, ValueRange state);
  Summands loadFragment(SharedTile tile, Value base, Value place,
                        int64_t column);
  std::pair<Value, Value> keptTokens(Value first);

  KernelBuilder &k;
  KernelFunction &function;
  Place here;
  Lane lane;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_STATEKERNEL_H
