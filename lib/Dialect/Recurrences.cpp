//===- Recurrences.cpp - Interfaces of the small recurrences --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of a recurrence are the dimensions of its output, so a table with
// the loop of each dimension of each operand says all there is to tiling:
// slices, positions of results and the iteration domain. Tokens are walked in
// order, from the state that is given: a chunk is a tile of T.
//
//===----------------------------------------------------------------------===//

#include "LoopTiles.h"
#include "linattn/Dialect/LinAttnConv.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// The loops of each operand
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t whole = kNoLoop;

/// Collects the loops of the operands that are present.
class LoopTable {
public:
  void add(Value operand, DimLoops dims) {
    if (operand)
      loops.push_back(std::move(dims));
  }
  SmallVector<DimLoops> loops;
};

} // namespace

// [B, T, C]
namespace channels {
enum Loop : int64_t { Batch = 0, Token = 1, Channel = 2 };
} // namespace channels

/// [C] or [B, T, C].
static DimLoops channelDims(Value operand) {
  using namespace channels;
  if (operand && rankOf(operand) == 1)
    return {Channel};
  return {Batch, Token, Channel};
}

/// The loop of a state's first dimension. Packed sequences have no batch.
static int64_t slotLoop(Value offsets) {
  return offsets ? whole : int64_t(channels::Batch);
}

/// [C, N], [B, T, N] or [B, G, T, N].
static DimLoops projectionDims(Value operand) {
  using namespace channels;
  if (operand && rankOf(operand) == 2)
    return {Channel, whole};
  if (operand && rankOf(operand) == 4)
    return {Batch, whole, Token, whole};
  return {Batch, Token, whole};
}

SmallVector<DimLoops> SelectiveScanOp::getOperandLoops() {
  using namespace channels;
  LoopTable table;
  auto projection = [&](Value operand) {
    table.add(operand, projectionDims(operand));
  };
  table.add(getInput(), channelDims(getInput()));
  table.add(getDelta(), channelDims(getDelta()));
  table.add(getA(), {Channel, whole});
  projection(getB());
  projection(getC());
  table.add(getAImag(), {Channel, whole});
  projection(getBImag());
  projection(getCImag());
  table.add(getSkip(), {Channel});
  table.add(getGate(), channelDims(getGate()));
  table.add(getDeltaBias(), {Channel});
  table.add(getCuSeqlens(), {whole});
  table.add(getOutput(), channelDims(getOutput()));
  for (Value state : {Value(getState()), Value(getStateImag())})
    table.add(state, {slotLoop(getCuSeqlens()), Channel, whole});
  return table.loops;
}

SmallVector<DimLoops> SweepSelectiveOp::getOperandLoops() {
  using namespace channels;
  LoopTable table;
  DimLoops state{slotLoop(getCuSeqlens()), Channel, whole};
  table.add(getInput(), channelDims(getInput()));
  table.add(getDelta(), channelDims(getDelta()));
  table.add(getA(), {Channel, whole});
  table.add(getB(), projectionDims(getB()));
  table.add(getC(), projectionDims(getC()));
  table.add(getStart(), state);
  table.add(getCotangent(), channelDims(getCotangent()));
  table.add(getCuSeqlens(), {whole});
  table.add(getOutput(), channelDims(getOutput()));
  table.add(getDeltaOutput(), channelDims(getDeltaOutput()));
  table.add(getAOutput(), {Channel, whole});
  table.add(getBOutput(), projectionDims(getBOutput()));
  table.add(getCOutput(), projectionDims(getCOutput()));
  table.add(getState(), state);
  return table.loops;
}

SmallVector<DimLoops> DiagonalScanOp::getOperandLoops() {
  using namespace channels;
  LoopTable table;
  for (Value operand : {Value(getInput()), Value(getImag()), Value(getDecay()),
                        Value(getPhase())})
    table.add(operand, channelDims(operand));
  table.add(getCuSeqlens(), {whole});
  for (Value output : {Value(getOutput()), Value(getOutputImag())})
    table.add(output, channelDims(output));
  for (Value state : {Value(getState()), Value(getStateImag())})
    table.add(state, {slotLoop(getCuSeqlens()), Channel});
  return table.loops;
}

SmallVector<DimLoops> Wkv4Op::getOperandLoops() {
  using namespace channels;
  LoopTable table;
  for (Value operand : {Value(getKey()), Value(getValue()), Value(getDecay()),
                        Value(getBonus())})
    table.add(operand, channelDims(operand));
  table.add(getCuSeqlens(), {whole});
  table.add(getOutput(), channelDims(getOutput()));
  table.add(getState(), {slotLoop(getCuSeqlens()), whole, Channel});
  return table.loops;
}

SmallVector<DimLoops> CausalConvOp::getOperandLoops() {
  using namespace channels;
  LoopTable table;
  table.add(getInput(), channelDims(getInput()));
  table.add(getWeight(), {Channel, whole});
  table.add(getBias(), {Channel});
  table.add(getCuSeqlens(), {whole});
  table.add(getOutput(), channelDims(getOutput()));
  table.add(getState(), {slotLoop(getCuSeqlens()), Channel, whole});
  return table.loops;
}

SmallVector<DimLoops> LogLinearOp::getOperandLoops() {
  enum Loop : int64_t { Batch = 0, Head = 1, Token = 2, Column = 3 };
  LoopTable table;
  int64_t slot = slotLoop(getCuSeqlens());
  table.add(getQuery(), {Batch, Head, Token, whole});
  table.add(getKey(), {Batch, Head, Token, whole});
  table.add(getValue(), {Batch, Head, Token, Column});
  table.add(getDecay(), {Batch, Head, Token});
  table.add(getLevels(), {Batch, Head, Token, whole});
  table.add(getPosition(), {slot});
  table.add(getCuSeqlens(), {whole});
  table.add(getOutput(), {Batch, Head, Token, Column});
  table.add(getState(), {slot, Head, whole, whole, Column});
  return table.loops;
}

SmallVector<DimLoops> SweepOp::getOperandLoops() {
  enum Loop : int64_t { Batch = 0, Head = 1, Token = 2 };
  LoopTable table;
  DimLoops tokens{Batch, Head, Token, whole};
  for (Value operand : {getQuery(), getKey(), getValue()})
    table.add(operand, tokens);
  if (Value decay = getDecay())
    table.add(decay, rankOf(decay) == 1   ? DimLoops{Head}
                     : rankOf(decay) == 3 ? DimLoops{Batch, Head, Token}
                                          : tokens);
  for (Value operand : {getA(), getB(), getValueQuery()})
    table.add(operand, tokens);
  table.add(getCuSeqlens(), {whole});
  table.add(getOutput(), tokens);
  table.add(getValueOutput(), tokens);
  table.add(getState(), {slotLoop(getCuSeqlens()), Head, whole, whole});
  return table.loops;
}

//===----------------------------------------------------------------------===//
// Which tiles exist
//===----------------------------------------------------------------------===//

static SmallVector<Range> iterationDomain(RecurrenceOpInterface op,
                                          OpBuilder &b) {
  SmallVector<Range> domain;
  for (OpFoldResult size :
       tensor::getMixedSizes(b, op.getLoc(), op.getFirstOutput().get()))
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  return domain;
}

static OpLoops loopsOf(RecurrenceOpInterface op) {
  if (isa<LogLinearOp>(op.getOperation()))
    return groupHeads(op, op.getOperandLoops(), /*head=*/1);
  return {op.getOperandLoops(), std::nullopt};
}

static LogicalResult checkTile(RecurrenceOpInterface op, OpBuilder &b,
                               ArrayRef<OpFoldResult> offsets,
                               ArrayRef<OpFoldResult> sizes,
                               const OpLoops &loops) {
  SmallVector<Range> domain = iterationDomain(op, b);
  auto partial = [&](int64_t loop) {
    return !isWhole(offsets[loop], sizes[loop], domain[loop].size);
  };
  if (failed(checkGroups(op, loops, domain, offsets, sizes)))
    return failure();
  if (auto scan = dyn_cast<SelectiveScanOp>(op.getOperation())) {
    auto isGrouped = [](Value projection) {
      return rankOf(projection) == 4 &&
             cast<ShapedType>(projection.getType()).getDimSize(1) != 1;
    };
    if ((isGrouped(scan.getB()) || isGrouped(scan.getC())) &&
        partial(channels::Channel))
      return op->emitOpError("cannot be tiled over channels: they are in "
                             "groups");
  }
  if (isa<SweepSelectiveOp>(op.getOperation()) &&
      llvm::any_of(ArrayRef<int64_t>{0, 1, 2}, partial))
    return op->emitOpError("cannot be tiled: its outputs are sums over "
                           "sequences, tokens and channels");
  // A sweep's outputs have different sizes, and each sums over the size of the
  // other.
  if (isa<SweepOp>(op.getOperation()) && partial(3))
    return op->emitOpError("cannot be tiled over features: a read along the "
                           "values sums over them");
  if (!partial(op.getTokenLoop()))
    return success();
  // A later tile would start at the position of the first.
  if (isa<LogLinearOp>(op.getOperation()))
    return op->emitOpError("cannot be tiled over tokens: its levels follow "
                           "from the position in the sequence");
  if (op.isReversed() || op.getSequenceOffsets())
    return op->emitOpError("cannot be tiled over tokens: ")
           << (op.isReversed() ? "it runs from the last token to the first"
                               : "its sequences start inside the tiles");
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

static FailureOr<TilingResult> tile(RecurrenceOpInterface op, OpBuilder &b,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes) {
  OpLoops loops = loopsOf(op);
  if (failed(checkTile(op, b, offsets, sizes, loops)))
    return failure();
  return tileByLoops(b, op, loops, offsets, sizes);
}

static SmallVector<utils::IteratorType>
iteratorTypes(RecurrenceOpInterface op) {
  SmallVector<utils::IteratorType> types(rankOf(op.getFirstOutput().get()),
                                         utils::IteratorType::parallel);
  types[op.getTokenLoop()] = utils::IteratorType::reduction;
  return types;
}

static FailureOr<SmallVector<Value>> refuseDecomposition(Operation *op) {
  return op->emitOpError("cannot be decomposed: linalg has no loop over tokens "
                         "that follow one another");
}

static MutableOperandRange destinations(RecurrenceOpInterface op) {
  unsigned start = op.getFirstOutput().getOperandNumber();
  return MutableOperandRange(op, start, op->getNumOperands() - start);
}

#define LINATTN_RECURRENCE_OP(OpTy)                                            \
  MutableOperandRange OpTy::getDpsInitsMutable() {                             \
    return destinations(*this);                                                \
  }                                                                            \
  FailureOr<SmallVector<Value>> OpTy::decomposeOperation(OpBuilder &) {        \
    return refuseDecomposition(*this);                                         \
  }                                                                            \
  LINATTN_TILING_METHODS(OpTy)

LINATTN_RECURRENCE_OP(SelectiveScanOp)
LINATTN_RECURRENCE_OP(DiagonalScanOp)
LINATTN_RECURRENCE_OP(Wkv4Op)
LINATTN_RECURRENCE_OP(LogLinearOp)
LINATTN_RECURRENCE_OP(CausalConvOp)
LINATTN_RECURRENCE_OP(SweepOp)
LINATTN_RECURRENCE_OP(SweepSelectiveOp)

#undef LINATTN_RECURRENCE_OP
