//===- ArithGradients.cpp - Gradients of scalar arithmetic ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One rule serves scalars and tensors. Rules do without constants where they
// can: a tensor of dynamic shape has none.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Emits arithmetic at one place.
struct Emitter {
  OpBuilder &b;
  Location loc;

  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubFOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value div(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value neg(Value x) { return arith::NegFOp::create(b, loc, x); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value isAtLeast(Value x, Value y) {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, x, y);
  }

  /// `value` everywhere, in the shape of `like`.
  Value constant(Value like, double value) {
    Type type = like.getType();
    FloatAttr attr = b.getFloatAttr(getElementTypeOrSelf(type), value);
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return arith::ConstantOp::create(b, loc, attr);
    if (tensor.hasStaticShape())
      return arith::ConstantOp::create(b, loc,
                                       DenseElementsAttr::get(tensor, attr));
    Value scalar = arith::ConstantOp::create(b, loc, attr);
    SmallVector<Value> dims;
    for (int64_t i = 0; i < tensor.getRank(); ++i)
      if (tensor.isDynamicDim(i))
        dims.push_back(tensor::DimOp::create(b, loc, like, i));
    return tensor::SplatOp::create(b, loc, tensor, scalar, dims);
  }
  Value zero(Value like) { return constant(like, 0.0); }
};

} // namespace

/// The cotangent of the only result.
static Value cotangentOf(Operation *op, Cotangents &c) {
  return c.get(op->getResult(0));
}

//===----------------------------------------------------------------------===//
// arith
//===----------------------------------------------------------------------===//

static LogicalResult addRule(arith::AddFOp op, OpBuilder &b, Cotangents &c) {
  Value d = cotangentOf(op, c);
  c.add(b, op.getLhs(), d);
  c.add(b, op.getRhs(), d);
  return success();
}

static LogicalResult subRule(arith::SubFOp op, OpBuilder &b, Cotangents &c) {
  Value d = cotangentOf(op, c);
  c.add(b, op.getLhs(), d);
  if (c.isActive(op.getRhs()))
    c.add(b, op.getRhs(), Emitter{b, op.getLoc()}.neg(d));
  return success();
}

/// Adds the cotangents of the factors of a product with cotangent d.
static void addToFactors(Emitter e, Value d, Value x, Value y, Cotangents &c) {
  if (c.isActive(x))
    c.add(e.b, x, e.mul(d, y));
  if (c.isActive(y))
    c.add(e.b, y, e.mul(d, x));
}

static LogicalResult mulRule(arith::MulFOp op, OpBuilder &b, Cotangents &c) {
  addToFactors({b, op.getLoc()}, cotangentOf(op, c), op.getLhs(), op.getRhs(),
               c);
  return success();
}

static LogicalResult divRule(arith::DivFOp op, OpBuilder &b, Cotangents &c) {
  Emitter e{b, op.getLoc()};
  Value quotient = e.div(cotangentOf(op, c), op.getRhs());
  c.add(b, op.getLhs(), quotient);
  if (c.isActive(op.getRhs()))
    c.add(b, op.getRhs(), e.neg(e.mul(quotient, op.getResult())));
  return success();
}

static LogicalResult negRule(arith::NegFOp op, OpBuilder &b, Cotangents &c) {
  c.add(b, op.getOperand(), Emitter{b, op.getLoc()}.neg(cotangentOf(op, c)));
  return success();
}

/// The cotangent goes to the operand that was taken, the first of equal ones.
template <typename OpTy, bool takesLarger>
static LogicalResult extremumRule(OpTy op, OpBuilder &b, Cotangents &c) {
  Emitter e{b, op.getLoc()};
  Value d = cotangentOf(op, c), zero = e.zero(d);
  Value first = takesLarger ? e.isAtLeast(op.getLhs(), op.getRhs())
                            : e.isAtLeast(op.getRhs(), op.getLhs());
  if (c.isActive(op.getLhs()))
    c.add(b, op.getLhs(), e.select(first, d, zero));
  if (c.isActive(op.getRhs()))
    c.add(b, op.getRhs(), e.select(first, zero, d));
  return success();
}

static LogicalResult selectRule(arith::SelectOp op, OpBuilder &b,
                                Cotangents &c) {
  Emitter e{b, op.getLoc()};
  Value d = cotangentOf(op, c), zero = e.zero(d);
  if (c.isActive(op.getTrueValue()))
    c.add(b, op.getTrueValue(), e.select(op.getCondition(), d, zero));
  if (c.isActive(op.getFalseValue()))
    c.add(b, op.getFalseValue(), e.select(op.getCondition(), zero, d));
  return success();
}

template <typename OpTy, typename Inverse>
static LogicalResult castRule(OpTy op, OpBuilder &b, Cotangents &c) {
  c.add(b, op.getIn(),
        Inverse::create(b, op.getLoc(), op.getIn().getType(),
                        cotangentOf(op, c)));
  return success();
}

//===----------------------------------------------------------------------===//
// math
//===----------------------------------------------------------------------===//

/// Rules of functions of one operand x with the result y.
template <typename OpTy, Value (*derivative)(Emitter &, Value, Value, Value)>
static LogicalResult unaryRule(OpTy op, OpBuilder &b, Cotangents &c) {
  Emitter e{b, op.getLoc()};
  c.add(b, op.getOperand(),
        derivative(e, cotangentOf(op, c), op.getOperand(), op.getResult()));
  return success();
}

/// Piecewise constant: the derivative is zero.
template <typename OpTy>
static LogicalResult stepRule(OpTy, OpBuilder &, Cotangents &) {
  return success();
}

static Value ofExp(Emitter &e, Value d, Value x, Value y) {
  return e.mul(d, y);
}
static Value ofExp2(Emitter &e, Value d, Value x, Value y) {
  return e.mul(e.mul(d, y), e.constant(d, 0.69314718055994530942));
}
static Value ofExpM1(Emitter &e, Value d, Value x, Value y) {
  // Not d·y + d, which cancels where e^x is small.
  return e.mul(d, math::ExpOp::create(e.b, e.loc, x));
}
static Value ofLog(Emitter &e, Value d, Value x, Value y) {
  return e.div(d, x);
}
static Value ofLog1p(Emitter &e, Value d, Value x, Value y) {
  return e.div(d, e.add(x, e.constant(d, 1.0)));
}
static Value ofLog2(Emitter &e, Value d, Value x, Value y) {
  return e.div(d, e.mul(x, e.constant(d, 0.69314718055994530942)));
}
static Value ofSqrt(Emitter &e, Value d, Value x, Value y) {
  return e.div(d, e.add(y, y));
}
static Value ofRsqrt(Emitter &e, Value d, Value x, Value y) {
  return e.neg(e.div(e.mul(d, y), e.add(x, x)));
}
static Value ofTanh(Emitter &e, Value d, Value x, Value y) {
  return e.sub(d, e.mul(e.mul(d, y), y));
}
static Value ofSin(Emitter &e, Value d, Value x, Value y) {
  return e.mul(d, math::CosOp::create(e.b, e.loc, x));
}
static Value ofCos(Emitter &e, Value d, Value x, Value y) {
  return e.neg(e.mul(d, math::SinOp::create(e.b, e.loc, x)));
}
static Value ofAbs(Emitter &e, Value d, Value x, Value y) {
  return e.select(e.isAtLeast(x, e.zero(x)), d, e.neg(d));
}
static Value ofErf(Emitter &e, Value d, Value x, Value y) {
  Value bell = math::ExpOp::create(e.b, e.loc, e.neg(e.mul(x, x)));
  return e.mul(e.mul(d, bell), e.constant(d, 1.12837916709551257390));
}

/// x^y: y·x^(y−1) and x^y·log x.
static LogicalResult powRule(math::PowFOp op, OpBuilder &b, Cotangents &c) {
  Emitter e{b, op.getLoc()};
  Value d = cotangentOf(op, c), x = op.getLhs(), y = op.getRhs();
  if (c.isActive(x)) {
    Value lower =
        math::PowFOp::create(b, op.getLoc(), x, e.sub(y, e.constant(y, 1.0)));
    c.add(b, x, e.mul(d, e.mul(y, lower)));
  }
  if (c.isActive(y))
    c.add(b, y,
          e.mul(e.mul(d, op.getResult()),
                math::LogOp::create(b, op.getLoc(), x)));
  return success();
}

static LogicalResult fmaRule(math::FmaOp op, OpBuilder &b, Cotangents &c) {
  Value d = cotangentOf(op, c);
  addToFactors({b, op.getLoc()}, d, op.getA(), op.getB(), c);
  c.add(b, op.getC(), d);
  return success();
}

void mlir::linattn::registerArithGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    using namespace arith;
    attachGradient<AddFOp, addRule>(context);
    attachGradient<SubFOp, subRule>(context);
    attachGradient<MulFOp, mulRule>(context);
    attachGradient<DivFOp, divRule>(context);
    attachGradient<NegFOp, negRule>(context);
    attachGradient<MaximumFOp, extremumRule<MaximumFOp, true>>(context);
    attachGradient<MaxNumFOp, extremumRule<MaxNumFOp, true>>(context);
    attachGradient<MinimumFOp, extremumRule<MinimumFOp, false>>(context);
    attachGradient<MinNumFOp, extremumRule<MinNumFOp, false>>(context);
    attachGradient<SelectOp, selectRule>(context);
    attachGradient<ExtFOp, castRule<ExtFOp, TruncFOp>>(context);
    attachGradient<TruncFOp, castRule<TruncFOp, ExtFOp>>(context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    using namespace math;
    attachGradient<FloorOp, stepRule<FloorOp>>(context);
    attachGradient<CeilOp, stepRule<CeilOp>>(context);
    attachGradient<RoundOp, stepRule<RoundOp>>(context);
    attachGradient<RoundEvenOp, stepRule<RoundEvenOp>>(context);
    attachGradient<TruncOp, stepRule<TruncOp>>(context);
    attachGradient<ExpOp, unaryRule<ExpOp, ofExp>>(context);
    attachGradient<Exp2Op, unaryRule<Exp2Op, ofExp2>>(context);
    attachGradient<ExpM1Op, unaryRule<ExpM1Op, ofExpM1>>(context);
    attachGradient<LogOp, unaryRule<LogOp, ofLog>>(context);
    attachGradient<Log1pOp, unaryRule<Log1pOp, ofLog1p>>(context);
    attachGradient<Log2Op, unaryRule<Log2Op, ofLog2>>(context);
    attachGradient<SqrtOp, unaryRule<SqrtOp, ofSqrt>>(context);
    attachGradient<RsqrtOp, unaryRule<RsqrtOp, ofRsqrt>>(context);
    attachGradient<TanhOp, unaryRule<TanhOp, ofTanh>>(context);
    attachGradient<SinOp, unaryRule<SinOp, ofSin>>(context);
    attachGradient<CosOp, unaryRule<CosOp, ofCos>>(context);
    attachGradient<AbsFOp, unaryRule<AbsFOp, ofAbs>>(context);
    attachGradient<ErfOp, unaryRule<ErfOp, ofErf>>(context);
    attachGradient<PowFOp, powRule>(context);
    attachGradient<FmaOp, fmaRule>(context);
  });
}
