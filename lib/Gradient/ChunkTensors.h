//===- ChunkTensors.h - Ops of a chunk of one head on tensors ---*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_CHUNKTENSORS_H
#define LINATTN_LIB_GRADIENT_CHUNKTENSORS_H

#include "TensorBuilder.h"
#include "linattn/Dialect/LinAttnChunk.h"

namespace mlir::linattn {

/// Builds ops on chunks of `chunk` tokens, [1, 1, C, D], and on states
/// [1, 1, K, V]. Where no destination is given, it is a new tensor.
class ChunkTensors {
public:
  ChunkTensors(OpBuilder &b, Location loc, Type type, int64_t chunk)
      : b(b), loc(loc), type(type), t(b, loc, type), chunk(chunk) {}

  OpFoldResult one() { return b.getIndexAttr(1); }
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  /// The whole of the dimensions that offsets and sizes leave out.
  Value slice(Value x, ArrayRef<OpFoldResult> offsets,
              ArrayRef<OpFoldResult> sizes);
  /// Back to where a part of the same place and size was taken from.
  Value insert(Value part, Value x, ArrayRef<OpFoldResult> offsets,
               ArrayRef<OpFoldResult> sizes);
  /// `count` tokens from `position` on of x [1, 1, T, …].
  Value tokens(Value x, Value position, OpFoldResult count);
  Value insertTokens(Value part, Value x, Value position, OpFoldResult count) {
    return insert(part, x, {b.getIndexAttr(0), b.getIndexAttr(0), position},
                  {one(), one(), count});
  }
  Value rows(int64_t width) {
    return t.empty(
        {one(), one(), b.getIndexAttr(chunk), b.getIndexAttr(width)});
  }
  Value pack(Value x, Scale factor = {}, Value gate = {}, Value into = {});
  Value decayed(Value x, Value gates, bool toEnd = false);
  Value scores(Value x, Value keys, Value gates, bool strict, Value into = {});
  Value read(Value x, Value state, ValueRange scores, ValueRange values,
             int64_t width, bool strict, bool adjoint, bool transpose,
             Value decay = {}, Value into = {});
  Value update(ValueRange keys, ValueRange values, Value gates, Value into,
               Value columnGates = {});
  Value transposed(Value state, Value into);

private:
  /// Offsets, sizes and strides for all dimensions of x.
  struct Range {
    SmallVector<OpFoldResult> offsets, sizes, strides;
  };
  Range completed(Value x, ArrayRef<OpFoldResult> offsets,
                  ArrayRef<OpFoldResult> sizes);

protected:
  OpBuilder &b;
  Location loc;
  Type type;
  TensorBuilder t;
  int64_t chunk;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_CHUNKTENSORS_H
