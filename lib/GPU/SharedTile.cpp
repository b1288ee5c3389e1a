//===- SharedTile.cpp - Matrices in shared memory -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedTile.h"
#include "linattn/GPU/Machine.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::linattn;

int64_t mlir::linattn::granuleOf(int64_t size, Type type) {
  int64_t bytes = size * type.getIntOrFloatBitWidth() / 8;
  return std::min<int64_t>(16, bytes & -bytes);
}

int64_t SharedTile::mask() const {
  return panels ? 7 : std::gcd(units(), int64_t(8)) - 1;
}

int64_t SharedTile::key(int64_t row) const {
  if (pairs)
    return ((row << 1) & 6) | ((row >> 2) & 1);
  return (row >> llvm::Log2_64(8 / (mask() + 1))) & mask();
}

Value SharedTile::place(KernelBuilder &k, Value row, Value unit) const {
  Value swizzle =
      pairs ? k.add(k.band(k.shl(row, 1), 6), k.band(k.shr(row, 2), 1))
            : k.band(k.shr(row, llvm::Log2_64(8 / (mask() + 1))), mask());
  if (!panels)
    return k.add(k.mul(row, pitch()), k.mul(k.bxor(unit, swizzle), unitBytes));
  Value inPanel = k.mul(k.bxor(k.band(unit, 7), swizzle), unitBytes);
  return k.add(k.add(k.mul(k.shr(unit, 3), panelBytes()), inPanel),
               k.mul(row, pitch()));
}

Value LanePointer::at(int64_t row, int64_t unit) {
  int64_t mask = tile.mask();
  int64_t change = ((unit & mask) ^ tile.key(row)) * SharedTile::unitBytes;
  Value &variant = variants[change];
  if (!variant)
    variant = k->offset(base, k->bxor(place, change));
  int64_t before = tile.panels ? unit / (mask + 1) * tile.panelBytes()
                               : (unit & ~mask) * SharedTile::unitBytes;
  return k->offset(variant, row * tile.pitch() + before);
}

TileCopy::TileCopy(KernelBuilder &k, SharedTile tile, int64_t threads,
                   int64_t granule, Value thread, Value stride, int64_t size,
                   Value firstColumn)
    : k(k), tile(tile), granule(granule), stride(stride) {
  // The threads of a row are a power of two, so that a thread's next rows
  // differ by constants.
  int64_t granules = tile.rowBytes() / granule;
  int64_t perRow = llvm::PowerOf2Ceil(granules);
  int64_t used = std::max(llvm::bit_floor<uint64_t>(threads), uint64_t(perRow));
  assert(used <= threads && "expected enough threads for a row");
  rowStep = std::min(used / perRow, tile.rows);
  row = k.div(thread, perRow);
  Value inRow = k.rem(thread, perRow);
  if (rowStep * perRow < threads)
    active = k.less(thread, rowStep * perRow);
  if (granules < perRow)
    active = k.both(active, k.less(inRow, granules));
  sourceOffset = k.mul(inRow, granule);
  Value column = k.div(sourceOffset, 2);
  if (firstColumn)
    column = k.add(firstColumn, column);
  if (firstColumn || size < tile.columns)
    columnExists = k.less(column, size);
  Value unit = k.div(sourceOffset, SharedTile::unitBytes);
  place = k.add(tile.place(k, row, unit),
                k.rem(sourceOffset, SharedTile::unitBytes));
}

void TileCopy::start(Value target, Value source, Value left, Filter filter) {
  k.ifThen(active, [&] {
    LanePointer pointer(k, tile, target, place);
    Value from = k.offset(
        source, k.add(k.mul(k.extend(row), stride), k.extend(sourceOffset)));
    Value step = k.mul(stride, k.i64(rowStep));
    for (int64_t i = 0; i < tile.rows; i += rowStep) {
      if (i)
        from = k.offset(from, step);
      Value mine = k.add(row, i), exists = k.less(mine, left);
      if (filter)
        exists = filter(mine, exists);
      exists = k.both(exists, columnExists);
      k.copyAsync(pointer.at(i, 0), from, granule, exists);
    }
  });
}

void mlir::linattn::clearRows(KernelBuilder &k, Value thread, int64_t threads,
                              int64_t columns, int64_t elementBytes,
                              const TileTarget &target) {
  int64_t perRow = columns * elementBytes / target.granule;
  Value total = k.mul(target.left, perRow);
  SmallVector<Value> zeros(target.granule / 4, k.i32(0));
  Value rounds = k.div(k.add(total, threads - 1), threads);
  k.loop(rounds, {}, [&](Value round, ValueRange) -> SmallVector<Value> {
    Value index = k.add(k.mul(round, threads), thread);
    Value inRow = k.mul(k.rem(index, perRow), target.granule);
    Value exists = k.less(index, total), column = k.div(inRow, elementBytes);
    if (target.firstColumn)
      column = k.add(target.firstColumn, column);
    if (target.firstColumn || target.size < columns)
      exists = k.both(exists, k.less(column, target.size));
    k.ifThen(exists, [&] {
      Value row = k.extend(k.div(index, perRow));
      Value to = k.offset(target.address, k.mul(row, target.stride));
      k.store(zeros.size() == 1 ? zeros[0] : k.vectorOf(zeros),
              k.offset(to, inRow), target.granule);
    });
    return {};
  });
}

/// Writes 16 bytes of a row from shared memory, those that exist.
static void storeUnit(KernelBuilder &k, Value from, Value row, Value unit,
                      const TileTarget &target, bool isRagged) {
  int64_t words = target.granule / 4;
  Value x = k.load(VectorType::get({4}, k.b.getI32Type()), from, 16);
  if (target.firstRow)
    row = k.add(target.firstRow, row);
  Value to = k.offset(target.address, k.mul(k.extend(row), target.stride));
  to = k.offset(to, k.mul(unit, SharedTile::unitBytes));
  for (int64_t i = 0; i < 4; i += words) {
    SmallVector<Value> part;
    for (int64_t j = i; j < i + words; ++j)
      part.push_back(k.element(x, j));
    Value column = k.add(k.mul(unit, 8), 2 * i), columnExists;
    if (target.firstColumn)
      column = k.add(target.firstColumn, column);
    if (isRagged)
      columnExists = k.less(column, target.size);
    k.ifThen(columnExists, [&] {
      k.store(words == 4 ? x : k.vectorOf(part), k.offset(to, 4 * i),
              target.granule);
    });
  }
}

void mlir::linattn::storeTileRows(KernelBuilder &k, SharedTile tile, Value base,
                                  Value lane, Value firstRow, int64_t rows,
                                  const TileTarget &target, Value firstUnit,
                                  int64_t units, int64_t allUnits) {
  bool isRagged = target.firstColumn || target.size < 8 * allUnits;
  auto unitOf = [&](Value number) {
    return firstUnit ? k.add(firstUnit, number) : number;
  };
  // A lane has the same columns of all rows, or others of each.
  if (warpSize % units == 0) {
    Value row = k.add(firstRow, k.div(lane, units));
    Value unit = unitOf(k.rem(lane, units));
    LanePointer pointer(k, tile, base, tile.place(k, row, unit));
    for (int64_t done = 0; done < rows; done += warpSize / units) {
      Value mine = k.add(row, done), from = pointer.at(done, 0);
      k.ifThen(k.less(mine, target.left),
               [&] { storeUnit(k, from, mine, unit, target, isRagged); });
    }
    return;
  }
  int64_t total = rows * units;
  for (int64_t done = 0; done < total; done += warpSize) {
    Value index = k.add(lane, done);
    Value row = k.add(firstRow, k.div(index, units));
    Value unit = unitOf(k.rem(index, units));
    Value exists = k.less(row, target.left);
    if (done + warpSize > total)
      exists = k.both(exists, k.less(index, total));
    k.ifThen(exists, [&] {
      storeUnit(k, k.offset(base, tile.place(k, row, unit)), row, unit, target,
                isRagged);
    });
  }
}
