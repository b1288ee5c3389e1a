//===- AMXTiles.cpp - What lowerings of tiles to vectors share ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AMXTiles.h"

using namespace mlir;
using namespace mlir::linattn;

SmallVector<Value> mlir::linattn::placeInTile(LoopBuilder &b,
                                              ValueRange indices, Value stride,
                                              Value row) {
  SmallVector<Value> place(indices);
  Value &moved = stride ? place.back() : place[place.size() - 2];
  moved = b.add(moved, stride ? b.mul(stride, row) : row);
  return place;
}

StringRef mlir::linattn::whyNoVectorsOfTiles(Operation *op) {
  auto isTile = [](Value x) { return isa<amx::TileType>(x.getType()); };
  if (!isa<amx::AMXDialect>(op->getDialect()))
    return llvm::any_of(op->getOperands(), isTile)
               ? "it takes a tile from its block to another one"
               : "";
  if (!isa<amx::TileZeroOp, amx::TileLoadOp, amx::TileStoreOp, amx::TileMulFOp>(
          op))
    return "it is not a product of floats";
  auto product = dyn_cast<amx::TileMulFOp>(op);
  if (product && !product.getLhsTileType().getElementType().isBF16())
    return "its factors are not bf16";
  for (Value operand : llvm::make_filter_range(op->getOperands(), isTile))
    if (operand.getParentBlock() != op->getBlock() ||
        isa<BlockArgument>(operand))
      return "it takes a tile of another block";
  return {};
}

LogicalResult
mlir::linattn::verifyTiles(Operation *function, StringRef what,
                           function_ref<std::string(Operation *)> why) {
  WalkResult checked = function->walk([&](Operation *op) {
    std::string reason = why(op);
    if (reason.empty())
      return WalkResult::advance();
    op->emitOpError() << what << ": " << reason;
    return WalkResult::interrupt();
  });
  return failure(checked.wasInterrupted());
}
