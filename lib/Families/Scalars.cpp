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

Value mlir::linattn::emitProduct(ImplicitLocOpBuilder &b, ValueRange v) {
  return arith::MulFOp::create(b, v[0], v[1]);
}

// e^-x stays finite: of infinity the sigmoid is 0, but its derivative NaN.
Value mlir::linattn::emitSigmoid(ImplicitLocOpBuilder &b, Value x) {
  Value one = emitConstant(b, x.getType(), 1.0);
  Value largest =
      emitConstant(b, x.getType(), x.getType().isF64() ? 700.0 : 87.0);
  Value power = math::ExpOp::create(
      b, arith::MinimumFOp::create(b, arith::NegFOp::create(b, x), largest));
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

//===----------------------------------------------------------------------===//
// Functions of f64 without calls
//===----------------------------------------------------------------------===//

static Value wide(ImplicitLocOpBuilder &b, double value) {
  return emitConstant(b, b.getF64Type(), value);
}

/// c[0] + x (c[1] + x (c[2] + …))
static Value emitPolynomial(ImplicitLocOpBuilder &b, Value x,
                            ArrayRef<double> c) {
  Value sum = wide(b, c.back());
  for (double term : llvm::reverse(c.drop_back()))
    sum = math::FmaOp::create(b, x, sum, wide(b, term));
  return sum;
}

/// The bits of a whole number in two's complement: the low bits of its sum with
/// 1.5 · 2⁵². AVX2 has no vector conversion to 64-bit integers.
static Value emitWholeBits(ImplicitLocOpBuilder &b, Value whole) {
  Value shifted = arith::AddFOp::create(b, whole, wide(b, 0x1.8p52));
  return arith::BitcastOp::create(b, b.getI64Type(), shifted);
}

static Value integer(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

/// The whole number nearest to x times a constant.
static Value emitNearest(ImplicitLocOpBuilder &b, Value x, double factor) {
  Value shifted = math::FmaOp::create(b, x, wide(b, factor), wide(b, 0.5));
  return math::FloorOp::create(b, shifted);
}

/// x − n c, for a constant c that is the sum of two numbers.
static Value emitRest(ImplicitLocOpBuilder &b, Value x, Value n, double high,
                      double low) {
  Value rest = math::FmaOp::create(b, n, wide(b, -high), x);
  return math::FmaOp::create(b, n, wide(b, -low), rest);
}

// (1 − e) / (1 + e) with e = e^{−2|x|} = 2^n e^r, |r| ≤ ln 2 / 2.
Value mlir::linattn::emitTanh(ImplicitLocOpBuilder &b, Value x) {
  Value size = math::AbsFOp::create(b, x);
  Value y = arith::MulFOp::create(b, size, wide(b, -2.0));
  y = arith::MaximumFOp::create(b, y, wide(b, -80.0));
  Value n = emitNearest(b, y, 0x1.71547652b82fep+0);
  Value r = emitRest(b, y, n, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56);
  Value power =
      emitPolynomial(b, r,
                     {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120,
                      1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
                      1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600});
  Value bits = arith::ShLIOp::create(b, emitWholeBits(b, n), integer(b, 52));
  bits = arith::AddIOp::create(b, bits, integer(b, 1023LL << 52));
  Value e = arith::MulFOp::create(
      b, power, arith::BitcastOp::create(b, b.getF64Type(), bits));
  Value one = wide(b, 1.0);
  Value t = arith::DivFOp::create(b, arith::SubFOp::create(b, one, e),
                                  arith::AddFOp::create(b, one, e));
  Value isNegative =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, x, wide(b, 0.0));
  return arith::SelectOp::create(b, isNegative, arith::NegFOp::create(b, t), t);
}

// angle = k π/2 + r, |r| ≤ π/4; the quadrant is the last two bits of k.
std::pair<Value, Value> mlir::linattn::emitSinCos(ImplicitLocOpBuilder &b,
                                                  Value angle) {
  Value k = emitNearest(b, angle, 0x1.45f306dc9c883p-1);
  Value r = emitRest(b, angle, k, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54);
  Value square = arith::MulFOp::create(b, r, r);
  Value sine = arith::MulFOp::create(
      b, r,
      emitPolynomial(b, square,
                     {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880,
                      -1.0 / 39916800, 1.0 / 6227020800,
                      -1.0 / 1307674368000}));
  Value cosine = emitPolynomial(b, square,
                                {1.0, -1.0 / 2, 1.0 / 24, -1.0 / 720,
                                 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
                                 -1.0 / 87178291200, 1.0 / 20922789888000});
  Value bits = emitWholeBits(b, k), zero = integer(b, 0), one = integer(b, 1),
        two = integer(b, 2);
  auto isSet = [&](Value of, Value bit) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne,
                                 arith::AndIOp::create(b, of, bit), zero);
  };
  auto negateIf = [&](Value condition, Value x) -> Value {
    return arith::SelectOp::create(b, condition, arith::NegFOp::create(b, x),
                                   x);
  };
  Value isOdd = isSet(bits, one);
  Value s = arith::SelectOp::create(b, isOdd, cosine, sine);
  Value c = arith::SelectOp::create(b, isOdd, sine, cosine);
  Value next = arith::AddIOp::create(b, bits, one);
  return {negateIf(isSet(bits, two), s), negateIf(isSet(next, two), c)};
}
