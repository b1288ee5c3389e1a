//===- ChannelRecurrences.cpp - diagonal_scan and wkv4 --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Channels know nothing of one another: a task is one sequence and as many
// channels as the width says, whose states stay in registers from the first
// token to the last. One emitter makes vectors and, at width 1, scalar loops.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceBuilder.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

/// Runs `body(first channel)` for every sequence and block of channels.
static void forEachChannelBlock(RecurrenceBuilder &r,
                                function_ref<void(Value)> body) {
  Value blocks = r.ceilDiv(r.dim(r.op.getFirstOutput().get(), 2), r.width);
  Value slots = r.dim(r.op.getFirstState().get(), 0);
  r.parallel(r.mul(slots, blocks), [&](Value task) {
    r.enterSequence(r.div(task, blocks));
    body(r.mul(r.rem(task, blocks), r.index(r.width)));
  });
}

/// A [C] or [B, T, C] operand at one token.
static Value readAt(RecurrenceBuilder &r, Value operand, Value token,
                    Value channel) {
  if (!operand)
    return Value();
  if (cast<MemRefType>(operand.getType()).getRank() == 1)
    return r.read(operand, {channel});
  return r.read(operand, {r.batch, token, channel});
}

//===----------------------------------------------------------------------===//
// diagonal_scan
//===----------------------------------------------------------------------===//

void mlir::linattn::lowerRecurrence(OpBuilder &b, DiagonalScanOp op,
                                    int64_t width) {
  RecurrenceBuilder r(b, op, width);
  auto isFixed = [](Value operand) {
    return !operand || cast<MemRefType>(operand.getType()).getRank() == 1;
  };
  bool fixed = isFixed(op.getDecay()) && isFixed(op.getPhase());
  forEachChannelBlock(r, [&](Value channel) {
    auto factor = [&](Value token) {
      return r.polar(readAt(r, op.getDecay(), token, channel),
                     readAt(r, op.getPhase(), token, channel));
    };
    std::pair<Value, Value> constantFactor;
    if (fixed)
      constantFactor = factor(Value());
    SmallVector<Value> initial{r.read(op.getState(), {r.slot, channel})};
    if (op.getStateImag())
      initial.push_back(r.read(op.getStateImag(), {r.slot, channel}));
    SmallVector<Value> last = r.forEachToken(
        initial, [&](Value token, ValueRange h) -> SmallVector<Value> {
          SmallVector<Value> at{r.batch, token, channel};
          std::pair<Value, Value> x{r.read(op.getInput(), at), Value()};
          std::pair<Value, Value> state{h.front(), Value()};
          if (op.getStateImag()) {
            x.second = op.getImag() ? r.read(op.getImag(), at) : r.number(0.0);
            state.second = h.back();
          }
          auto next =
              r.complexFma(fixed ? constantFactor : factor(token), state, x);
          r.write(next.first, op.getOutput(), at);
          if (!next.second)
            return {next.first};
          if (op.getOutputImag())
            r.write(next.second, op.getOutputImag(), at);
          return {next.first, next.second};
        });
    r.write(last.front(), op.getState(), {r.slot, channel});
    if (op.getStateImag())
      r.write(last.back(), op.getStateImag(), {r.slot, channel});
  });
}

//===----------------------------------------------------------------------===//
// wkv4
//===----------------------------------------------------------------------===//

namespace {

/// Two sums, of values and of weights, relative to e^max.
struct Quotient {
  Value sum, weight, max;
};

} // namespace

/// The maximum of logarithms, not below the lowest finite number: −∞ − (−∞) is
/// no number.
static Value maxLog(RecurrenceBuilder &r, Value x, Value y) {
  double lowest = r.type.isF64() ? std::numeric_limits<double>::lowest()
                                 : double(std::numeric_limits<float>::lowest());
  return r.maxf(r.maxf(x, y), r.number(lowest));
}

/// `past` and a value v of logarithmic weight `log`, relative to the larger.
static Quotient join(RecurrenceBuilder &r, Quotient past, Value log, Value v) {
  Value max = maxLog(r, past.max, log);
  Value old = r.exp(r.subf(past.max, max)), fresh = r.exp(r.subf(log, max));
  return {r.fma(old, past.sum, r.mulf(fresh, v)),
          r.fma(old, past.weight, fresh), max};
}

/// The factors of `past` and of the token itself. An error that is the same at
/// each of thousands of tokens would add up: the factor makes up for the
/// rounding of the maximum (neighbours differ exactly), its residual for that
/// of the factor.
static Quotient decayAndJoin(RecurrenceBuilder &r, Quotient past, Value decay,
                             Value log, Value v) {
  Value max = maxLog(r, r.addf(past.max, decay), log);
  Value logFactor = r.addf(r.subf(past.max, max), decay);
  Value factor = r.exp(logFactor), rest = r.residualOf(logFactor, factor);
  Value fresh = r.exp(r.subf(log, max));
  auto decayed = [&](Value sum, Value term) {
    return r.fma(factor, sum, r.fma(rest, sum, term));
  };
  return {decayed(past.sum, r.mulf(fresh, v)), decayed(past.weight, fresh),
          max};
}

SmallVector<Value, 4> mlir::linattn::emitQuotientStep(RecurrenceBuilder &r,
                                                      ValueRange state,
                                                      Value key, Value value,
                                                      Value decay,
                                                      Value bonus) {
  Quotient past{state[0], state[1], state[2]};
  Quotient now = join(r, past, r.addf(bonus, key), value);
  Value zero = r.number(0.0);
  Value isEmpty = r.compare(arith::CmpFPredicate::OEQ, now.weight, zero);
  Value output = r.select(isEmpty, zero, r.divf(now.sum, now.weight));
  Quotient next = decayAndJoin(r, past, decay, key, value);
  return {output, next.sum, next.weight, next.max};
}

void mlir::linattn::lowerRecurrence(OpBuilder &b, Wkv4Op op, int64_t width) {
  RecurrenceBuilder r(b, op, width);
  forEachChannelBlock(r, [&](Value channel) {
    Value decay = r.read(op.getDecay(), {channel});
    Value bonus = r.read(op.getBonus(), {channel});
    SmallVector<Value> initial;
    for (int64_t part = 0; part < 3; ++part)
      initial.push_back(
          r.read(op.getState(), {r.slot, r.index(part), channel}));
    SmallVector<Value> last = r.forEachToken(
        initial, [&](Value token, ValueRange state) -> SmallVector<Value> {
          SmallVector<Value> at{r.batch, token, channel};
          Value k = r.read(op.getKey(), at), v = r.read(op.getValue(), at);
          SmallVector<Value, 4> step =
              emitQuotientStep(r, state, k, v, decay, bonus);
          r.write(step.front(), op.getOutput(), at);
          return SmallVector<Value>(ArrayRef(step).drop_front());
        });
    for (int64_t part = 0; part < 3; ++part)
      r.write(last[part], op.getState(), {r.slot, r.index(part), channel});
  });
}
