//===- LoopTiles.cpp - Tiles of operands by loops -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopTiles.h"

#include "linattn/Dialect/LinAttn.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::linattn;

bool mlir::linattn::isWhole(OpFoldResult offset, OpFoldResult size,
                            OpFoldResult full) {
  if (!isZeroInteger(offset))
    return false;
  if (isEqualConstantIntOrValue(size, full))
    return true;
  // The two sizes may be computed by different values.
  FailureOr<bool> equal = ValueBoundsConstraintSet::areEqual(size, full);
  return succeeded(equal) && *equal;
}

/// True if the sizes along a loop are not all the same static number.
static bool hasGroups(Operation *op, ArrayRef<DimLoops> loops, int64_t loop) {
  std::optional<int64_t> common;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), loops)) {
    auto *position = llvm::find(dims, loop);
    if (position == dims.end())
      continue;
    int64_t size =
        cast<ShapedType>(operand.getType()).getDimSize(position - dims.begin());
    if (ShapedType::isDynamic(size) || (common && *common != size))
      return true;
    common = size;
  }
  return false;
}

OpLoops mlir::linattn::groupHeads(Operation *op, SmallVector<DimLoops> operands,
                                  int64_t head) {
  OpLoops loops{std::move(operands), std::nullopt};
  if (hasGroups(op, loops.operands, head))
    loops.grouped = head;
  return loops;
}

LogicalResult mlir::linattn::checkGroups(Operation *op, const OpLoops &loops,
                                         ArrayRef<Range> domain,
                                         ArrayRef<OpFoldResult> offsets,
                                         ArrayRef<OpFoldResult> sizes) {
  if (!loops.grouped)
    return success();
  int64_t heads = *loops.grouped;
  if (isWhole(offsets[heads], sizes[heads], domain[heads].size))
    return success();
  return op->emitOpError("cannot be tiled over heads: its operands' head "
                         "counts differ or are dynamic");
}

/// The tile of one operand.
static Tile getOperandTile(OpBuilder &b, Operation *op, const OpLoops &loops,
                           unsigned operand, ArrayRef<OpFoldResult> offsets,
                           ArrayRef<OpFoldResult> sizes) {
  Tile tile;
  Value value = op->getOperand(operand);
  for (auto [index, loop] : llvm::enumerate(loops.operands[operand])) {
    bool all = loop == kNoLoop || loop == loops.grouped;
    tile.offsets.push_back(all ? b.getIndexAttr(0) : offsets[loop]);
    tile.sizes.push_back(
        all ? tensor::getMixedSize(b, op->getLoc(), value, index)
            : sizes[loop]);
  }
  return tile;
}

TilingResult
mlir::linattn::tileByLoops(OpBuilder &b, Operation *op, const OpLoops &loops,
                           ArrayRef<OpFoldResult> offsets,
                           ArrayRef<OpFoldResult> sizes,
                           function_ref<void(unsigned, Tile &)> adjust) {
  SmallVector<Value> operands;
  SmallVector<Operation *> slices;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    if (!isa<ShapedType>(operand.getType())) { // a scale
      operands.push_back(operand);
      continue;
    }
    Tile part = getOperandTile(b, op, loops, number, offsets, sizes);
    if (adjust)
      adjust(number, part);
    SmallVector<OpFoldResult> strides(part.sizes.size(), b.getIndexAttr(1));
    auto slice = tensor::ExtractSliceOp::create(
        b, op->getLoc(), operand, part.offsets, part.sizes, strides);
    slices.push_back(slice);
    operands.push_back(slice);
  }
  SmallVector<Type> types;
  auto structured = cast<DestinationStyleOpInterface>(op);
  for (OpOperand &init : structured.getDpsInitsMutable())
    types.push_back(operands[init.getOperandNumber()].getType());
  Operation *tiled = cloneStructured(b, op, types, operands);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

/// The operand that a result is written into.
static unsigned destinationOf(Operation *op, unsigned number) {
  auto structured = cast<DestinationStyleOpInterface>(op);
  return structured.getDpsInitOperand(number)->getOperandNumber();
}

Tile mlir::linattn::getResultTile(OpBuilder &b, Operation *op,
                                  const OpLoops &loops, unsigned number,
                                  ArrayRef<OpFoldResult> offsets,
                                  ArrayRef<OpFoldResult> sizes) {
  return getOperandTile(b, op, loops, destinationOf(op, number), offsets,
                        sizes);
}

FailureOr<Tile> mlir::linattn::getLoopTile(OpBuilder &b, Operation *op,
                                           const OpLoops &loops,
                                           ArrayRef<Range> domain,
                                           unsigned number,
                                           ArrayRef<OpFoldResult> offsets,
                                           ArrayRef<OpFoldResult> sizes) {
  Tile tile;
  for (Range range : domain) {
    tile.offsets.push_back(range.offset);
    tile.sizes.push_back(range.size);
  }
  unsigned operand = destinationOf(op, number);
  for (auto [index, loop] : llvm::enumerate(loops.operands[operand])) {
    OpFoldResult full =
        tensor::getMixedSize(b, op->getLoc(), op->getOperand(operand), index);
    bool all = isWhole(offsets[index], sizes[index], full);
    if (loop == kNoLoop && !all)
      return failure();
    // A tile with all heads of a state has all heads of the output.
    if (loop == kNoLoop || (loop == loops.grouped && all))
      continue;
    tile.offsets[loop] = offsets[index];
    tile.sizes[loop] = sizes[index];
  }
  return tile;
}
