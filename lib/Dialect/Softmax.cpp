//===- Softmax.cpp - Softmax attention for training -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keyword.h"

#include "linattn/Dialect/LinAttnSoftmax.h"

using namespace mlir;
using namespace mlir::linattn;

#define GET_OP_CLASSES
#include "linattn/Dialect/LinAttnSoftmax.cpp.inc"

MutableOperandRange SoftmaxOp::getDpsInitsMutable() {
  unsigned start = getOutputMutable().getOperandNumber();
  return MutableOperandRange(*this, start, getNumOperands() - start);
}

MutableOperandRange SoftmaxGradientOp::getDpsInitsMutable() {
  unsigned start = getQueryOutputMutable().getOperandNumber();
  return MutableOperandRange(*this, start, getNumOperands() - start);
}

template <typename OpTy>
static QuadraticOp buildQuadratic(OpBuilder &b, OpTy op, Value output) {
  auto quadratic =
      QuadraticOp::create(b, op.getLoc(), op.getQuery(), op.getKey(),
                          op.getValue(), op.getMask(), op.getPrefix(), output);
  quadratic.setWeights(Weights::Softmax);
  quadratic.setCausal(op.getCausal());
  quadratic.setPatternAttr(op.getPatternAttr());
  quadratic.setSoftcapAttr(op.getSoftcapAttr());
  quadratic.setScaleAttr(op.getScaleAttr());
  if (Value scale = op.getScaleValue())
    quadratic.getScaleValueMutable().assign(scale);
  if (Value slopes = op.getSlopes())
    quadratic.getSlopesMutable().assign(slopes);
  return quadratic;
}

QuadraticOp SoftmaxOp::createQuadratic(OpBuilder &b) {
  QuadraticOp quadratic = buildQuadratic(b, *this, getOutput());
  if (Value sinks = getSinks())
    quadratic.getSinksMutable().assign(sinks);
  return quadratic;
}

QuadraticOp SoftmaxGradientOp::createQuadratic(OpBuilder &b) {
  return buildQuadratic(b, *this, getCotangent());
}
