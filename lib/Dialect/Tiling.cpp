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

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/MapParameters.h"
#include "linattn/Dialect/OperandLoops.h"
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

enum Loop : int { Batch = 0, Head = 1, Token = 2, Whole = -1 };
/// The loop of each dimension of one operand.
using DimLoops = SmallVector<int, 4>;

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
  int sequence = op.getCuSeqlens() ? Whole : Batch;
  SmallVector<DimLoops> loops;
  for (unsigned i = 0; i < state; ++i)
    loops.push_back(i == bonus     ? DimLoops{Head, Whole}
                    : i == offsets ? DimLoops{Whole}
                    : i == indices ? DimLoops{sequence}
                                   : auxiliaryDims(op->getOperand(i)));
  // With sequences packed in one batch, or states in a pool, the states are not
  // indexed by batch.
  int slot = indices ? Whole : sequence;
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

SmallVector<SmallVector<int, 4>> mlir::linattn::getOperandLoops(Operation *op) {
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

/// True if the tile spans the whole of a loop.
static bool isWhole(OpFoldResult offset, OpFoldResult size, OpFoldResult full) {
  if (!isZeroInteger(offset))
    return false;
  if (isEqualConstantIntOrValue(size, full))
    return true;
  // The two sizes may be computed by different values.
  FailureOr<bool> equal = ValueBoundsConstraintSet::areEqual(size, full);
  return succeeded(equal) && *equal;
}

/// With grouped heads a slice of output heads does not slice the state heads.
static bool hasGroupedHeads(Operation *op, ArrayRef<DimLoops> loops) {
  std::optional<int64_t> heads;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), loops)) {
    auto *position = llvm::find(dims, Head);
    if (position == dims.end())
      continue;
    int64_t size =
        cast<ShapedType>(operand.getType()).getDimSize(position - dims.begin());
    if (ShapedType::isDynamic(size) || (heads && *heads != size))
      return true;
    heads = size;
  }
  return false;
}

template <typename OpTy>
static LogicalResult
checkTile(OpTy op, OpBuilder &b, ArrayRef<OpFoldResult> offsets,
          ArrayRef<OpFoldResult> sizes, ArrayRef<DimLoops> loops) {
  SmallVector<Range> domain = iterationDomain(op, b);
  auto partial = [&](Loop loop) {
    return !isWhole(offsets[loop], sizes[loop], domain[loop].size);
  };
  if (partial(Head) && hasGroupedHeads(op, loops))
    return op.emitOpError("cannot be tiled over heads: its operands' head "
                          "counts differ or are dynamic");
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

/// The tile of one operand for these loop offsets and sizes. Grouped heads are
/// never tiled, so that each operand keeps its own number of heads.
static void operandTile(OpBuilder &b, Location loc, Value operand,
                        const DimLoops &dims, bool groupedHeads,
                        ArrayRef<OpFoldResult> offsets,
                        ArrayRef<OpFoldResult> sizes,
                        SmallVectorImpl<OpFoldResult> &tileOffsets,
                        SmallVectorImpl<OpFoldResult> &tileSizes) {
  for (auto [index, loop] : llvm::enumerate(dims)) {
    bool isWhole = loop == Whole || (loop == Head && groupedHeads);
    tileOffsets.push_back(isWhole ? b.getIndexAttr(0) : offsets[loop]);
    tileSizes.push_back(isWhole ? tensor::getMixedSize(b, loc, operand, index)
                                : sizes[loop]);
  }
}

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
  SmallVector<DimLoops> loops = operandLoops(op);
  if (failed(checkTile(op, b, offsets, sizes, loops)))
    return failure();

  Location loc = op.getLoc();
  bool groupedHeads = hasGroupedHeads(op, loops);
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  for (auto [number, operand, dims] :
       llvm::enumerate(op->getOperands(), loops)) {
    if (!isa<ShapedType>(operand.getType())) {
      operands.push_back(operand);
      continue;
    }
    SmallVector<OpFoldResult> tileOffsets, tileSizes;
    operandTile(b, loc, operand, dims, groupedHeads, offsets, sizes,
                tileOffsets, tileSizes);
    if constexpr (std::is_same_v<OpTy, QuadraticOp>) {
      // Query, key, value, mask, output. One value may be several of them.
      bool isKeySide = number == 1 || number == 2;
      bool isMask = number == 3 && op.getMask();
      if (op.getCausal() && (isKeySide || isMask))
        tileSizes[isKeySide ? 2 : 1] =
            visibleKeys(op, b, offsets[Token], sizes[Token]);
    }
    SmallVector<OpFoldResult> strides(tileOffsets.size(), b.getIndexAttr(1));
    auto slice = tensor::ExtractSliceOp::create(b, loc, operand, tileOffsets,
                                                tileSizes, strides);
    slices.push_back(slice);
    operands.push_back(slice);
  }

  SmallVector<Type> types;
  for (OpOperand &init : op.getDpsInitsMutable())
    types.push_back(operands[init.getOperandNumber()].getType());
  Operation *tiled = cloneStructured(b, op, types, operands);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

template <typename OpTy>
static LogicalResult resultTile(OpTy op, OpBuilder &b, unsigned resultNumber,
                                ArrayRef<OpFoldResult> offsets,
                                ArrayRef<OpFoldResult> sizes,
                                SmallVectorImpl<OpFoldResult> &resultOffsets,
                                SmallVectorImpl<OpFoldResult> &resultSizes) {
  OpOperand &init = *op.getDpsInitOperand(resultNumber);
  SmallVector<DimLoops> loops = operandLoops(op);
  operandTile(b, op.getLoc(), init.get(), loops[init.getOperandNumber()],
              hasGroupedHeads(op, loops), offsets, sizes, resultOffsets,
              resultSizes);
  return success();
}

/// The inverse of `resultTile`: loops that do not index the result run whole.
template <typename OpTy>
static FailureOr<TilingResult>
tileForResult(OpTy op, OpBuilder &b, unsigned resultNumber,
              ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
  OpOperand &init = *op.getDpsInitOperand(resultNumber);
  SmallVector<DimLoops> loops = operandLoops(op);
  const DimLoops &dims = loops[init.getOperandNumber()];
  bool groupedHeads = hasGroupedHeads(op, loops);
  SmallVector<OpFoldResult> loopOffsets, loopSizes;
  for (Range range : iterationDomain(op, b)) {
    loopOffsets.push_back(range.offset);
    loopSizes.push_back(range.size);
  }
  for (auto [index, loop] : llvm::enumerate(dims)) {
    OpFoldResult full = tensor::getMixedSize(b, op.getLoc(), init.get(), index);
    bool all = isWhole(offsets[index], sizes[index], full);
    if (loop == Whole && !all)
      return failure();
    // A tile with all heads of a state has all heads of the output.
    if (loop == Whole || (loop == Head && groupedHeads && all))
      continue;
    loopOffsets[loop] = offsets[index];
    loopSizes[loop] = sizes[index];
  }
  return tile(op, b, loopOffsets, loopSizes);
}

/// Tokens of a scan depend on one another; elsewhere tokens are independent.
template <typename OpTy>
static SmallVector<utils::IteratorType> iteratorTypes() {
  bool sequential =
      std::is_same_v<OpTy, ScanOp> || std::is_same_v<OpTy, StateOp>;
  return {utils::IteratorType::parallel, utils::IteratorType::parallel,
          sequential ? utils::IteratorType::reduction
                     : utils::IteratorType::parallel};
}

#define LINATTN_TILED_OP(OpTy)                                                 \
  SmallVector<utils::IteratorType> OpTy::getLoopIteratorTypes() {              \
    return iteratorTypes<OpTy>();                                              \
  }                                                                            \
  SmallVector<Range> OpTy::getIterationDomain(OpBuilder &b) {                  \
    return iterationDomain(*this, b);                                          \
  }                                                                            \
  FailureOr<TilingResult> OpTy::getTiledImplementation(                        \
      OpBuilder &b, ArrayRef<OpFoldResult> offsets,                            \
      ArrayRef<OpFoldResult> sizes) {                                          \
    return tile(*this, b, offsets, sizes);                                     \
  }                                                                            \
  LogicalResult OpTy::getResultTilePosition(                                   \
      OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,     \
      ArrayRef<OpFoldResult> sizes, SmallVector<OpFoldResult> &resultOffsets,  \
      SmallVector<OpFoldResult> &resultSizes) {                                \
    return resultTile(*this, b, resultNumber, offsets, sizes, resultOffsets,   \
                      resultSizes);                                            \
  }                                                                            \
  FailureOr<TilingResult> OpTy::generateResultTileValue(                       \
      OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,     \
      ArrayRef<OpFoldResult> sizes) {                                          \
    return tileForResult(*this, b, resultNumber, offsets, sizes);              \
  }

LINATTN_TILED_OP(QuadraticOp)
LINATTN_TILED_OP(ScanOp)
LINATTN_TILED_OP(StateOp)
LINATTN_TILED_OP(ReadOp)
LINATTN_TILED_OP(FeatureMapOp)
LINATTN_TILED_OP(OutputNormOp)

#undef LINATTN_TILED_OP
