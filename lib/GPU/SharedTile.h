//===- SharedTile.h - Matrices in shared memory -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles of 16-bit elements. A row is made of units of 16 bytes; eight rows of
// the same unit must lie in different banks, because that is what ldmatrix
// reads at once. With z = gcd(units, 8), unit u of row r stands at
// u ^ ((r >> log2(8 / z)) & (z − 1)).
//
// A tile of f32 has twice the columns. Where lanes read pairs of f32, four rows
// of two neighbouring units at once, the swizzle turns its bits by one, so that
// such rows differ by two units.
//
// For `wgmma` rows are cut into panels of 64 columns, one panel behind the
// other: rows of 128 bytes, in whose units the swizzle is the hardware's.
//
// A lane keeps one address into a tile. Other places differ from it by an XOR
// with a constant in the bits of the unit and an addition of a constant, which
// the instruction takes as an immediate: without that, the addresses of a
// kernel fill its registers.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_SHAREDTILE_H
#define LINATTN_LIB_GPU_SHAREDTILE_H

#include "KernelFunction.h"

namespace mlir::linattn {

/// The largest power of two up to 16 that divides the bytes of `size` elements.
int64_t granuleOf(int64_t size, Type type);

/// Rows of a matrix in global memory.
struct Rows {
  Value base, stride; ///< The address of row 0; bytes between rows, i64.

  /// The address of a row, i64.
  Value at(KernelBuilder &k, Value row) const {
    return k.offset(base, k.mul(row, stride));
  }
};

struct SharedTile {
  int64_t rows = 0, columns = 0; ///< columns: a multiple of 8.
  bool pairs = false;            ///< Of f32, read by pairs: units divide by 8.
  bool panels = false;           ///< As `wgmma` reads them, see above.

  static constexpr int64_t unitBytes = 16, panelPitch = 128;
  static constexpr int64_t panelColumns = panelPitch / 2;
  int64_t units() const { return columns / 8; }
  /// Bytes of a row.
  int64_t rowBytes() const { return columns * 2; }
  /// Bytes from a row to the next.
  int64_t pitch() const { return panels ? panelPitch : rowBytes(); }
  int64_t panelBytes() const { return rows * panelPitch; }
  int64_t bytes() const {
    return panels ? offsetOfColumn(llvm::alignTo(columns, panelColumns))
                  : rows * pitch();
  }
  /// Of a column in row 0 of panels.
  int64_t offsetOfColumn(int64_t column) const {
    int64_t byte = 2 * column;
    return byte / panelPitch * panelBytes() + byte % panelPitch;
  }
  /// The bits of a unit that the swizzle changes.
  int64_t mask() const;
  /// The value that the swizzle of a row puts into those bits by exclusive or.
  int64_t key(int64_t row) const;

  /// The offset in bytes of a unit.
  Value place(KernelBuilder &k, Value row, Value unit) const;
};

/// A lane's address in a tile, from which constants lead to the others.
class LanePointer {
public:
  /// `base`: the tile; `place`: from `SharedTile::place`, perhaps with an
  /// offset within the unit.
  LanePointer(KernelBuilder &k, SharedTile tile, Value base, Value place)
      : k(&k), tile(tile), base(base), place(place) {}

  /// The address `row` rows and `unit` units on. No bit of them may be set in
  /// the row or the unit of the lane.
  Value at(int64_t row, int64_t unit);

private:
  KernelBuilder *k;
  SharedTile tile;
  Value base, place;
  llvm::SmallDenseMap<int64_t, Value> variants;
};

/// Copies rows of a buffer, one per token, into a tile: asynchronously, with
/// zeros beyond the tokens and beyond the columns that exist.
class TileCopy {
public:
  /// `first`: the address of row 0 and of the tile's first column; `stride`:
  /// bytes between rows, i64. `size`: columns that exist, of which the tile
  /// starts at `firstColumn` (null: 0). `granule`: bytes that divide addresses.
  TileCopy(KernelBuilder &k, SharedTile tile, int64_t threads, int64_t granule,
           Value thread, Value stride, int64_t size, Value firstColumn);

  /// Maps a row, and whether it exists, to whether it is copied.
  using Filter = function_ref<Value(Value row, Value exists)>;
  /// Starts the copy of the `left` rows at `source` into the tile at `target`,
  /// with zeros in place of those that `filter` leaves out.
  void start(Value target, Value source, Value left, Filter filter = nullptr);

private:
  KernelBuilder &k;
  SharedTile tile;
  int64_t granule, rowStep;
  Value stride, row, sourceOffset, place;
  Value active;       ///< Null if every thread copies.
  Value columnExists; ///< Null if all columns do.
};

/// The rows of a tile in global memory: the address of row 0 in the tile's
/// first column, bytes between rows (i64), existing columns, rows from the
/// tile's first one on, and the alignment of addresses. The tile starts at
/// `firstColumn` and at row `firstRow` (null: 0).
struct TileTarget {
  Value address, stride;
  int64_t size;
  Value left;
  int64_t granule;
  Value firstColumn;
  Value firstRow = {};
};

/// The threads of a block write zeros into all rows of the target, `columns` of
/// each.
void clearRows(KernelBuilder &k, Value thread, int64_t threads, int64_t columns,
               int64_t elementBytes, const TileTarget &target);

/// A warp writes `rows` rows of 16-bit elements from `firstRow`, a multiple of
/// them, on, 16 bytes in each lane: all units of a row, or from `firstUnit` on
/// `units` of `allUnits` that warps share.
void storeTileRows(KernelBuilder &k, SharedTile tile, Value base, Value lane,
                   Value firstRow, int64_t rows, const TileTarget &target,
                   Value firstUnit, int64_t units, int64_t allUnits);
inline void storeTileRows(KernelBuilder &k, SharedTile tile, Value base,
                          Value lane, Value firstRow, int64_t rows,
                          const TileTarget &target) {
  storeTileRows(k, tile, base, lane, firstRow, rows, target, /*firstUnit=*/{},
                tile.units(), tile.units());
}

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_SHAREDTILE_H
