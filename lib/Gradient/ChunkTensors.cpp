//===- ChunkTensors.cpp - Ops of a chunk of one head on tensors -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkTensors.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

ChunkTensors::Range ChunkTensors::completed(Value x,
                                            ArrayRef<OpFoldResult> offsets,
                                            ArrayRef<OpFoldResult> sizes) {
  int64_t rank = rankOf(x);
  Range range{SmallVector<OpFoldResult>(offsets),
              SmallVector<OpFoldResult>(sizes),
              SmallVector<OpFoldResult>(rank, one())};
  range.offsets.resize(rank, b.getIndexAttr(0));
  for (int64_t i = sizes.size(); i < rank; ++i)
    range.sizes.push_back(t.dim(x, i));
  return range;
}

Value ChunkTensors::slice(Value x, ArrayRef<OpFoldResult> offsets,
                          ArrayRef<OpFoldResult> sizes) {
  Range range = completed(x, offsets, sizes);
  return tensor::ExtractSliceOp::create(b, loc, x, range.offsets, range.sizes,
                                        range.strides);
}

Value ChunkTensors::insert(Value part, Value x, ArrayRef<OpFoldResult> offsets,
                           ArrayRef<OpFoldResult> sizes) {
  Range range = completed(x, offsets, sizes);
  return tensor::InsertSliceOp::create(b, loc, part, x, range.offsets,
                                       range.sizes, range.strides);
}

Value ChunkTensors::tokens(Value x, Value position, OpFoldResult count) {
  return slice(x, {b.getIndexAttr(0), b.getIndexAttr(0), position},
               {one(), one(), count});
}

/// Tokens, or rows if there is a gate.
Value ChunkTensors::pack(Value x, Scale factor, Value gate, Value into) {
  if (!into)
    into = rankOf(x) == 4 ? rows(cast<ShapedType>(x.getType()).getDimSize(3))
                          : t.empty({one(), one(), b.getIndexAttr(chunk)});
  Value none;
  return ChunkPackOp::create(b, loc, TypeRange{into.getType()}, x, none, gate,
                             none, factor.getValue(), into, factor.getAttr(b),
                             FloatAttr(), /*reverse=*/false, /*padded=*/!gate)
      ->getResult(0);
}

Value ChunkTensors::decayed(Value x, Value gates, bool toEnd) {
  if (!gates)
    return x;
  Value into = rows(cast<ShapedType>(x.getType()).getDimSize(3));
  return ChunkDecayOp::create(b, loc, TypeRange{into.getType()}, x, gates, into,
                              /*before=*/false, toEnd)
      ->getResult(0);
}

Value ChunkTensors::scores(Value x, Value keys, Value gates, bool strict,
                           Value into) {
  if (!into)
    into = rows(chunk);
  return ChunkScoresOp::create(b, loc, TypeRange{into.getType()}, x, keys,
                               gates, Value(), into, strict, /*before=*/false,
                               DenseI64ArrayAttr())
      ->getResult(0);
}

Value ChunkTensors::read(Value x, Value state, ValueRange scores,
                         ValueRange values, int64_t width, bool strict,
                         bool adjoint, bool transpose, Value decay,
                         Value into) {
  if (!into)
    into =
        t.zeros({one(), one(), b.getIndexAttr(chunk), b.getIndexAttr(width)});
  return ChunkReadOp::create(b, loc, TypeRange{into.getType()}, x, state,
                             scores, values, decay, into, strict, transpose,
                             adjoint, DenseI64ArrayAttr())
      ->getResult(0);
}

Value ChunkTensors::update(ValueRange keys, ValueRange values, Value gates,
                           Value into, Value columnGates) {
  return ChunkUpdateOp::create(b, loc, TypeRange{into.getType()}, keys, values,
                               gates, columnGates, into, DenseI64ArrayAttr())
      ->getResult(0);
}

Value ChunkTensors::transposed(Value state, Value into) {
  return linalg::TransposeOp::create(b, loc, state, into,
                                     ArrayRef<int64_t>{0, 1, 3, 2})
      ->getResult(0);
}
