//===- Scalars.cpp - The functions that gates are made of -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Families/FamilyBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::linattn;

Value mlir::linattn::emitConstant(ImplicitLocOpBuilder &b, Type type,
                                  double value) {
  return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
}

// e^-x may overflow to infinity, which gives 0.
Value mlir::linattn::emitSigmoid(ImplicitLocOpBuilder &b, Value x) {
  Value one = emitConstant(b, x.getType(), 1.0);
  Value power = math::ExpOp::create(b, arith::NegFOp::create(b, x));
  return arith::DivFOp::create(b, one, arith::AddFOp::create(b, one, power));
}

// max(x, 0) + log(1 + e^-|x|): no exponential of a positive number.
Value mlir::linattn::emitSoftplus(ImplicitLocOpBuilder &b, Value x) {
  Value zero = emitConstant(b, x.getType(), 0.0);
  Value power = math::ExpOp::create(
      b, arith::NegFOp::create(b, math::AbsFOp::create(b, x)));
  return arith::AddFOp::create(b, arith::MaximumFOp::create(b, x, zero),
                               math::Log1pOp::create(b, power));
}

Value mlir::linattn::emitLogSigmoid(ImplicitLocOpBuilder &b, Value x) {
  return arith::NegFOp::create(b, emitSoftplus(b, arith::NegFOp::create(b, x)));
}
