//===- Activations.cpp - Gates of outputs, pairs of bf16 ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Activations.h"

using namespace mlir;
using namespace mlir::linattn;

Value mlir::linattn::emitActivation(LoopBuilder &loops, Activation activation,
                                    Value x, Type element, bool isNarrow) {
  using arith::FastMathFlags;
  OpBuilder &b = loops.b;
  Type form = x.getType();
  bool isSilu = activation == Activation::Silu;
  auto rough = FastMathFlags::none, quick = FastMathFlags::none;
  if (getElementTypeOrSelf(form).isF32()) {
    // The divisor and its inverse must be normal numbers. Below this bound the
    // product with x is 0 up to its last bits; clamping keeps it from growing
    // with |x|.
    Value least = loops.constant(form, -87.0);
    Value isLess = arith::CmpFOp::create(b, loops.loc,
                                         arith::CmpFPredicate::OLT, x, least);
    x = loops.select(isLess, least, x);
    // Scalar loops, which are the naive form and that of a GPU, stay exact.
    if (isa<VectorType>(form)) {
      quick = FastMathFlags::arcp | FastMathFlags::ninf;
      if (element.getIntOrFloatBitWidth() == 16 && (isSilu || isNarrow))
        rough = FastMathFlags::afn;
      // 14 bits of the quotient are enough for bf16, not for f16.
      if (element.isBF16())
        quick = quick | rough;
    }
  }
  Value one = loops.constant(form, 1.0);
  Value power = math::ExpOp::create(b, loops.loc, loops.negate(x), rough);
  return arith::DivFOp::create(b, loops.loc, isSilu ? x : one,
                               loops.addf(one, power), quick);
}

int64_t mlir::linattn::countParts(Type element, int64_t lanes) {
  return lanes > 1 && element.isBF16() ? 2 : 1;
}

SmallVector<Value, 2> mlir::linattn::splitPairs(LoopBuilder &loops,
                                                Value vector, Type type) {
  auto halves = vector::DeinterleaveOp::create(loops.b, loops.loc, vector);
  return {loops.convert(halves.getRes1(), type),
          loops.convert(halves.getRes2(), type)};
}

Value mlir::linattn::joinPairs(LoopBuilder &loops, ArrayRef<Value> halves,
                               Type element) {
  return vector::InterleaveOp::create(loops.b, loops.loc,
                                      loops.convert(halves[0], element),
                                      loops.convert(halves[1], element));
}
