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

namespace {

/// Philox4x32-10 on words of 32 bits in i64, of which some are vectors.
class Philox {
public:
  Philox(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  /// The first word of the counter's bits.
  Value firstWord(std::array<Value, 4> words, Value seed) {
    constexpr int64_t multipliers[] = {0xD2511F53, 0xCD9E8D57},
                      steps[] = {0x9E3779B9, 0xBB67AE85};
    constexpr int64_t rounds = 10;
    Value keys[] = {low(seed), high(seed)};
    for (int64_t round = 0; round < rounds; ++round) {
      Value products[2];
      for (int64_t i = 0; i < 2; ++i)
        products[i] = emit<arith::MulIOp>(words[2 * i], number(multipliers[i]));
      auto mix = [&](int64_t i) {
        Value mixed =
            emit<arith::XOrIOp>(high(products[1 - i]), words[2 * i + 1]);
        return emit<arith::XOrIOp>(mixed, keys[i]);
      };
      words = {mix(0), low(products[1]), mix(1), low(products[0])};
      for (int64_t i = 0; i < 2; ++i)
        keys[i] = low(emit<arith::AddIOp>(keys[i], number(steps[i])));
    }
    return words[0];
  }

  Value number(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }
  /// A scalar beside a vector is one for all of its elements.
  template <typename OpTy>
  Value emit(Value x, Value y) {
    return OpTy::create(b, loc, broadcastTo(b, loc, y.getType(), x),
                        broadcastTo(b, loc, x.getType(), y));
  }

private:
  Value low(Value x) { return emit<arith::AndIOp>(x, number(0xFFFFFFFF)); }
  Value high(Value x) { return emit<arith::ShRUIOp>(x, number(32)); }

  OpBuilder &b;
  Location loc;
};

} // namespace

Value mlir::linattn::emitKept(OpBuilder &b, Location loc, Type type,
                              const Dropout &dropout, Value batch, Value head,
                              Value query, Value key) {
  Philox philox(b, loc);
  auto word = [&](Value index) -> Value {
    Type integer = b.getI64Type();
    if (auto vector = dyn_cast<VectorType>(index.getType()))
      integer = VectorType::get(vector.getShape(), integer);
    return arith::IndexCastOp::create(b, loc, integer, index);
  };
  Value bits = philox.firstWord(
      {word(key), word(query), word(head), word(batch)}, dropout.seed);
  // A weight is dropped if its bits are below this.
  int64_t least = std::min<int64_t>(
      std::nearbyint(std::ldexp(dropout.share, 32)), (int64_t(1) << 32) - 1);
  Value threshold = broadcastTo(b, loc, bits.getType(), philox.number(least));
  Value isKept =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::uge, bits, threshold);
  return arith::SelectOp::create(
      b, loc, isKept, emitFloat(b, loc, type, 1 / (1 - dropout.share)),
      emitFloat(b, loc, type, 0.0));
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
