//===- NormGradient.cpp - The gradient of output_norm ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The op as equations on tensors, which have gradients of their own.
//
//===----------------------------------------------------------------------===//

#include "OpGradients.h"
#include "TensorBuilder.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The steps of one op, in its accumulation type.
class Norm {
public:
  Norm(OutputNormOp op, OpBuilder &b)
      : op(op), t(b, op.getLoc(),
                  getAccumulationType(getElementTypeOrSelf(op.getInput()))) {}

  SmallVector<Value> build();

private:
  static std::string subscripts(Value weights) {
    return cast<ShapedType>(weights.getType()).getRank() == 1 ? "d" : "hd";
  }
  Value mean(Value x);
  Value divide(Value x);
  Value gated(Value x);

  OutputNormOp op;
  TensorBuilder t;
};

} // namespace

Value Norm::mean(Value x) {
  Value size = arith::SIToFPOp::create(
      t.b, t.loc, t.type,
      arith::IndexCastOp::create(
          t.b, t.loc, t.b.getI64Type(),
          getValueOrCreateConstantIndexOp(t.b, t.loc, t.dim(x, 3))));
  Value sums = t.sum("bhtd->bht", x);
  return t.map("bht->bht", sums,
               [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                 return arith::DivFOp::create(nested, at, x[0], size);
               });
}

/// x / √(mean(x²) + eps), behind the mean for a layer norm.
Value Norm::divide(Value x) {
  if (op.getKind() == NormKind::None)
    return x;
  if (op.getKind() == NormKind::Layer)
    x = t.map("bhtd,bht->bhtd", {x, mean(x)},
              [](OpBuilder &nested, Location at, ValueRange x) -> Value {
                return arith::SubFOp::create(nested, at, x[0], x[1]);
              });
  double eps = op.getEps().convertToDouble();
  return t.map("bhtd,bht->bhtd", {x, mean(t.mul(x, x))},
               [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                 Value sum = arith::AddFOp::create(
                     nested, at, x[1],
                     emitFloat(nested, at, x[1].getType(), eps));
                 return arith::DivFOp::create(
                     nested, at, x[0], math::SqrtOp::create(nested, at, sum));
               });
}

Value Norm::gated(Value x) {
  if (!op.getGate())
    return x;
  return t.map("bhtd,bhtd->bhtd", {x, op.getGate()},
               [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                 Value act =
                     emitActivation(nested, at, op.getActivation(), x[1]);
                 return arith::MulFOp::create(nested, at, x[0], act);
               });
}

SmallVector<Value> Norm::build() {
  Value x = t.convert(op.getInput());
  if (Value weight = op.getSkipWeight())
    x = t.add(x, t.product("bhtd," + subscripts(weight) + "->bhtd",
                           op.getSkip(), weight));
  if (op.getGateFirst())
    x = gated(x);
  x = divide(x);
  if (Value weight = op.getWeight()) {
    double offset = op.getWeightOffset().convertToDouble();
    x = t.map("bhtd," + subscripts(weight) + "->bhtd", {x, weight},
              [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                Value shifted = arith::AddFOp::create(
                    nested, at, x[1],
                    emitFloat(nested, at, x[1].getType(), offset));
                return arith::MulFOp::create(nested, at, x[0], shifted);
              });
  }
  if (Value bias = op.getBias())
    x = t.map("bhtd," + subscripts(bias) + "->bhtd", {x, bias},
              [](OpBuilder &nested, Location at, ValueRange x) -> Value {
                return arith::AddFOp::create(nested, at, x[0], x[1]);
              });
  if (!op.getGateFirst())
    x = gated(x);
  Type type = getElementTypeOrSelf(op.getOutput());
  return {TensorBuilder(t.b, t.loc, type).convert(x)};
}

Value mlir::linattn::emitActivation(OpBuilder &b, Location loc,
                                    Activation activation, Value x) {
  // Uses e^−|x|: the infinity of e^−x would make the gradient NaN.
  Value zero = emitFloat(b, loc, x.getType(), 0.0);
  Value one = emitFloat(b, loc, x.getType(), 1.0);
  Value isPositive =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE, x, zero);
  Value magnitude = math::AbsFOp::create(b, loc, x);
  Value weight =
      math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, magnitude));
  Value sigmoid = arith::DivFOp::create(
      b, loc, arith::SelectOp::create(b, loc, isPositive, one, weight),
      arith::AddFOp::create(b, loc, one, weight));
  if (activation == Activation::Sigmoid)
    return sigmoid;
  return arith::MulFOp::create(b, loc, x, sigmoid);
}

LogicalResult mlir::linattn::buildNormGradient(OutputNormOp op, OpBuilder &b,
                                               Cotangents &c) {
  return differentiateThrough(b, op, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(Norm(op, at).build());
  });
}
