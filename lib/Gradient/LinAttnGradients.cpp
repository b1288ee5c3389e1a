//===- LinAttnGradients.cpp - Gradients of the dialect's ops --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "OpGradients.h"
#include "ScanNormalForm.h"
#include "linattn/Transforms/Sweeps.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::linattn;

LogicalResult mlir::linattn::checkScale(Operation *op, Value scale,
                                        Cotangents &c) {
  if (!scale || !c.isActive(scale))
    return success();
  return emitNoGradient(op) << " for a scale";
}

template <typename OpTy>
static void addLinearScale(OpTy op, OpBuilder &b, Cotangents &c) {
  Value scale = op.getScaleValue(), d = c.get(op->getResult(0));
  if (!scale || !c.isActive(scale) || !d)
    return;
  auto unscaled = cast<OpTy>(b.clone(*op));
  unscaled.getScaleValueMutable().clear();
  TensorBuilder t(b, op.getLoc(), b.getF64Type());
  Value sum = t.product("bhtd,bhtd->o", unscaled->getResult(0), d);
  Value zero = arith::ConstantIndexOp::create(b, op.getLoc(), 0);
  c.add(b, scale, tensor::ExtractOp::create(b, op.getLoc(), sum, zero));
}

void mlir::linattn::addScaleGradient(ScanOp op, OpBuilder &b, Cotangents &c) {
  addLinearScale(op, b, c);
}

void mlir::linattn::addScaleGradient(ReadOp op, OpBuilder &b, Cotangents &c) {
  addLinearScale(op, b, c);
}

/// Of softmax weights by their log-sum-exp. Else by the linalg ops that the op
/// stands for, each head of its own.
static LogicalResult quadraticRule(QuadraticOp op, OpBuilder &b,
                                   Cotangents &c) {
  if (keepsLogSum(op.getWeights(), op.getQuery()))
    return buildSoftmaxGradient(op, b, c);
  SmallVector<Value> tokens{op.getQuery(), op.getKey(), op.getValue()};
  if (failed(checkScale(op, op.getScaleValue(), c)) ||
      failed(checkKnownHeads(op, tokens)))
    return failure();
  return differentiateThrough(
      b, op, c, [&](OpBuilder &at) -> FailureOr<SmallVector<Value>> {
        auto output = cast<ShapedType>(op.getOutput().getType());
        TensorBuilder t(at, op.getLoc(), output.getElementType());
        for (Value &x : tokens)
          x = t.repeated(x, 1, output.getDimSize(1));
        // Its operands are forward values; it is gone when it is decomposed.
        IRMapping mapping;
        for (auto [from, to] : llvm::zip(op->getOperands(), tokens))
          mapping.map(from, to);
        auto equal = cast<QuadraticOp>(at.clone(*op, mapping));
        FailureOr<SmallVector<Value>> values = equal.decomposeOperation(at);
        equal.erase();
        return values;
      });
}

/// Causal attention uses its scan. Other attention uses state and read, or,
/// without a state of fixed size, the quadratic form.
static LogicalResult attentionRule(AttentionOp op, OpBuilder &b,
                                   Cotangents &c) {
  if (keepsLogSum(op.getWeights(), op.getQuery()))
    return buildSoftmaxGradient(op, b, c);
  if (op.getWeights() == Weights::Softmax &&
      failed(checkScale(op, op.getScaleValue(), c)))
    return failure();
  IRRewriter rewriter(b);
  return differentiateThrough(
      b, op, c, [&](OpBuilder &at) -> FailureOr<SmallVector<Value>> {
        rewriter.setInsertionPoint(at.getInsertionBlock(),
                                   at.getInsertionPoint());
        if (!op.hasState())
          return SmallVector<Value>{
              rewriteAsQuadratic(rewriter, op).getResult(0)};
        if (!op.getCausal())
          return SmallVector<Value>{
              rewriteAsStateAndRead(rewriter, op).getResult(0)};
        if (op.getPrefix())
          return SmallVector<Value>{rewritePrefixed(rewriter, op)};
        return SmallVector<Value>{rewriteAsScan(rewriter, op).getResult(0)};
      });
}

/// By its scans.
static LogicalResult sweepRule(SweepOp op, OpBuilder &b, Cotangents &c) {
  return differentiateThrough(
      b, op, c, [&](OpBuilder &at) -> FailureOr<SmallVector<Value>> {
        return buildSplitSweep(at, op);
      });
}

static LogicalResult selectiveSweepRule(SweepSelectiveOp op, OpBuilder &b,
                                        Cotangents &c) {
  return differentiateThrough(
      b, op, c, [&](OpBuilder &at) { return buildSplitSweep(at, op); });
}

void mlir::linattn::registerLinAttnGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, LinAttnDialect *) {
    attachGradient<ScanOp, buildScanGradient>(context);
    attachGradient<SweepOp, sweepRule>(context);
    attachGradient<SweepSelectiveOp, selectiveSweepRule>(context);
    attachGradient<AttentionOp, attentionRule>(context);
    attachGradient<StateOp, buildStateGradient>(context);
    attachGradient<ReadOp, buildReadGradient>(context);
    attachGradient<QuadraticOp, quadraticRule>(context);
    attachGradient<SoftmaxOp, buildSoftmaxGradient>(context);
    attachGradient<FeatureMapOp, buildFeatureMapGradient>(context);
    attachGradient<OutputNormOp, buildNormGradient>(context);
    attachGradient<CausalConvOp, buildConvGradient>(context);
    attachGradient<SelectiveScanOp, buildSelectiveGradient>(context);
    attachGradient<DiagonalScanOp, buildDiagonalGradient>(context);
    attachGradient<Wkv4Op, buildWkv4Gradient>(context);
    attachGradient<LogLinearOp, buildLogLinearGradient>(context);
  });
}
