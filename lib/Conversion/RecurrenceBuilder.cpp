//===- RecurrenceBuilder.cpp - Base of small recurrences ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceBuilder.h"
#include "linattn/Dialect/Remarks.h"

#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value RecurrenceBuilder::softplus(Value x) {
  // max(x, 0) + log(1 + e^-|x|)
  Value small = exp(negate(math::AbsFOp::create(b, loc, x)));
  return addf(maxf(x, number(0.0)), math::Log1pOp::create(b, loc, small));
}

std::pair<Value, Value> RecurrenceBuilder::polar(Value log, Value phase,
                                                 Value rest) {
  Value modulus = exp(log);
  if (!phase)
    return {modulus, Value()};
  // The f32 expansions of sine and cosine need small angles. Whole turns are
  // subtracted in two parts, because 2π in f32 is not accurate enough.
  Type scalar = getElementTypeOrSelf(phase);
  if (scalar.isF32()) {
    constexpr double turn = 6.283185307179586;
    const double high = static_cast<float>(turn);
    Value turns = math::RoundEvenOp::create(
        b, loc, mulf(phase, constant(phase.getType(), 1.0 / turn)));
    Value back = negate(turns);
    phase = fma(back, constant(phase.getType(), high), phase);
    phase = fma(back, constant(phase.getType(), turn - high), phase);
  }
  if (rest)
    phase = addf(phase, rest);
  Value cosine = math::CosOp::create(b, loc, phase);
  Value sine = math::SinOp::create(b, loc, phase);
  return {mulf(modulus, cosine), mulf(modulus, sine)};
}

std::pair<Value, Value> RecurrenceBuilder::polarStep(Value step, Value log,
                                                     Value phase) {
  if (!phase)
    return polar(mulf(step, log), Value());
  // An angle of many turns is rounded at their size, the result at its own.
  Value product = mulf(step, phase);
  return polar(mulf(step, log), product, fma(step, phase, negate(product)));
}

std::pair<Value, Value>
RecurrenceBuilder::complexFma(std::pair<Value, Value> x,
                              std::pair<Value, Value> y,
                              std::pair<Value, Value> z) {
  Value real = fma(x.first, y.first, z.first);
  if (!x.second)
    return {real, Value()};
  real = fma(negate(x.second), y.second, real);
  Value imaginary = fma(x.first, y.second, z.second);
  return {real, fma(x.second, y.first, imaginary)};
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

void RecurrenceBuilder::enterSequence(Value slotIndex) {
  slot = batch = slotIndex;
  begin = index(0);
  end = dim(op.getFirstOutput().get(), op.getTokenLoop());
  Value offsets = op.getSequenceOffsets();
  if (!offsets)
    return;
  auto offset = [&](Value position) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                      load(offsets, {position}));
  };
  begin = offset(slot);
  end = offset(add(slot, index(1)));
  batch = index(0);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {

template <typename OpTy>
struct LowerRecurrence : OpRewritePattern<OpTy> {
  LowerRecurrence(MLIRContext *context, int64_t vectorBits, bool lanes)
      : OpRewritePattern<OpTy>(context), vectorBits(vectorBits), lanes(lanes) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    // Two vectors hide some of the latency of one step after the other.
    Type type = getElementTypeOrSelf(op.getState());
    int64_t elements = vectorBits / type.getIntOrFloatBitWidth();
    int64_t width = elements == 0 ? 1 : 2 * elements;
    if constexpr (!std::is_same_v<OpTy, LogLinearOp>)
      if (elements > 0)
        remark::passed(op.getLoc(), remarkNamed("lower-to-vector"))
            << llvm::formatv("{0}: token by token, {1} channels side by side "
                             "in vectors",
                             op->getName().stripDialect(), width)
                   .str();
    if constexpr (llvm::is_one_of<OpTy, SelectiveScanOp, LogLinearOp>::value)
      lowerRecurrence(rewriter, op, width, lanes);
    else // A task is a channel.
      lowerRecurrence(rewriter, op, width);
    rewriter.eraseOp(op);
    return success();
  }

  int64_t vectorBits;
  bool lanes;
};

} // namespace

void mlir::linattn::populateRecurrencePatterns(RewritePatternSet &patterns,
                                               int64_t vectorBits, bool lanes) {
  patterns.add<LowerRecurrence<SelectiveScanOp>,
               LowerRecurrence<DiagonalScanOp>, LowerRecurrence<Wkv4Op>,
               LowerRecurrence<LogLinearOp>, LowerRecurrence<SweepSelectiveOp>>(
      patterns.getContext(), vectorBits, lanes);
}
