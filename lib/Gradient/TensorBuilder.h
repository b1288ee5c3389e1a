//===- TensorBuilder.h - Equations on tensors -------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_TENSORBUILDER_H
#define LINATTN_LIB_GRADIENT_TENSORBUILDER_H

#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

/// Emits equations between tensors, computed in one element type. Subscripts
/// are those of `elementwise`; sizes follow from the operands.
class TensorBuilder {
public:
  using Body = function_ref<Value(OpBuilder &, Location, ValueRange)>;

  TensorBuilder(OpBuilder &b, Location loc, Type type)
      : b(b), loc(loc), type(type) {}

  /// One value for each element of the output; `body` gets the scalars of the
  /// inputs, floats converted to the element type.
  Value map(StringRef subscripts, ValueRange inputs, Body body = first);
  /// The same, summed over the letters that the output lacks.
  Value sum(StringRef subscripts, ValueRange inputs, Body body = first);

  /// Of one input, the maximum over the letters that the output lacks.
  Value maximum(StringRef subscripts, Value input);

  /// factor · lhs · rhs, summed over the letters that the output lacks.
  Value product(StringRef subscripts, Value lhs, Value rhs, Scale factor = {});
  /// x + y, in the shape of x; null stands for zero.
  Value add(Value x, Value y);
  /// x − y, the same.
  Value sub(Value x, Value y);
  /// x ⊙ y, of one shape.
  Value mul(Value x, Value y);
  /// x + coefficient ⊙ y, a coefficient for each token. A null x is zero.
  Value addScaled(Value x, Value coefficient, Value y);
  /// factor · e^gate ⊙ x. A null gate is zero; `feature` is the letter of x.
  Value timesExp(Value x, Value gate, Scale factor = {});
  /// x in the element type.
  Value convert(Value x);
  /// Zeros where the mask is false.
  Value masked(Value tokens, Value mask);

  /// Every index of dimension `dim` as often as it takes to be `count` of them.
  Value repeated(Value x, int64_t dim, int64_t count);
  /// Every index of dimension `dim` `factor` times.
  Value repeatedEach(Value x, int64_t dim, int64_t factor);
  /// The inverse, `count` indices in all: the first of each group.
  Value firstOfEach(Value x, int64_t dim, int64_t count);
  /// A dimension of size 1 in front of dimension `dim`, or behind the last one.
  Value withUnitDim(Value x, int64_t dim);
  /// Without dimension `dim`, which has size 1.
  Value withoutUnitDim(Value x, int64_t dim);
  /// Dimension `dim` and the next one as one.
  Value withJoinedDims(Value x, int64_t dim);
  /// Dimension `dim` as two, the second of size `inner`.
  Value withSplitDim(Value x, int64_t dim, int64_t inner);
  /// The tensors one behind the other along dimension `dim`.
  Value concat(int64_t dim, ValueRange tensors);
  /// `size` indices of dimension `dim` from `offset` on.
  Value slice(Value x, int64_t dim, OpFoldResult offset, OpFoldResult size);

  Value filled(ArrayRef<OpFoldResult> sizes, double value);
  Value zeros(ArrayRef<OpFoldResult> sizes);
  Value empty(ArrayRef<OpFoldResult> sizes);
  OpFoldResult dim(Value tensor, int64_t index);
  SmallVector<OpFoldResult> sizes(Value tensor);
  /// [B, H, X, Y] as [B, H, Y, X], in memory too.
  Value transposed(Value state);

  /// The scalar of the first input.
  static Value first(OpBuilder &, Location, ValueRange args) { return args[0]; }

  OpBuilder &b;
  Location loc;
  Type type;
};

/// The subscripts of a gate whose rank-4 form ends in `feature`: "h", "bht" or
/// "bht" and the letter.
std::string subscriptsOfGate(Value gate, char feature);

/// Zeros in the shape and type of `like`, a tensor or a float.
Value zerosLike(OpBuilder &b, Location loc, Value like);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_TENSORBUILDER_H
