//===- OpGradients.h - Gradients of the dialect's ops -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_OPGRADIENTS_H
#define LINATTN_LIB_GRADIENT_OPGRADIENTS_H

#include "linattn/Dialect/LinAttnConv.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "linattn/Gradient/Gradient.h"

namespace mlir::linattn {

LogicalResult buildScanGradient(ScanOp op, OpBuilder &b, Cotangents &c);
LogicalResult buildStateGradient(StateOp op, OpBuilder &b, Cotangents &c);
LogicalResult buildReadGradient(ReadOp op, OpBuilder &b, Cotangents &c);
LogicalResult buildFeatureMapGradient(FeatureMapOp op, OpBuilder &b,
                                      Cotangents &c);
LogicalResult buildNormGradient(OutputNormOp op, OpBuilder &b, Cotangents &c);
LogicalResult buildConvGradient(CausalConvOp op, OpBuilder &b, Cotangents &c);
LogicalResult buildSelectiveGradient(SelectiveScanOp op, OpBuilder &b,
                                     Cotangents &c);
/// The results of the sweep, by other scans.
FailureOr<SmallVector<Value>> buildSplitSweep(OpBuilder &b,
                                              SweepSelectiveOp op);
LogicalResult buildDiagonalGradient(DiagonalScanOp op, OpBuilder &b,
                                    Cotangents &c);

LogicalResult buildWkv4Gradient(Wkv4Op op, OpBuilder &b, Cotangents &c);
LogicalResult buildLogLinearGradient(LogLinearOp op, OpBuilder &b,
                                     Cotangents &c);

/// True if the gradient keeps the log-sum-exp of each row: of softmax weights,
/// for tokens wider than 16 bits.
bool keepsLogSum(Weights weights, Value query);
LogicalResult buildSoftmaxGradient(AttentionOp op, OpBuilder &b, Cotangents &c);
LogicalResult buildSoftmaxGradient(QuadraticOp op, OpBuilder &b, Cotangents &c);
LogicalResult buildSoftmaxGradient(SoftmaxOp op, OpBuilder &b, Cotangents &c);

/// Adds the gradient of a scale that is an operand, where the output is linear
/// in it: Σ o ⊙ dO, with the output o of the op without it.
void addScaleGradient(ScanOp op, OpBuilder &b, Cotangents &c);
void addScaleGradient(ReadOp op, OpBuilder &b, Cotangents &c);

/// An error where a scale that is an operand is differentiated by, though the
/// output is not linear in it.
LogicalResult checkScale(Operation *op, Value scale, Cotangents &c);

/// silu or sigmoid of a scalar.
Value emitActivation(OpBuilder &b, Location loc, Activation activation,
                     Value x);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_OPGRADIENTS_H
