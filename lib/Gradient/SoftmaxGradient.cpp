//===- SoftmaxGradient.cpp - Gradients of softmax attention ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The forward pass is replaced by the op that keeps the log-sum-exp L of each
// row of weights. With D_i = dO_i·o_i, less a cotangent of L_i, one op computes
// the gradients of tokens and slopes, and a sink, the score of a key without a
// value, has the gradient −Σ_i e^{sink − L_i} D_i.
//
//===----------------------------------------------------------------------===//

#include "OpGradients.h"
#include "ScanNormalForm.h"
#include "TensorBuilder.h"
#include "WideClone.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

static Value sumRows(TensorBuilder &t, Value rows) {
  return t.sum("bht->h", rows);
}

/// −Σ e^{sink − L} D for each head.
static Value gradientOfSinks(TensorBuilder &t, Value sinks, Value logSum,
                             Value correction) {
  Value all =
      t.map("h,bht,bht->bht", {sinks, logSum, correction},
            [](OpBuilder &b, Location loc, ValueRange x) -> Value {
              // A row without keys or a sink has −∞, and −∞ − −∞ is NaN.
              Value lowest = emitFloat(b, loc, x[1].getType(), -1e30);
              Value shift = arith::MaximumFOp::create(b, loc, x[1], lowest);
              Value weight = math::ExpOp::create(
                  b, loc, arith::SubFOp::create(b, loc, x[0], shift));
              Value product = arith::MulFOp::create(b, loc, weight, x[2]);
              return arith::NegFOp::create(b, loc, product);
            });
  return sumRows(t, all);
}

/// Sums over the query heads of each key head, in order.
static Value sumGroups(TensorBuilder &t, Value x, int64_t heads) {
  int64_t all = cast<ShapedType>(x.getType()).getDimSize(1);
  if (all == heads)
    return x;
  return t.sum("bhgtd->bhtd", t.withSplitDim(x, 1, all / heads));
}

template <typename OpTy>
static LogicalResult checkGradient(OpTy op, Cotangents &c) {
  return success(succeeded(checkScale(op, op.getScaleValue(), c)) &&
                 succeeded(checkKnownHeads(
                     op, {op.getQuery(), op.getKey(), op.getValue()})));
}

/// Either of the cotangents may be null.
static void addGradient(SoftmaxOp op, Value cotangent, Value ofLogSum,
                        OpBuilder &b, Cotangents &c) {
  SmallVector<Value> tokens{op.getQuery(), op.getKey(), op.getValue()};
  auto output = cast<ShapedType>(op.getOutput().getType());
  Location loc = op.getLoc();
  TensorBuilder t(b, loc, output.getElementType());
  Value o = op->getResult(0), logSum = op->getResult(1);
  if (!cotangent)
    cotangent = t.zeros(t.sizes(o));
  Value correction = t.product("bhtd,bhtd->bht", cotangent, o);
  if (ofLogSum)
    correction = t.sub(correction, ofLogSum);

  SmallVector<Value> repeated, into;
  for (Value x : tokens)
    repeated.push_back(t.repeated(x, 1, output.getDimSize(1)));
  for (Value x : repeated)
    into.push_back(t.empty(t.sizes(x)));
  if (op.getSlopes())
    into.push_back(t.empty(t.sizes(correction)));
  auto gradient = SoftmaxGradientOp::create(
      b, loc, TypeRange(ValueRange(into)), repeated[0], repeated[1],
      repeated[2], cotangent, logSum, correction, op.getMask(), op.getPrefix(),
      op.getScaleValue(), op.getSlopes(), op.getSpans(), op.getSeed(), into[0],
      into[1], into[2], op.getSlopes() ? into[3] : Value(), op.getCausal(),
      op.getPatternAttr(), op.getSoftcapAttr(), op.getScaleAttr(),
      op.getDropoutAttr());

  for (auto [x, d] : llvm::zip(tokens, gradient->getResults()))
    if (c.isActive(x))
      c.add(b, x, sumGroups(t, d, cast<ShapedType>(x.getType()).getDimSize(1)));
  auto addPerHead = [&](Value x, function_ref<Value()> d) {
    if (x && c.isActive(x))
      c.add(b, x, convertTo(b, d(), x.getType()));
  };
  addPerHead(op.getSlopes(),
             [&] { return sumRows(t, gradient->getResult(3)); });
  addPerHead(op.getSinks(), [&] {
    return gradientOfSinks(t, op.getSinks(), logSum, correction);
  });
}

LogicalResult mlir::linattn::buildSoftmaxGradient(SoftmaxOp op, OpBuilder &b,
                                                  Cotangents &c) {
  if (failed(checkGradient(op, c)))
    return failure();
  addGradient(op, c.get(op->getResult(0)), c.get(op->getResult(1)), b, c);
  return success();
}

/// The op that keeps the log-sum-exp, in front of `op`, whose uses it takes.
template <typename OpTy>
static SoftmaxOp replaceBySoftmax(OpTy op, Value destination) {
  OpBuilder at(op);
  Type type = getElementTypeOrSelf(op.getQuery());
  TensorBuilder t(at, op.getLoc(), type);
  SmallVector<OpFoldResult> rows = t.sizes(destination);
  rows.pop_back();
  Value logSum = t.empty(rows);
  auto softmax = SoftmaxOp::create(
      at, op.getLoc(), TypeRange{destination.getType(), logSum.getType()},
      op.getQuery(), op.getKey(), op.getValue(), op.getMask(), op.getPrefix(),
      op.getScaleValue(), op.getSlopes(), op.getSinks(), /*spans=*/Value(),
      /*seed=*/Value(), destination, logSum, op.getCausal(),
      op.getPatternAttr(), op.getSoftcapAttr(), op.getScaleAttr(),
      /*dropout=*/FloatAttr());
  Value output = softmax->getResult(0), was = op->getResult(0);
  if (output.getType() != was.getType())
    output = tensor::CastOp::create(at, op.getLoc(), was.getType(), output);
  was.replaceAllUsesWith(output);
  return softmax;
}

bool mlir::linattn::keepsLogSum(Weights weights, Value query) {
  Type type = getElementTypeOrSelf(query);
  return weights == Weights::Softmax && (type.isF32() || type.isF64());
}

LogicalResult mlir::linattn::buildSoftmaxGradient(AttentionOp op, OpBuilder &b,
                                                  Cotangents &c) {
  if (failed(checkGradient(op, c)))
    return failure();
  OpBuilder at(op);
  Value cotangent = c.get(op.getOutput());
  addGradient(replaceBySoftmax(op, createDestination(at, op)), cotangent,
              Value(), b, c);
  return success();
}

LogicalResult mlir::linattn::buildSoftmaxGradient(QuadraticOp op, OpBuilder &b,
                                                  Cotangents &c) {
  if (failed(checkGradient(op, c)))
    return failure();
  Value cotangent = c.get(op->getResult(0));
  addGradient(replaceBySoftmax(op, op.getOutput()), cotangent, Value(), b, c);
  return success();
}
