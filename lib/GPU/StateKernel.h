//===- StateKernel.h - Sums of keys and values ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `linattn.state`: S = S_0 + φ(K)ᵀ V and z = z_0 + φ(K)ᵀ 1, one pass over the
// tokens in their order. A block owns a slice of the state's columns, a group
// of four of its warps some of those; S stays in registers, in f32. Mapped keys
// and tokens of f32 are sums of three numbers of 16 bits, or of as many as the
// schedule says for f32.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_STATEKERNEL_H
#define LINATTN_LIB_GPU_STATEKERNEL_H

#include "FloatTile.h"
#include "ScanKernel.h"

namespace mlir::linattn {

class StateKernel {
public:
  static constexpr int64_t groupWarps = 4;

  StateKernel(StateOp op, ScheduleAttr schedule);

  /// Reads the states that `state` and `normalizer` start from.
  LaunchOp build(const StateSource &state, const StateSource &normalizer,
                 ModuleOp module, StringRef name);

  int64_t sharedBytes() {
    return schedule.getStages() * (keyTile().bytes() + valueTile().bytes());
  }
  /// The number of tokens must be known.
  KernelWork work();

private:
  using Values = SmallVector<Value>;

  //===--------------------------------------------------------------------===//
  // Sizes
  //===--------------------------------------------------------------------===//

  int64_t tokens() { return schedule.getChunk(); }
  int64_t slice() { return schedule.getValueSlice(); }
  int64_t slices() { return llvm::divideCeil(valueSize, slice()); }
  int64_t groupColumns() { return slice() * groupWarps / schedule.getWarps(); }
  /// The warps of a group divide the rows of the state, and what is left of
  /// them the columns.
  int64_t rowWarps() { return paddedKey() % 64 == 0 ? 4 : 2; }
  int64_t columnWarps() { return groupWarps / rowWarps(); }
  int64_t paddedKey() { return llvm::alignTo(keySize, 32); }
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

  int64_t elementBytes() { return isWide ? 4 : 2; }
  /// The number of summands of a value wider than 16 bits.
  int64_t summands() { return schedule.getSummands(); }
  SharedTile tileOf(int64_t columns) {
    return {tokens(), columns * elementBytes() / 2};
  }
  SharedTile keyTile() { return tileOf(paddedKey()); }
  SharedTile valueTile() { return tileOf(slice()); }
  bool isMapped() { return map() != FeatureMapKind::Identity; }
  FeatureMapKind map() {
    return cast<FeatureMappedOpInterface>(op.getOperation())
        .getFeatureMapKind();
  }
  /// Whether absent and masked keys must be set to zero after the feature map.
  bool dropsKeys() {
    bool keepsZero = map() == FeatureMapKind::Identity ||
                     map() == FeatureMapKind::Relu ||
                     map() == FeatureMapKind::Relu2;
    return op.getMask() || !keepsZero;
  }

  //===--------------------------------------------------------------------===//
  // Emission
  //===--------------------------------------------------------------------===//

  void declare(const StateSource &state, const StateSource &normalizer);
  void place();
  void prepareCopies();
  Value stageBase(Value stage);
  void startChunk(Value number, Value stage);
  void arrive(Value number, Value stage);

  void forEachState(
      const GlobalView &view,
      function_ref<void(int64_t at, Value address, Value exists)> body);
  void forEachNormalizer(
      const GlobalView &view,
      function_ref<void(int64_t at, Value address, Value exists)> body);
  Values loadState(bool fromState, bool fromNormalizer);
  void storeState(ValueRange state);

  Values chunk(Value number, ValueRange state);
  Values step(Value number, Value base, Value step, ValueRange state);
  Summands loadFragment(SharedTile tile, Value base, Value place,
                        int64_t column);
  std::pair<Value, Value> keptTokens(Value first);

  StateOp op;
  ScheduleAttr schedule;
  KernelFunction function;
  int64_t keySize, valueSize, heads;
  Type type, summandType;
  bool isWide;

  unsigned key, value, mask, stateIn, stateOut, normalizerIn, normalizerOut;
  std::optional<KernelBuilder> builder;
  KernelBuilder &k() { return *builder; }
  Value shared, thread, lane, batch, head, tokenCount;
  Value row, pair; ///< lane / 4, lane % 4.
  Value firstColumn, warpColumn,
      rowWarp; ///< firstColumn: of the slice, or null.
  GlobalView maskView;
  std::optional<TileCopy> copyKey, copyValue;
  Value keyBase, valueBase, keyStride, valueStride;
  Value keyPlace, valuePlace; ///< Places of this lane for its fragments.
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_STATEKERNEL_H
