//===- ExpandDoubleMath.cpp - Functions of f64 as polynomials -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Arguments are reduced in two or three steps whose products are exact, to an
// interval on which the Taylor series converges within some ten terms.
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/RootPatterns.h"
#include "linattn/GPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <limits>

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEXPANDDOUBLEMATHPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

// ln 2, π/2 as sums: the upper parts have so many zeros at their end that
// multiples of them are exact.
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kHalfPi[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                               -0x1.f1976b7ed8fbcp-110};
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Scalars of f64.
class DoubleBuilder {
public:
  DoubleBuilder(Location loc, OpBuilder &builder) : b(loc, builder) {}

  Value constant(double value) {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(value));
  }
  Value integer(int64_t value) {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, x, y, z);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value compare(arith::CmpFPredicate predicate, Value x, double y) {
    return arith::CmpFOp::create(b, predicate, x, constant(y));
  }
  Value round(Value x) { return math::RoundEvenOp::create(b, x); }
  Value toInteger(Value x) {
    return arith::FPToSIOp::create(b, b.getI64Type(), x);
  }
  Value toBits(Value x) {
    return arith::BitcastOp::create(b, b.getI64Type(), x);
  }
  Value fromBits(Value x) {
    return arith::BitcastOp::create(b, b.getF64Type(), x);
  }

  /// Σ cᵢ xⁱ.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.back());
    for (double coefficient : llvm::reverse(coefficients.drop_back()))
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }

  /// x 2ⁿ for |n| < 2000, in two steps: 2ⁿ itself may overflow.
  Value scale(Value x, Value n) {
    Value half = arith::ShRSIOp::create(b, n, integer(1));
    Value rest = arith::SubIOp::create(b, n, half);
    for (Value part : {half, rest}) {
      Value biased = arith::AddIOp::create(b, part, integer(1023));
      x = mul(x, fromBits(arith::ShLIOp::create(b, biased, integer(52))));
    }
    return x;
  }

  Value exp(Value x);
  Value exp2(Value x);
  Value log(Value x);
  Value expm1(Value x);
  Value log1p(Value x);
  Value tanh(Value x);
  Value sine(Value x, int64_t quarters);

private:
  /// e^r 2ⁿ for |r| ≤ ln 2 / 2.
  Value expOf(Value r, Value n) {
    SmallVector<double> coefficients{1.0};
    for (int i = 1; i <= 13; ++i)
      coefficients.push_back(coefficients.back() / i);
    return scale(polynomial(r, coefficients), n);
  }
  /// Where a power of two would have no exponent any more; 0 for NaN, whose
  /// integer is not defined.
  Value clamp(Value x, double limit) {
    x = select(compare(arith::CmpFPredicate::OGT, x, limit), constant(limit),
               x);
    return select(compare(arith::CmpFPredicate::OLT, x, -limit),
                  constant(-limit), x);
  }
  Value withoutNaN(Value x) {
    return select(arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, x),
                  constant(0), x);
  }

  ImplicitLocOpBuilder b;
};

} // namespace

Value DoubleBuilder::exp(Value x) {
  x = clamp(x, 800);
  Value n = round(mul(x, constant(kLog2E)));
  Value r = fma(n, constant(-kLn2High), x);
  r = fma(n, constant(-kLn2Low), r);
  return expOf(r, toInteger(withoutNaN(n)));
}

Value DoubleBuilder::exp2(Value x) {
  x = clamp(x, 1200);
  Value n = round(x);
  return expOf(mul(sub(x, n), constant(kLn2)), toInteger(withoutNaN(n)));
}

/// With x = 2ᵏ m, √½ ≤ m < √2, and s = (m − 1) / (m + 1):
/// ln x = k ln 2 + 2 (s + s³/3 + s⁵/5 + …)
Value DoubleBuilder::log(Value x) {
  Value isSmall =
      compare(arith::CmpFPredicate::OLT, x, std::numeric_limits<double>::min());
  Value normal = select(isSmall, mul(x, constant(0x1p54)), x);
  // Counted from √½, exponents end where m does.
  Value bits =
      arith::SubIOp::create(b, toBits(normal), integer(0x3fe6a09e667f3bcd));
  Value k = arith::ShRSIOp::create(b, bits, integer(52));
  Value m = fromBits(arith::SubIOp::create(
      b, toBits(normal), arith::ShLIOp::create(b, k, integer(52))));
  Value power = arith::SIToFPOp::create(b, b.getF64Type(), k);
  power = select(isSmall, sub(power, constant(54)), power);
  Value s = div(sub(m, constant(1)), add(m, constant(1)));
  Value z = mul(s, s);
  SmallVector<double> coefficients;
  for (int i = 1; i <= 11; ++i)
    coefficients.push_back(2.0 / (2 * i + 1));
  Value tail = mul(mul(s, z), polynomial(z, coefficients));
  Value low = fma(power, constant(kLn2Low), tail);
  Value result = fma(power, constant(kLn2High), fma(constant(2), s, low));
  result = select(compare(arith::CmpFPredicate::OEQ, x, 0),
                  constant(-kInfinity), result);
  result = select(compare(arith::CmpFPredicate::OEQ, x, kInfinity), x, result);
  // Of negative numbers and of NaN.
  return select(compare(arith::CmpFPredicate::OGE, x, 0), result,
                constant(std::numeric_limits<double>::quiet_NaN()));
}

/// (u − 1) x / ln u for u = e^x, Kahan's formula: ln u makes up for the
/// rounding of u.
Value DoubleBuilder::expm1(Value x) {
  Value u = exp(x), less = sub(u, constant(1));
  Value result = mul(less, div(x, log(u)));
  result = select(compare(arith::CmpFPredicate::OEQ, less, 0), x, result);
  Value isFar =
      arith::OrIOp::create(b, compare(arith::CmpFPredicate::OGT, x, 40),
                           compare(arith::CmpFPredicate::OLT, x, -40));
  return select(isFar, less, result);
}

Value DoubleBuilder::log1p(Value x) {
  Value u = add(x, constant(1)), less = sub(u, constant(1));
  Value result = mul(log(u), div(x, less));
  result = select(compare(arith::CmpFPredicate::OEQ, less, 0), x, result);
  return select(compare(arith::CmpFPredicate::OEQ, x, kInfinity), x, result);
}

Value DoubleBuilder::tanh(Value x) {
  Value e = expm1(mul(clamp(x, 25), constant(2)));
  return div(e, add(e, constant(2)));
}

/// sin(x + quarters · π/2).
Value DoubleBuilder::sine(Value x, int64_t quarters) {
  Value n = round(mul(x, constant(kTwoOverPi))), r = x;
  for (double part : kHalfPi)
    r = fma(n, constant(-part), r);
  Value z = mul(r, r);
  SmallVector<double> odd{1.0}, even{1.0};
  for (int i = 1; i <= 8; ++i) {
    odd.push_back(-odd.back() / (2 * i) / (2 * i + 1));
    even.push_back(-even.back() / (2 * i - 1) / (2 * i));
  }
  Value sin = mul(r, polynomial(z, odd)), cos = polynomial(z, even);
  Value quarter =
      arith::AddIOp::create(b, toInteger(withoutNaN(n)), integer(quarters));
  auto hasBit = [&](int64_t bit) -> Value {
    return arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne,
        arith::AndIOp::create(b, quarter, integer(bit)), integer(0));
  };
  Value result = select(hasBit(1), cos, sin);
  result = select(hasBit(2), arith::NegFOp::create(b, result), result);
  // Infinite arguments have no quarter.
  return select(arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, r, r), r,
                result);
}

namespace {

template <typename MathOp>
struct Expand : OpRewritePattern<MathOp> {
  using Emit = Value (*)(DoubleBuilder &, Value);
  Expand(MLIRContext *context, Emit emit)
      : OpRewritePattern<MathOp>(context), emit(emit) {}

  LogicalResult matchAndRewrite(MathOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF64())
      return rewriter.notifyMatchFailure(op, "not on a scalar of f64");
    DoubleBuilder b(op.getLoc(), rewriter);
    rewriter.replaceOp(op, emit(b, op.getOperand()));
    return success();
  }

  Emit emit;
};

struct LinAttnExpandDoubleMathPass final
    : mlir::linattn::impl::LinAttnExpandDoubleMathPassBase<
          LinAttnExpandDoubleMathPass> {
  using LinAttnExpandDoubleMathPassBase::LinAttnExpandDoubleMathPassBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    MLIRContext *context = &getContext();
    using B = DoubleBuilder;
    patterns.add<Expand<math::ExpOp>>(
        context, +[](B &b, Value x) { return b.exp(x); });
    patterns.add<Expand<math::Exp2Op>>(
        context, +[](B &b, Value x) { return b.exp2(x); });
    patterns.add<Expand<math::ExpM1Op>>(
        context, +[](B &b, Value x) { return b.expm1(x); });
    patterns.add<Expand<math::LogOp>>(
        context, +[](B &b, Value x) { return b.log(x); });
    patterns.add<Expand<math::Log2Op>>(
        context,
        +[](B &b, Value x) { return b.mul(b.log(x), b.constant(kLog2E)); });
    patterns.add<Expand<math::Log10Op>>(
        context, +[](B &b, Value x) {
          return b.mul(b.log(x), b.constant(0x1.bcb7b1526e50ep-2));
        });
    patterns.add<Expand<math::Log1pOp>>(
        context, +[](B &b, Value x) { return b.log1p(x); });
    patterns.add<Expand<math::TanhOp>>(
        context, +[](B &b, Value x) { return b.tanh(x); });
    patterns.add<Expand<math::SinOp>>(
        context, +[](B &b, Value x) { return b.sine(x, 0); });
    patterns.add<Expand<math::CosOp>>(
        context, +[](B &b, Value x) { return b.sine(x, 1); });
    if (failed(mlir::linattn::applyPatternsToRoots(getOperation(),
                                                   std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
