//===- TokenKernel.h - The recurrence, token by token -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel of decoding, and of every rule that has no faster one. The state
// is read once, stays in registers in f32 while the tokens pass, and is written
// once. A warp owns 16 of its columns, all rows of them, so that no thread of
// another warp is needed within a token:
//
//   lane = 4 · r + c     rows 4 · (r + 8i) + e for i = 0, 1, …, e = 0 … 3
//                        columns 4 · c … 4 · c + 3
//
// so that one access of the warp to the state is 8 segments of 64 bytes. The
// block brings a few tokens at a time into shared memory, as f32, gates already
// exponentiated.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_TOKENKERNEL_H
#define LINATTN_LIB_GPU_TOKENKERNEL_H

#include "ScanKernel.h"

namespace mlir::linattn {

constexpr int64_t warpColumns = 16, rowGroups = 8, laneColumns = 4;
/// Rows are padded to whole passes of a warp's lanes.
constexpr int64_t rowStep = 4 * rowGroups;

/// A token operand in shared memory: [chunk][width] of f32.
struct Staged {
  GlobalView view;
  Value head;        ///< Null: that of the query.
  int64_t size = 0;  ///< Elements of a row that exist; 1 for a scalar.
  int64_t width = 0; ///< Elements of a row with padding.
  Value firstColumn; ///< Of the block, for operands on the values' side.
  int64_t offset = 0;
  enum { Plain, Mapped, Decay } kind = Plain;
  int64_t copies = 1;  ///< One after the other: the queries of a group.
  bool masked = false; ///< 0 for a token that is not written.
};

struct TokenShape : KernelShape<ScanOp> {
  StateSource source;

  int64_t tokens() const { return schedule.getChunk(); }
  int64_t groupSize() { return groupSizeOf(op); }
  bool isWholeVectors() { return valueSize() % laneColumns == 0; }
  int64_t rows() { return llvm::divideCeil(keySize(), rowStep); }
  int64_t at(int64_t i, int64_t e, int64_t j) const {
    return (i * 4 + e) * laneColumns + j;
  }
  int64_t stateCount() { return rows() * 4 * laneColumns; }
  int64_t zAt(int64_t i, int64_t e) { return stateCount() + i * 4 + e; }
};

class TokenKernel : TokenShape {
public:
  /// Begins the code of the kernel, whose arguments `locator.function` has.
  TokenKernel(const TokenShape &shape, KernelBuilder &k, ScanLocator &locator);

  void run();

  /// Of shared memory, once `run` has given every operand its place.
  int64_t sharedBytes() const { return operands.floats * 4; }

private:
  using Values = SmallVector<Value>;

  /// A block, and a thread in it.
  struct Place {
    Value shared, thread, warp, rowGroup;
    Value firstColumn; ///< Of the block.
    Value column;      ///< The first of the lane.
    ScanPlace scan;
  };
  struct Views {
    GlobalView stateIn, stateOut, output, mask, normalizer;
  };
  /// Those of the op; one that it lacks has no view.
  struct Operands {
    Staged query, keys, values, gate, valueGate, beta, a, b, erase, write;
    Staged bonus; ///< One row for all tokens.
    int64_t floats = 0;
  };

  void clearOutput();
  void stageOperands();
  Staged stage(Value buffer, Value head);
  void fillStage(const Staged &operand, Value first, Value left);
  void fillElement(const Staged &operand, Value index, Value first, Value left);
  Value addressOf(const Staged &operand, Value token, Value copy,
                  Value element);
  Value tokenAt(Value number);
  Value isWritten(Value token);
  Value transform(const Staged &operand, Value x);

  Values loadState();
  void storeState(ValueRange state);
  Value rowOf(int64_t i, int64_t e);
  Value rowExists(int64_t i, int64_t e);
  Value columnExists(int64_t j);
  Value loadNormalizer(int64_t i, int64_t e);

  Values chunk(Value number, ValueRange carried);
  void fillStages(const TilePipeline::Arrival &arrival);
  Value tokensOf(Value left);
  Values token(Value number, Value first, ValueRange carried);
  void decay(Value number, Values &state);
  Values transition(Value number, ValueRange before, ValueRange after);
  void write(Value number, ValueRange before, Values &state);
  void read(Value number, Value first, ValueRange state);
  void writeOutput(Value number, Value first, int64_t member, ValueRange o,
                   Value denominator);

  Value sharedAt(const Staged &operand, Value number, Value element);
  Value scalarOf(const Staged &operand, Value number);
  /// Rows 4 · (r + 8i) … + 3, or this lane's columns.
  Values rowsOf(const Staged &operand, Value number, int64_t i);
  Values columnsOf(const Staged &operand, Value number);
  /// Xᵀa: a sum over the rows of every column of this lane.
  Values sumRows(ValueRange matrix, const Staged &weights, Value number);
  Value sumLanes(Value x);

  KernelBuilder &k;
  ScanLocator &locator;
  Place here;
  Views views;
  Operands operands;
  Value headDecay; ///< Its factor; null unless all tokens have the same.
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_TOKENKERNEL_H
