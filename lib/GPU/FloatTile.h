//===- FloatTile.h - Matrices of f32 in shared memory -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The counterpart of `ldmatrix` for f32 tiles: the offsets of a lane, and the
// elements of a `Matrix` that it owns. `row` and `pair` are lane / 4 and
// lane % 4.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_FLOATTILE_H
#define LINATTN_LIB_GPU_FLOATTILE_H

#include "SharedTile.h"
#include "Summands.h"

namespace mlir::linattn {

/// The place for `loadPairs` in a tile of pairs, whose rows are those of the
/// matrix; `unit`: of its first column.
Value pairOffset(KernelBuilder &k, SharedTile tile, Value row, Value unit,
                 Value pair);
/// The matrix `rows` rows and `column` columns on.
Matrix loadPairs(KernelBuilder &k, LanePointer &pointer, int64_t rows,
                 int64_t column);

/// The place for `loadTransposed` in a tile, whose columns are the rows of the
/// matrix.
Value transposedOffset(KernelBuilder &k, SharedTile tile, Value row, Value unit,
                       Value pair);
Matrix loadTransposed(KernelBuilder &k, LanePointer &pointer, int64_t rows,
                      int64_t column);

/// Writes 16 rows of f32 of a warp, eight columns for four of `sums`. Four
/// lanes have 32 bytes of a row: they need not be put together first.
/// `firstRow`: of the warp.
void storePairs(KernelBuilder &k, ValueRange sums, Value firstRow, Value row,
                Value pair, const TileTarget &target);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_FLOATTILE_H
