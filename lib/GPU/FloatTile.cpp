//===- FloatTile.cpp - Matrices of f32 in shared memory -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatTile.h"

using namespace mlir;
using namespace mlir::linattn;

/// Units of 16 bytes hold four columns.
constexpr int64_t unitColumns = SharedTile::unitBytes / 4;

Value mlir::linattn::pairOffset(KernelBuilder &k, SharedTile tile, Value row,
                                Value unit, Value pair) {
  return k.add(tile.place(k, row, k.add(unit, k.shr(pair, 1))),
               k.mul(k.band(pair, 1), 8));
}

Matrix mlir::linattn::loadPairs(KernelBuilder &k, LanePointer &pointer,
                                int64_t rows, int64_t column) {
  auto type = VectorType::get({2}, k.b.getF32Type());
  Matrix matrix;
  for (int64_t i = 0; i < 4; ++i) {
    int64_t unit = column / unitColumns + i / 2 * 2;
    Value x = k.load(type, pointer.at(rows + i % 2 * 8, unit), 8);
    matrix.append({k.element(x, 0), k.element(x, 1)});
  }
  return matrix;
}

Value mlir::linattn::transposedOffset(KernelBuilder &k, SharedTile tile,
                                      Value row, Value unit, Value pair) {
  return k.add(tile.place(k, k.mul(pair, 2), k.add(unit, k.shr(row, 2))),
               k.mul(k.band(row, 3), 4));
}

Matrix mlir::linattn::loadTransposed(KernelBuilder &k, LanePointer &pointer,
                                     int64_t rows, int64_t column) {
  Matrix matrix;
  for (int64_t i = 0; i < 8; ++i)
    matrix.push_back(k.load(k.b.getF32Type(),
                            pointer.at(rows + i % 2 + i / 4 * 8,
                                       column / unitColumns + i / 2 % 2 * 2),
                            4));
  return matrix;
}

void mlir::linattn::storePairs(KernelBuilder &k, ValueRange sums,
                               Value firstRow, Value row, Value pair,
                               const TileTarget &target) {
  int64_t columns = 2 * sums.size();
  for (int64_t lower = 0; lower < 2; ++lower) {
    Value mine = k.add(k.add(firstRow, row), 8 * lower);
    k.ifThen(k.less(mine, target.left), [&] {
      Value to = k.offset(target.address, k.mul(k.extend(mine), target.stride));
      to = k.offset(to, k.mul(pair, 8));
      for (int64_t n = 0; n < columns / 8; ++n) {
        Value column = k.add(k.mul(pair, 2), 8 * n), exists;
        if (target.firstColumn)
          column = k.add(column, target.firstColumn);
        if (target.firstColumn || target.size < columns)
          exists = k.less(column, target.size);
        ValueRange two = sums.slice(4 * n + 2 * lower, 2);
        k.ifThen(exists,
                 [&] { k.store(k.vectorOf(two), k.offset(to, 32 * n), 8); });
      }
    });
  }
}
