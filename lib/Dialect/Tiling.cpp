//===- Tiling.cpp - Tiling of the structured ops --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every structured op runs over the loops (batch, head, token). A table says
// which loop walks each dimension of each operand; slices, result positions and
// the iteration domain follow from it. The scan and the state op walk tokens
// sequentially: "starts from the state it is given" makes a chunk a tile of T.
//
//===----------------------------------------------------------------------===//

#include "LoopTiles.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/MapParameters.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

enum Loop : int64_t { Batch = 0, Head = 1, Token = 2, Whole = kNoLoop };

const DimLoops tokensDims{Batch, Head, Token, Whole};
const DimLoops keysDims{Batch, Head, Whole, Whole};
const DimLoops stateDims{Batch, Head, Whole, Whole};

} // namespace

/// The loops of an operand that is neither tokens nor a state.
static DimLoops auxiliaryDims(Value operand) {
  if (!isa<ShapedType>(operand.getType())) // a scale
    return {};
  switch (cast<ShapedType>(operand.getType()).getRank()) {
  case 1: // [H] gate
    return {Head};
  case 2: // [B, T] mask; running maxima and boni are handled by their owner
    return {Batch, Token};
  case 3: // [B, H, T] gate
    return {Batch, Head, Token};
  default: // [B, H, T, D] gate
    return tokensDims;
  }
}

/// The position of an optional operand.
static std::optional<unsigned> positionOf(MutableOperandRange range) {
  if (range.empty())
    return std::nullopt;
  return range[0].getOperandNumber();
}

/// The loops of a scan or of its state half.
template <typename OpTy>
static SmallVector<DimLoops> recurrenceLoops(OpTy op,
                                             std::optional<unsigned> bonus) {
  // Compares positions, since one value may be several operands.
  unsigned state = op.getStateMutable().getOperandNumber();
  std::optional<unsigned> offsets = positionOf(op.getCuSeqlensMutable());
  std::optional<unsigned> indices;
  if constexpr (std::is_same_v<OpTy, ScanOp>)
    indices = positionOf(op.getStateIndicesMutable());
  int64_t sequence = op.getCuSeqlens() ? Whole : Batch;
  SmallVector<DimLoops> loops;
  for (unsigned i = 0; i < state; ++i)
    loops.push_back(i == bonus     ? DimLoops{Head, Whole}
                    : i == offsets ? DimLoops{Whole}
                    : i == indices ? DimLoops{sequence}
                                   : auxiliaryDims(op->getOperand(i)));
  // With sequences packed in one batch, or states in a pool, the states are not
  // indexed by batch.
  int64_t slot = indices ? Whole : sequence;
  loops.push_back({slot, Head, Whole, Whole});
  if (op.getNormalizer())
    loops.push_back({slot, Head, Whole});
  if (op.getRunningMax())
    loops.push_back({slot, Head});
  if constexpr (std::is_same_v<OpTy, ScanOp>)
    for (Value snapshots : op.getSnapshots()) {
      DimLoops dims(cast<ShapedType>(snapshots.getType()).getRank(), Whole);
      dims[0] = slot;
      dims[2] = Head;
      loops.push_back(dims);
    }
  return loops;
}

static SmallVector<DimLoops> operandLoops(ScanOp op) {
  return recurrenceLoops(op, positionOf(op.getBonusMutable()));
}

static SmallVector<DimLoops> operandLoops(StateOp op) {
  return recurrenceLoops(op, std::nullopt);
}

static SmallVector<DimLoops> operandLoops(ReadOp op) {
  SmallVector<DimLoops> loops{tokensDims, stateDims};
  if (op.getNormalizer())
    loops.push_back({Batch, Head, Whole});
  if (op.getRunningMax())
    loops.push_back({Batch, Head});
  if (op.getScaleValue())
    loops.push_back({});
  loops.push_back(tokensDims);
  return loops;
}

static SmallVector<DimLoops> operandLoops(QuadraticOp op) {
  SmallVector<DimLoops> loops{tokensDims, keysDims, keysDims};
  if (op.getMask())
    loops.push_back({Batch, Whole});
  if (op.getPrefix())
    loops.push_back({Batch});
  if (op.getScaleValue())
    loops.push_back({});
  for (Value perHead : {op.getSlopes(), op.getSinks()})
    if (perHead)
      loops.push_back({Head});
  loops.push_back(tokensDims);
  return loops;
}

static SmallVector<DimLoops> operandLoops(FeatureMapOp op) {
  SmallVector<DimLoops> loops{tokensDims};
  auto kind = cast<FeatureMappedOpInterface>(op.getOperation());
  for (auto [parameter, operand] : llvm::zip(
           getMapParameters(kind.getFeatureMapKind()), op.getParameters())) {
    DimLoops dims(cast<ShapedType>(operand.getType()).getRank(), Whole);
    if (isPerHead(parameter, operand))
      dims.front() = Head;
    loops.push_back(dims);
  }
  if (Value positions = op.getPositions())
    loops.push_back(cast<ShapedType>(positions.getType()).getRank() == 2
                        ? DimLoops{Batch, Token}
                        : DimLoops{Token});
  loops.push_back(tokensDims);
  return loops;
}

static SmallVector<DimLoops> operandLoops(OutputNormOp op) {
  SmallVector<DimLoops> loops{tokensDims};
  auto addTokens = [&](Value tokens) {
    if (tokens)
      loops.push_back(tokensDims);
  };
  auto addWeights = [&](Value weights) {
    if (weights) // [D] or [H, D]
      loops.push_back(cast<ShapedType>(weights.getType()).getRank() == 1
                          ? DimLoops{Whole}
                          : DimLoops{Head, Whole});
  };
  addWeights(op.getWeight());
  addWeights(op.getBias());
  addTokens(op.getGate());
  addTokens(op.getSkip());
  addWeights(op.getSkipWeight());
  addTokens(op.getOutput());
  return loops;
}

SmallVector<DimLoops> mlir::linattn::getOperandLoops(Operation *op) {
  return llvm::TypeSwitch<Operation *, SmallVector<DimLoops>>(op)
      .Case<QuadraticOp, ScanOp, StateOp, ReadOp, FeatureMapOp, OutputNormOp>(
          [](auto structured) { return operandLoops(structured); })
      .Default([](Operation *) { return SmallVector<DimLoops>(); });
}

/// The operand whose first three dimensions are the loops.
template <typename OpTy>
static Value domainOperand(OpTy op) {
  if constexpr (std::is_same_v<OpTy, StateOp>)
    return op.getKey();
  else
    return op.getOutput();
}

template <typename OpTy>
static SmallVector<Range> iterationDomain(OpTy op, OpBuilder &b) {
  SmallVector<Range> domain;
  Location loc = op.getLoc();
  for (int64_t loop : {Batch, Head, Token}) {
    Value sized = domainOperand(op);
    if constexpr (std::is_same_v<OpTy, StateOp>)
      if (loop == Head)
        sized = op.getState();
    domain.push_back({b.getIndexAttr(0),
                      tensor::getMixedSize(b, loc, sized, loop),
                      b.getIndexAttr(1)});
  }
  return domain;
}

//===----------------------------------------------------------------------===//
// Which tiles exist
//===----------------------------------------------------------------------===//

template <typename OpTy>
static OpLoops loopsOf(OpTy op) {
  return groupHeads(op, operandLoops(op), Head);
}

template <typename OpTy>
static LogicalResult
checkTile(OpTy op, OpBuilder &b, ArrayRef<OpFoldResult> offsets,
          ArrayRef<OpFoldResult> sizes, const OpLoops &loops) {
  SmallVector<Range> domain = iterationDomain(op, b);
  auto partial = [&](Loop loop) {
    return !isWhole(offsets[loop], sizes[loop], domain[loop].size);
  };
  if (failed(checkGroups(op, loops, domain, offsets, sizes)))
    return failure();
  if constexpr (std::is_same_v<OpTy, ScanOp> || std::is_same_v<OpTy, StateOp>) {
    if (partial(Token) && (op.getReverse() || op.getCuSeqlens()))
      return op.emitOpError("cannot be tiled over tokens: ")
             << (op.getReverse() ? "it runs from the last token to the first"
                                 : "its sequences start inside the tiles");
  }
  if constexpr (std::is_same_v<OpTy, ScanOp>)
    if (partial(Token) && op.getEvery())
      return op.emitOpError("cannot be tiled over tokens: its snapshots are "
                            "counted from the first token");
  if constexpr (std::is_same_v<OpTy, ScanOp>)
    if (partial(Batch) && op.getStateIndices())
      return op.emitOpError("cannot be tiled over batches: every tile would "
                            "return the whole pool of states");
  if constexpr (std::is_same_v<OpTy, QuadraticOp>)
    if (partial(Token) && op.getPrefix())
      return op.emitOpError("cannot be tiled over tokens: its prefix is seen "
                            "from every tile");
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// Causal queries [i, i + n) see only the first i + n + Tk − Tq keys, which
/// keeps the last query of the tile aligned with the last key.
static OpFoldResult visibleKeys(QuadraticOp op, OpBuilder &b,
                                OpFoldResult offset, OpFoldResult size) {
  Location loc = op.getLoc();
  OpFoldResult keys = tensor::getMixedSize(b, loc, op.getKey(), 2);
  OpFoldResult queries = tensor::getMixedSize(b, loc, op.getQuery(), 2);
  AffineExpr d0, d1, d2, d3;
  bindDims(b.getContext(), d0, d1, d2, d3);
  OpFoldResult end = affine::makeComposedFoldedAffineApply(
      b, loc, d0 + d1 + d2 - d3, {offset, size, keys, queries});
  return affine::makeComposedFoldedAffineMax(
      b, loc,
      AffineMap::get(1, 0, {d0, b.getAffineConstantExpr(0)}, b.getContext()),
      {end});
}

template <typename OpTy>
static FailureOr<TilingResult> tile(OpTy op, OpBuilder &b,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes) {
  OpLoops loops = loopsOf(op);
  if (failed(checkTile(op, b, offsets, sizes, loops)))
    return failure();
  return tileByLoops(b, op, loops, offsets, sizes,
                     [&](unsigned number, Tile &part) {
                       if constexpr (std::is_same_v<OpTy, QuadraticOp>) {
                         // Query, key, value, mask, output. One value may be
                         // several of them.
                         bool isKeySide = number == 1 || number == 2;
                         bool isMask = number == 3 && op.getMask();
                         if (op.getCausal() && (isKeySide || isMask))
                           part.sizes[isKeySide ? 2 : 1] =
                               visibleKeys(op, b, offsets[Token], sizes[Token]);
                       }
                     });
}

/// Tokens of a scan depend on one another; elsewhere tokens are independent.
template <typename OpTy>
static SmallVector<utils::IteratorType> iteratorTypes(OpTy) {
  bool sequential =
      std::is_same_v<OpTy, ScanOp> || std::is_same_v<OpTy, StateOp>;
  return {utils::IteratorType::parallel, utils::IteratorType::parallel,
          sequential ? utils::IteratorType::reduction
                     : utils::IteratorType::parallel};
}

LINATTN_TILING_METHODS(QuadraticOp)
LINATTN_TILING_METHODS(ScanOp)
LINATTN_TILING_METHODS(StateOp)
LINATTN_TILING_METHODS(ReadOp)
LINATTN_TILING_METHODS(FeatureMapOp)
LINATTN_TILING_METHODS(OutputNormOp)
