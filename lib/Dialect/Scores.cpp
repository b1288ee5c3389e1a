//===- Scores.cpp - The scores of attention -------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Scores.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::linattn;

/// The constant as an index or a vector of them.
static Value constantLike(OpBuilder &b, Location loc, Type type,
                          int64_t value) {
  TypedAttr attribute = b.getIndexAttr(value);
  if (auto vector = dyn_cast<VectorType>(type))
    attribute = DenseElementsAttr::get(vector, attribute);
  return arith::ConstantOp::create(b, loc, attribute);
}

static Value broadcastTo(OpBuilder &b, Location loc, Type type, Value scalar) {
  if (!isa<VectorType>(type) || scalar.getType() == type)
    return scalar;
  return vector::BroadcastOp::create(b, loc, type, scalar);
}

/// |position − key|
static Value emitIndexDistance(OpBuilder &b, Location loc, Value position,
                               Value key) {
  key = broadcastTo(b, loc, position.getType(), key);
  return arith::MaxSIOp::create(b, loc,
                                arith::SubIOp::create(b, loc, position, key),
                                arith::SubIOp::create(b, loc, key, position));
}

Value mlir::linattn::emitSees(OpBuilder &b, Location loc, PatternAttr pattern,
                              Value position, Value key) {
  Type type = position.getType();
  auto isBelow = [&](Value x, int64_t bound) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x,
                                 constantLike(b, loc, x.getType(), bound));
  };
  Value distance = emitIndexDistance(b, loc, position, key), sees;
  if (pattern.getWindow())
    sees = isBelow(distance, pattern.getReach());
  if (pattern.getDilation() > 1) {
    Value rest = arith::RemUIOp::create(
        b, loc, distance, constantLike(b, loc, type, pattern.getDilation()));
    Value isStep = isBelow(rest, 1);
    sees = sees ? Value(arith::AndIOp::create(b, loc, sees, isStep)) : isStep;
  }
  if (!sees) // All keys, global or not.
    return isBelow(constantLike(b, loc, type, 0), 1);
  if (int64_t globals = pattern.getGlobals()) {
    Value ofKey = isBelow(key, globals), ofQuery = isBelow(position, globals);
    ofKey = broadcastTo(b, loc, ofQuery.getType(), ofKey);
    sees = arith::OrIOp::create(b, loc, sees,
                                arith::OrIOp::create(b, loc, ofKey, ofQuery));
  }
  return sees;
}

bool mlir::linattn::adjustsScores(QuadraticOp op) {
  return op.getSoftcap() || op.getSlopes();
}

/// tanh(score / softcap)
static Value emitCapTanh(OpBuilder &b, Location loc, Value score, double cap) {
  Value ratio = arith::MulFOp::create(
      b, loc, score, emitFloat(b, loc, score.getType(), 1.0 / cap));
  return math::TanhOp::create(b, loc, ratio);
}

Value mlir::linattn::emitCapDerivative(OpBuilder &b, Location loc,
                                       QuadraticOp op, Value score) {
  std::optional<APFloat> softcap = op.getSoftcap();
  if (!softcap)
    return {};
  Value tanh = emitCapTanh(b, loc, score, softcap->convertToDouble());
  Value square = arith::MulFOp::create(b, loc, tanh, tanh);
  return arith::SubFOp::create(b, loc, emitFloat(b, loc, score.getType(), 1.0),
                               square);
}

Value mlir::linattn::emitDistance(OpBuilder &b, Location loc, Type type,
                                  Value position, Value key) {
  Type integer = b.getI64Type();
  if (auto vector = dyn_cast<VectorType>(type))
    integer = VectorType::get(vector.getShape(), integer);
  Value distance = emitIndexDistance(b, loc, position, key);
  return arith::SIToFPOp::create(
      b, loc, type, arith::IndexCastOp::create(b, loc, integer, distance));
}

Value mlir::linattn::emitAdjustedScore(OpBuilder &b, Location loc,
                                       QuadraticOp op, Value score, Value slope,
                                       Value position, Value key) {
  Type type = score.getType();
  if (std::optional<APFloat> softcap = op.getSoftcap()) {
    double cap = softcap->convertToDouble();
    score = arith::MulFOp::create(b, loc, emitCapTanh(b, loc, score, cap),
                                  emitFloat(b, loc, type, cap));
  }
  if (!slope)
    return score;
  Value number = emitDistance(b, loc, type, position, key);
  Value bias =
      arith::MulFOp::create(b, loc, broadcastTo(b, loc, type, slope), number);
  return arith::SubFOp::create(b, loc, score, bias);
}
