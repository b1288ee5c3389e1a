//===- LogLinearGradient.cpp - Gradients of log-linear attention ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every level as a scan of its own, all of them heads of one scan. Level ℓ
// holds the first half of the block of 2^ℓ tokens that its reader is in the
// second half of: its scan starts anew at every block, writes in the first half
// and is read in the second. The last level holds all that is not in the
// reader's own block of 2^{L−2} tokens: the scan of everything less the scan of
// that block.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "OpGradients.h"
#include "RowRecurrences.h"
#include "ScanNormalForm.h"
#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Emits comparisons of positions and slots, numbers of i64. Slot s < L − 1 is
/// level s, slot L − 1 everything, slot L the own block.
struct SlotArithmetic {
  OpBuilder &b;
  Location loc;
  int64_t levels;

  Value number(int64_t value) {
    return arith::ConstantIntOp::create(b, loc, value, 64);
  }
  Value is(Value x, int64_t value) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x,
                                 number(value));
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value isNot(Value x, int64_t value) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x,
                                 number(value));
  }
  Value choose(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value isLevel(Value slot) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, slot,
                                 number(levels - 1));
  }
  /// 2^exponent, for an exponent that may be out of range and is then 0.
  Value power(Value exponent) {
    Value bounded = arith::MaxSIOp::create(b, loc, exponent, number(0));
    return arith::ShLIOp::create(b, loc, number(1), bounded);
  }
  /// Whether the position is in the second half of a block of 2^slot.
  Value isSecondHalf(Value slot, Value position) {
    Value half = power(arith::SubIOp::create(b, loc, slot, number(1)));
    Value bit = arith::AndIOp::create(b, loc, position, half);
    return both(isNot(bit, 0), isNot(slot, 0));
  }
  /// Whether the scan of the slot starts anew.
  Value isReset(Value slot, Value position) {
    Value exponent =
        arith::SelectOp::create(b, loc, is(slot, levels),
                                number(std::max<int64_t>(levels - 2, 0)), slot);
    Value mask = arith::SubIOp::create(b, loc, power(exponent), number(1));
    Value starts = is(arith::AndIOp::create(b, loc, position, mask), 0);
    return both(starts, isNot(slot, levels - 1));
  }
};

class LogLinearForm {
public:
  LogLinearForm(LogLinearOp op, OpBuilder &b)
      : op(op), b(b), loc(op.getLoc()),
        t(b, op.getLoc(), getElementTypeOrSelf(op.getState())),
        levels(cast<ShapedType>(op.getState().getType()).getDimSize(2)),
        heads(cast<ShapedType>(op.getOutput().getType()).getDimSize(1)) {}

  SmallVector<Value> build();

private:
  using Body = function_ref<Value(SlotArithmetic, ValueRange)>;

  Value numbers(int64_t count);
  Value toIntegers(StringRef subscripts, Value x);
  void findPositions();
  Value map(StringRef subscripts, ValueRange inputs, Body body);
  Value initialStates();
  Value finalStates(Value states);
  Value weights();
  Value orZero(SlotArithmetic s, Value condition, Value x) {
    return arith::SelectOp::create(s.b, s.loc, condition, x,
                                   emitFloat(s.b, s.loc, t.type, 0.0));
  }

  LogLinearOp op;
  OpBuilder &b;
  Location loc;
  TensorBuilder t;
  int64_t levels, heads;
  Value slots;        ///< 0, 1, …, one for each scan, i64.
  Value levelNumbers; ///< 0, 1, … L − 1.
  Value position;     ///< [B, T], i64.
  Value before;       ///< Of the last token so far, [B] states.
  Value last;         ///< Of the last token, [B] states.
};

} // namespace

Value LogLinearForm::numbers(int64_t count) {
  Value empty = tensor::EmptyOp::create(b, loc, {count}, b.getI64Type());
  return elementwise(b, loc, "s->s", empty, empty,
                     [](OpBuilder &nested, Location at, ValueRange) -> Value {
                       return arith::IndexCastOp::create(
                           nested, at, nested.getI64Type(),
                           linalg::IndexOp::create(nested, at, 0));
                     });
}

/// Positions, of which `x` counts one more.
Value LogLinearForm::toIntegers(StringRef subscripts, Value x) {
  Value empty = tensor::EmptyOp::create(b, loc, t.sizes(x), b.getI64Type());
  return elementwise(
      b, loc, subscripts, x, empty,
      [](OpBuilder &nested, Location at, ValueRange args) -> Value {
        Type type = nested.getI64Type();
        Value count = arith::FPToSIOp::create(nested, at, type, args[0]);
        return arith::SubIOp::create(
            nested, at, count, arith::ConstantIntOp::create(nested, at, 1, 64));
      });
}

/// Tokens of each sequence, counted by a scan.
void LogLinearForm::findPositions() {
  slots = numbers(levels == 1 ? 1 : levels + 1);
  levelNumbers = numbers(levels);
  TensorBuilder wide(b, loc, b.getF64Type());
  OpFoldResult one = b.getIndexAttr(1);
  SmallVector<OpFoldResult> sizes{t.dim(op.getQuery(), 0), one,
                                  t.dim(op.getQuery(), 2), one};
  Value ones = wide.filled(sizes, 1.0);
  Value start;
  if (Value given = op.getPosition()) {
    start = wide.map("b->b", given,
                     [](OpBuilder &nested, Location at, ValueRange x) -> Value {
                       return arith::SIToFPOp::create(
                           nested, at, nested.getF64Type(), x[0]);
                     });
  } else {
    start = wide.zeros({t.dim(op.getState(), 0)});
  }
  Value state = start;
  for (int64_t dim = 1; dim < 4; ++dim)
    state = wide.withUnitDim(state, dim);
  RowScan scan{ones, Value(), state, op.getCuSeqlens()};
  ValueRange counted = scan.build(wide);
  auto flat = [&](Value x) {
    for (int64_t dim = 3; dim > 0; --dim)
      x = wide.withoutUnitDim(x, dim);
    return x;
  };
  position = toIntegers(
      "bt->bt", wide.withoutUnitDim(wide.withoutUnitDim(counted[0], 3), 1));
  before = toIntegers("b->b", start);
  last = toIntegers("b->b", flat(counted[1]));
}

Value LogLinearForm::map(StringRef subscripts, ValueRange inputs, Body body) {
  auto emit = [&](OpBuilder &nested, Location at, ValueRange args) {
    return body({nested, at, levels}, args);
  };
  auto [operands, output] = subscripts.split("->");
  bool isSum = llvm::any_of(operands, [&, out = output](char letter) {
    return letter != ',' && !out.contains(letter);
  });
  return isSum ? t.sum(subscripts, inputs, emit)
               : t.map(subscripts, inputs, emit);
}

/// The states of the slots, [B, H, slots, K, V]: a level that the last token
/// writes to lies in the levels below.
Value LogLinearForm::initialStates() {
  Value state = t.repeated(op.getState(), 1, heads);
  return map(
      "bhlkv,b,s,l->bhskv", {state, before, slots, levelNumbers},
      [&](SlotArithmetic s, ValueRange x) -> Value {
        Value position = x[1], slot = x[2], level = x[3];
        auto compare = [&](arith::CmpIPredicate predicate) -> Value {
          return arith::CmpIOp::create(s.b, s.loc, predicate, level, slot);
        };
        Value own = compare(arith::CmpIPredicate::eq);
        Value below = compare(arith::CmpIPredicate::slt);
        Value isRead = s.either(s.is(slot, 0), s.isSecondHalf(slot, position));
        Value ofLevel = s.choose(isRead, own, below);
        Value isBlock = s.both(s.is(slot, levels), s.isLevel(level));
        Value takes =
            s.either(s.either(s.both(s.isLevel(slot), ofLevel), isBlock),
                     s.is(slot, levels - 1));
        return orZero(s, takes, x[0]);
      });
}

Value LogLinearForm::finalStates(Value states) {
  return map(
      "bhskv,b,s,l->bhlkv", {states, last, slots, levelNumbers},
      [&](SlotArithmetic s, ValueRange x) -> Value {
        Value position = x[1], slot = x[2], level = x[3];
        Value own = arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::eq,
                                          level, slot);
        Value isRead = s.either(s.is(slot, 0), s.isSecondHalf(slot, position));
        Value takes = s.both(own, s.either(isRead, s.is(slot, levels - 1)));
        Value loses = s.both(s.is(level, levels - 1), s.is(slot, levels));
        Value minus = arith::NegFOp::create(s.b, s.loc, x[0]);
        return arith::SelectOp::create(s.b, s.loc, loses, minus,
                                       orZero(s, takes, x[0]));
      });
}

/// The weights of the slots for each token's read, [B, H, T, slots].
Value LogLinearForm::weights() {
  Value given = t.convert(t.repeated(op.getLevels(), 1, heads));
  if (levels > 1)
    given = t.concat(3, {given, t.slice(given, 3, b.getIndexAttr(levels - 1),
                                        b.getIndexAttr(1))});
  return map("bhts,bt,s->bhts", {given, position, slots},
             [&](SlotArithmetic s, ValueRange x) -> Value {
               Value slot = x[2];
               Value isWhole =
                   arith::CmpIOp::create(s.b, s.loc, arith::CmpIPredicate::sge,
                                         slot, s.number(levels - 1));
               Value isRead = s.either(s.either(s.is(slot, 0), isWhole),
                                       s.isSecondHalf(slot, x[1]));
               Value weight = orZero(s, isRead, x[0]);
               Value minus = arith::NegFOp::create(s.b, s.loc, weight);
               return arith::SelectOp::create(s.b, s.loc, s.is(slot, levels),
                                              minus, weight);
             });
}

SmallVector<Value> LogLinearForm::build() {
  findPositions();
  Value key = map(
      "bhtk,bt,s->bhstk", {t.repeated(op.getKey(), 1, heads), position, slots},
      [&](SlotArithmetic s, ValueRange x) -> Value {
        Value isRead = s.both(s.isLevel(x[2]), s.isSecondHalf(x[2], x[1]));
        Value zero = emitFloat(s.b, s.loc, t.type, 0.0);
        return s.choose(isRead, zero, x[0]);
      });
  Value none, gate = op.getDecay();
  if (gate) {
    gate = t.repeated(gate, 1, heads);
  } else {
    SmallVector<OpFoldResult> sizes = t.sizes(op.getOutput());
    sizes.pop_back();
    gate = t.zeros(sizes);
  }
  Value decay = map("bt,s,bht->bhst", {position, slots, gate},
                    [&](SlotArithmetic s, ValueRange x) -> Value {
                      return arith::SelectOp::create(
                          s.b, s.loc, s.isReset(x[1], x[0]),
                          emitFloat(s.b, s.loc, t.type, kForget), x[2]);
                    });
  Value query = t.convert(op.getQuery()), value = t.convert(op.getValue());
  Value state = t.withJoinedDims(initialStates(), 1);
  key = t.withJoinedDims(key, 1);
  SmallVector<OpFoldResult> sizes = t.sizes(key);
  sizes[3] = t.dim(value, 3);
  Value output = t.empty(sizes);
  auto scan = ScanOp::create(
      b, loc, TypeRange{output.getType(), state.getType()}, query, key, value,
      t.withJoinedDims(decay, 1), none, none, none, none, none, none, none,
      none, none, op.getCuSeqlens(), none, none, output, state, none, none,
      ValueRange(), Update::Add, Readout::Inclusive, Transition::After,
      /*reverse=*/false, IntegerAttr(), FeatureMapAttr(), NormalizeAttr(),
      op.getScaleAttr(), ConfigAttr());
  int64_t count = cast<ShapedType>(slots.getType()).getDimSize(0);
  Value outputs = t.withSplitDim(scan.getResult(0), 1, count);
  Value read = t.product("bhstv,bhts->bhtv", outputs, weights());
  Value states = finalStates(t.withSplitDim(scan.getResult(1), 1, count));
  // All heads of a group have the same state.
  states = t.firstOfEach(
      states, 1, cast<ShapedType>(op.getState().getType()).getDimSize(1));
  TensorBuilder narrow(b, loc, getElementTypeOrSelf(op.getOutput()));
  return {narrow.convert(read), states};
}

LogicalResult mlir::linattn::buildLogLinearGradient(LogLinearOp op,
                                                    OpBuilder &b,
                                                    Cotangents &c) {
  if (failed(checkKnownHeads(
          op, {op.getQuery(), op.getKey(), op.getValue(), op.getOutput()})))
    return failure();
  return differentiateThrough(b, op, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(LogLinearForm(op, at).build());
  });
}
