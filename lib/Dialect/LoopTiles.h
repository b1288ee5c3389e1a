//===- LoopTiles.h - Tiles of operands by loops -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_DIALECT_LOOPTILES_H
#define LINATTN_LIB_DIALECT_LOOPTILES_H

#include "linattn/Dialect/OperandLoops.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/TilingInterface.h"

namespace mlir::linattn {

/// Offsets and sizes, of the loops or of one operand.
struct Tile {
  SmallVector<OpFoldResult> offsets, sizes;
};

/// True if the tile spans the whole of a dimension.
bool isWhole(OpFoldResult offset, OpFoldResult size, OpFoldResult full);

/// The loops of an op's operands. The loop `grouped` is never tiled, so that
/// each operand keeps its own number of heads.
struct OpLoops {
  SmallVector<DimLoops> operands;
  std::optional<int64_t> grouped;
};

/// The loops of an op whose heads are grouped where their number is not the
/// same static one in all operands: a slice of output heads is then no slice of
/// the state heads.
OpLoops groupHeads(Operation *op, SmallVector<DimLoops> operands, int64_t head);

/// Refuses tiles of grouped heads, with an error.
LogicalResult checkGroups(Operation *op, const OpLoops &loops,
                          ArrayRef<Range> domain,
                          ArrayRef<OpFoldResult> offsets,
                          ArrayRef<OpFoldResult> sizes);

/// The op on slices of its operands, for a tile of the loops. `adjust` may
/// change the slice of an operand, by its number.
TilingResult tileByLoops(OpBuilder &b, Operation *op, const OpLoops &loops,
                         ArrayRef<OpFoldResult> offsets,
                         ArrayRef<OpFoldResult> sizes,
                         function_ref<void(unsigned, Tile &)> adjust = nullptr);

/// The tile of a result for a tile of the loops.
Tile getResultTile(OpBuilder &b, Operation *op, const OpLoops &loops,
                   unsigned number, ArrayRef<OpFoldResult> offsets,
                   ArrayRef<OpFoldResult> sizes);

/// The inverse: loops that do not index the result run whole. Fails for a tile
/// of a dimension that is never split.
FailureOr<Tile> getLoopTile(OpBuilder &b, Operation *op, const OpLoops &loops,
                            ArrayRef<Range> domain, unsigned number,
                            ArrayRef<OpFoldResult> offsets,
                            ArrayRef<OpFoldResult> sizes);

} // namespace mlir::linattn

/// Defines the methods of TilingInterface by the functions `iteratorTypes`,
/// `iterationDomain`, `loopsOf` and `tile` of a file.
#define LINATTN_TILING_METHODS(OpTy)                                           \
  SmallVector<utils::IteratorType> OpTy::getLoopIteratorTypes() {              \
    return iteratorTypes(*this);                                               \
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
    Tile tile =                                                                \
        getResultTile(b, *this, loopsOf(*this), resultNumber, offsets, sizes); \
    resultOffsets = std::move(tile.offsets);                                   \
    resultSizes = std::move(tile.sizes);                                       \
    return success();                                                          \
  }                                                                            \
  FailureOr<TilingResult> OpTy::generateResultTileValue(                       \
      OpBuilder &b, unsigned resultNumber, ArrayRef<OpFoldResult> offsets,     \
      ArrayRef<OpFoldResult> sizes) {                                          \
    FailureOr<Tile> part =                                                     \
        getLoopTile(b, *this, loopsOf(*this), iterationDomain(*this, b),       \
                    resultNumber, offsets, sizes);                             \
    if (failed(part))                                                          \
      return failure();                                                        \
    return tile(*this, b, part->offsets, part->sizes);                         \
  }

#endif // LINATTN_LIB_DIALECT_LOOPTILES_H
