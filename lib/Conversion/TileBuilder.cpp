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
    if (row.gain)
      x = mulf(x, splat(row.gain, lanes));
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
