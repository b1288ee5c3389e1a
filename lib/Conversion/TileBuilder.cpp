//===- TileBuilder.cpp - Emitting vector tiles ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

Value TileBuilder::scratch(ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  // A cache line, so that whole vectors never straddle two.
  Value buffer = memref::AllocOp::create(b, loc, MemRefType::get(shape, type),
                                         dynamic, b.getI64IntegerAttr(64));
  allocated.push_back(buffer);
  return buffer;
}

void TileBuilder::freeScratch() {
  for (Value buffer : allocated)
    memref::DeallocOp::create(b, loc, buffer);
  allocated.clear();
}

/// True if vectors of `size` tile the last dimension exactly.
static bool dividesLastDim(MemRefType type, int64_t size) {
  int64_t last = type.getShape().back();
  return !ShapedType::isDynamic(last) && last % size == 0;
}

Value TileBuilder::readOperand(Value memref, ValueRange indices, int64_t size,
                               double padding) {
  auto source = cast<MemRefType>(memref.getType());
  Type element = source.getElementType();
  Value pad =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(element, padding));
  Value read = vector::TransferReadOp::create(
      b, loc, VectorType::get(size, element), memref, indices, pad,
      ArrayRef<bool>{dividesLastDim(source, size)});
  return convert(read, type);
}

void TileBuilder::writeOperand(Value value, Value memref, ValueRange indices) {
  auto target = cast<MemRefType>(memref.getType());
  int64_t size = cast<VectorType>(value.getType()).getNumElements();
  vector::TransferWriteOp::create(
      b, loc, convert(value, target.getElementType()), memref, indices,
      ArrayRef<bool>{dividesLastDim(target, size)});
}

Value TileBuilder::rowMaximum(Value memref, ArrayRef<Value> row) {
  double lowest = -std::numeric_limits<double>::infinity();
  int64_t lanes = shape.lanes;
  Value best = reduce(index(0), dim(memref, 3), lanes,
                      constant(vectorType(lanes), lowest),
                      [&](Value d, ValueRange carried) -> SmallVector<Value> {
                        SmallVector<Value> at(row);
                        at.push_back(d);
                        return {maxf(carried.front(),
                                     readOperand(memref, at, lanes, lowest))};
                      })
                   .front();
  return reduceVector(vector::CombiningKind::MAXIMUMF, best);
}

void TileBuilder::packRow(const Row &row, Value target,
                          ArrayRef<Value> position) {
  int64_t lanes = shape.lanes;
  Value size = dim(row.source, 3);
  bool hasTail = !dividesLastDim(cast<MemRefType>(row.source.getType()), lanes);
  forEach(index(0), size, lanes, [&](Value d) {
    SmallVector<Value> from(row.index), to(position);
    from.push_back(d);
    to.push_back(d);
    Value x = readOperand(row.source, from, lanes);
    if (row.shift)
      x = subf(x, splat(row.shift, lanes));
    if (row.mapped)
      x = emitFeatureMap(b, loc, op, x);
    if (row.scale != 1.0)
      x = mulf(x, constant(vectorType(lanes), row.scale));
    // φ(0) need not be 0: the padding has to be cleared after the map.
    if (hasTail && row.mapped) {
      Value inside = vector::CreateMaskOp::create(
          b, loc, VectorType::get(lanes, b.getI1Type()),
          ValueRange{sub(size, d)});
      x = select(inside, x, zeros(lanes));
    }
    if (row.keep)
      x = select(row.keep, x, zeros(lanes));
    storeVector(x, target, to);
  });
  // The target may be padded further, to whole tiles.
  Value width = dim(target, cast<MemRefType>(target.getType()).getRank() - 1);
  forEach(roundUp(size, lanes), width, lanes, [&](Value d) {
    SmallVector<Value> to(position);
    to.push_back(d);
    storeVector(zeros(lanes), target, to);
  });
}
