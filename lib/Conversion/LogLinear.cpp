//===- LogLinear.cpp - linattn.log_linear as loops ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The recurrence over levels, token by token. A task of the vector form is one
// sequence, head and panel of `width` value columns, whose states lie together
// in scratch memory. Half of the levels are empty on average; they are neither
// read nor touched. Sums run over levels, then over rows, in a fixed order.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceBuilder.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Rows with an accumulator of their own, against the latency of the sums.
constexpr int64_t unrolledRows = 4;

class LogLinear : public RecurrenceBuilder {
public:
  LogLinear(OpBuilder &b, LogLinearOp scan, int64_t width)
      : RecurrenceBuilder(b, scan, width), scan(scan),
        levels(cast<MemRefType>(scan.getState().getType()).getDimSize(2)),
        scale(scaleOr1(scan.getScale())) {}

  void emitScalars();
  void emitVectors();

private:
  void enterHead(Value task);
  Value position(Value t);
  Value mergedLevel(Value position);
  Value decayFactor(Value token);
  Value scaledQuery(Value reader, Value token, Value row);
  void forEachReader(Value group, function_ref<void(Value)> body);

  // Scalars.
  void forEachColumn(function_ref<void(Value)> body);
  void mergeScalars(Value level);
  void updateScalars(Value token);
  void readScalars(Value reader, Value token);

  // Vectors.
  void loadState();
  void storeState();
  void clear(Value buffer);
  void packRow(Value operand, Value operandHead, Value token, double factor,
               Value target);
  void token(Value t, Value group);
  void merge(Value level);
  Value sweepLevel(Value level, Value token, Value decay, Value o);
  Value sweepOwnLevel(Value token, Value decay, Value v, Value o);
  Value sweepRows(Value level, function_ref<Value(Value, Value)> update,
                  Value weight, Value o);
  bool isUpdating = false;

  LogLinearOp scan;
  int64_t levels;
  double scale;
  // The current task.
  Value head, heads, column, rows, padded;
  /// A token's rows.
  struct Packed {
    Value query, key;
  };
  // Scratch: [L, rows, width], [L], and rows.
  Value state, occupied;
  Packed packed;
};

} // namespace

//===----------------------------------------------------------------------===//
// Shared
//===----------------------------------------------------------------------===//

void LogLinear::enterHead(Value task) {
  enterSequence(div(task, heads));
  head = rem(task, heads);
}

/// The number of tokens of the sequence before token t.
Value LogLinear::position(Value t) {
  Value here = sub(t, begin);
  if (!scan.getPosition())
    return here;
  Value start = arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                           load(scan.getPosition(), {slot}));
  return add(start, here);
}

/// The level that takes in those below it before the token at `position`:
/// number of bits of p & −p, no more than the last.
Value LogLinear::mergedLevel(Value position) {
  Type i64 = b.getI64Type();
  Value bits = arith::IndexCastOp::create(b, loc, i64, position);
  Value zeros = arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      math::CountTrailingZerosOp::create(b, loc, bits));
  return min(add(zeros, index(1)), index(levels - 1));
}

Value LogLinear::decayFactor(Value token) {
  if (!scan.getDecay())
    return Value();
  return exp(loadAs(scan.getDecay(), {batch, head, token}));
}

Value LogLinear::scaledQuery(Value reader, Value token, Value row) {
  Value queryHead = headOf(scan.getQuery(), reader, dim(scan.getOutput(), 1));
  Value q = loadAs(scan.getQuery(), {batch, queryHead, token, row});
  return scale == 1.0 ? q : mulf(q, constant(type, scale));
}

void LogLinear::forEachReader(Value group, function_ref<void(Value)> body) {
  forEach(group, [&](Value member) { body(add(mul(head, group), member)); });
}

//===----------------------------------------------------------------------===//
// Scalar loops
//===----------------------------------------------------------------------===//

/// Columns know nothing of one another: of a GPU a thread has one.
void LogLinear::forEachColumn(function_ref<void(Value)> body) {
  if (forThreads)
    return body(column);
  forEach(dim(scan.getState(), 4), body);
}

/// S[level] ← S[0] + … + S[level], those below empty.
void LogLinear::mergeScalars(Value level) {
  Value zero = constant(type, 0.0);
  forEach(rows, [&](Value row) {
    forEachColumn([&](Value col) {
      SmallVector<Value> into{slot, head, level, row, col};
      Value sum = reduce(level, load(scan.getState(), into),
                         [&](Value below, Value partial) -> Value {
                           SmallVector<Value> from{slot, head, below, row, col};
                           Value s = load(scan.getState(), from);
                           store(zero, scan.getState(), from);
                           return addf(partial, s);
                         });
      store(sum, scan.getState(), into);
    });
  });
}

/// S ← e^g S on all levels, then S[0] ← S[0] + k vᵀ.
void LogLinear::updateScalars(Value token) {
  Value decay = decayFactor(token);
  Value keyHead = headOf(scan.getKey(), head, heads);
  Value valueHead = headOf(scan.getValue(), head, heads);
  forEach(rows, [&](Value row) {
    Value k = loadAs(scan.getKey(), {batch, keyHead, token, row});
    forEachColumn([&](Value col) {
      if (decay)
        forEach(index(levels), [&](Value level) {
          SmallVector<Value> at{slot, head, level, row, col};
          store(mulf(load(scan.getState(), at), decay), scan.getState(), at);
        });
      SmallVector<Value> at{slot, head, index(0), row, col};
      Value v = loadAs(scan.getValue(), {batch, valueHead, token, col});
      store(addf(load(scan.getState(), at), mulf(k, v)), scan.getState(), at);
    });
  });
}

void LogLinear::readScalars(Value reader, Value token) {
  forEachColumn([&](Value col) {
    Value o =
        reduce(index(levels), constant(type, 0.0), [&](Value level, Value sum) {
          Value weight = loadAs(scan.getLevels(), {batch, head, token, level});
          Value read =
              reduce(rows, constant(type, 0.0), [&](Value row, Value partial) {
                Value s = load(scan.getState(), {slot, head, level, row, col});
                return addf(partial, mulf(scaledQuery(reader, token, row), s));
              });
          return addf(sum, mulf(weight, read));
        });
    Type element =
        cast<MemRefType>(scan.getOutput().getType()).getElementType();
    store(convert(o, element), scan.getOutput(), {batch, reader, token, col});
  });
}

void LogLinear::emitScalars() {
  heads = dim(scan.getState(), 1);
  rows = dim(scan.getState(), 3);
  Value group = div(dim(scan.getOutput(), 1), max(heads, index(1)));
  Value tasks = mul(dim(scan.getState(), 0), heads), columns;
  if (forThreads) {
    columns = dim(scan.getState(), 4);
    tasks = mul(tasks, columns);
  }
  parallel(tasks, [&](Value task) {
    if (forThreads) {
      column = rem(task, columns);
      task = div(task, columns);
    }
    enterHead(task);
    forEach(begin, end, 1, [&](Value t) {
      Value here = position(t);
      Value isLater = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                            here, index(0));
      ifThen(isLater, [&] { mergeScalars(mergedLevel(here)); });
      updateScalars(t);
      forEachReader(group, [&](Value reader) { readScalars(reader, t); });
    });
  });
}

//===----------------------------------------------------------------------===//
// Vectors: the state
//===----------------------------------------------------------------------===//

/// Copies the panel and notes which levels hold anything.
void LogLinear::loadState() {
  Value zero = zeros(width);
  forEach(index(levels), [&](Value level) {
    Value any = reduce(rows, zero, [&](Value row, Value partial) -> Value {
      Value s =
          readOperand(scan.getState(), {slot, head, level, row, column}, width);
      storeVector(s, state, {level, row, index(0)});
      return maxf(partial, math::AbsFOp::create(b, loc, s));
    });
    forEach(rows, padded, 1, [&](Value row) {
      storeVector(zero, state, {level, row, index(0)});
    });
    // Also true of NaN.
    store(reduceVector(vector::CombiningKind::MAXIMUMF, any), occupied,
          {level});
  });
}

void LogLinear::storeState() {
  forEach(index(levels), [&](Value level) {
    Value isOccupied = compare(arith::CmpFPredicate::UNE,
                               load(occupied, {level}), constant(type, 0.0));
    forEach(rows, [&](Value row) {
      Value s = loadVector(state, {level, row, index(0)}, width);
      writeOperand(select(isOccupied, s, zeros(width)), scan.getState(),
                   {slot, head, level, row, column});
    });
  });
}

/// A token's row times a factor; its padding has been cleared.
void LogLinear::packRow(Value operand, Value operandHead, Value token,
                        double factor, Value target) {
  forEach(rows, [&](Value row) {
    Value x = loadAs(operand, {batch, operandHead, token, row});
    store(factor == 1.0 ? x : mulf(x, constant(type, factor)), target, {row});
  });
}

/// Runs `body` for a level if it holds anything.
static Value whereOccupied(RecurrenceBuilder &r, Value occupied, Value level,
                           Value otherwise, function_ref<Value()> body) {
  Value flag = r.load(occupied, {level});
  Value isOccupied =
      r.compare(arith::CmpFPredicate::UNE, flag, r.constant(r.type, 0.0));
  auto branch =
      scf::IfOp::create(r.b, r.loc, otherwise.getType(), isOccupied, true);
  OpBuilder::InsertionGuard guard(r.b);
  r.b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(r.b, r.loc, otherwise);
  r.b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(r.b, r.loc, body());
  return branch.getResult(0);
}

/// S[level] ← S[0] + … + S[level], those below empty.
void LogLinear::merge(Value level) {
  Value zero = zeros(width);
  forEach(rows, [&](Value row) {
    auto stateAt = [&](Value level) {
      return loadVector(state, {level, row, index(0)}, width);
    };
    Value sum = whereOccupied(*this, occupied, level, zero,
                              [&] { return stateAt(level); });
    sum = reduce(level, sum, [&](Value below, Value partial) {
      return whereOccupied(*this, occupied, below, partial,
                           [&] { return addf(partial, stateAt(below)); });
    });
    storeVector(sum, state, {level, row, index(0)});
  });
  forEach(level,
          [&](Value below) { store(constant(type, 0.0), occupied, {below}); });
  store(constant(type, 1.0), occupied, {level});
}

//===----------------------------------------------------------------------===//
// Vectors: one token
//===----------------------------------------------------------------------===//

/// o + weight · Σ_row q[row] S[level, row], where `update` makes the state of a
/// row from the former one and is stored, or is empty.
Value LogLinear::sweepRows(Value level,
                           function_ref<Value(Value, Value)> update,
                           Value weight, Value o) {
  SmallVector<Value> partial(unrolledRows, zeros(width));
  partial =
      reduce(index(0), padded, unrolledRows, partial,
             [&](Value row, ValueRange carried) -> SmallVector<Value> {
               SmallVector<Value> next;
               for (int64_t i = 0; i < unrolledRows; ++i) {
                 Value at = add(row, index(i));
                 Value s = loadVector(state, {level, at, index(0)}, width);
                 if (update) {
                   s = update(s, at);
                   storeVector(s, state, {level, at, index(0)});
                 }
                 next.push_back(
                     fma(broadcast(load(packed.query, {at})), s, carried[i]));
               }
               return next;
             });
  for (int64_t step = unrolledRows / 2; step > 0; step /= 2)
    for (int64_t i = 0; i < step; ++i)
      partial[i] = addf(partial[i], partial[i + step]);
  return fma(broadcast(weight), partial.front(), o);
}

Value LogLinear::sweepLevel(Value level, Value token, Value decay, Value o) {
  return whereOccupied(*this, occupied, level, o, [&] {
    Value weight = loadAs(scan.getLevels(), {batch, head, token, level});
    if (!isUpdating || !decay)
      return sweepRows(level, nullptr, weight, o);
    return sweepRows(
        level, [&](Value s, Value) { return mulf(s, broadcast(decay)); },
        weight, o);
  });
}

/// Level 0 also takes the token in.
Value LogLinear::sweepOwnLevel(Value token, Value decay, Value v, Value o) {
  Value level = index(0);
  Value weight = loadAs(scan.getLevels(), {batch, head, token, level});
  if (!isUpdating)
    return sweepRows(level, nullptr, weight, o);
  Value isOccupied = compare(arith::CmpFPredicate::UNE, load(occupied, {level}),
                             constant(type, 0.0));
  o = sweepRows(
      level,
      [&](Value s, Value row) {
        if (decay)
          s = mulf(s, broadcast(decay));
        s = select(isOccupied, s, zeros(width));
        return fma(broadcast(load(packed.key, {row})), v, s);
      },
      weight, o);
  store(constant(type, 1.0), occupied, {level});
  return o;
}

void LogLinear::token(Value t, Value group) {
  Value here = position(t);
  Value isLater =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, here, index(0));
  ifThen(isLater, [&] { merge(mergedLevel(here)); });
  Value decay = decayFactor(t);
  packRow(scan.getKey(), headOf(scan.getKey(), head, heads), t, 1.0,
          packed.key);
  Value v = readOperand(
      scan.getValue(), {batch, headOf(scan.getValue(), head, heads), t, column},
      width);
  auto readInto = [&](Value reader) {
    packRow(scan.getQuery(),
            headOf(scan.getQuery(), reader, dim(scan.getOutput(), 1)), t, scale,
            packed.query);
    Value o = sweepOwnLevel(t, decay, v, zeros(width));
    o = reduce(index(1), index(levels), 1, o,
               [&](Value level, ValueRange carried) -> SmallVector<Value> {
                 return {sweepLevel(level, t, decay, carried.front())};
               })
            .front();
    writeOperand(o, scan.getOutput(), {batch, reader, t, column});
  };
  // The first head that reads a state also updates it on the way.
  Value firstReader = mul(head, group);
  isUpdating = true;
  readInto(firstReader);
  isUpdating = false;
  if (getConstantIntValue(group) != 1)
    forEach(index(1), group, 1,
            [&](Value member) { readInto(add(firstReader, member)); });
}

void LogLinear::clear(Value buffer) {
  forEach(dim(buffer, 0),
          [&](Value i) { store(constant(type, 0.0), buffer, {i}); });
}

void LogLinear::emitVectors() {
  heads = dim(scan.getState(), 1);
  rows = dim(scan.getState(), 3);
  padded = roundUp(rows, unrolledRows);
  Value group = div(dim(scan.getOutput(), 1), max(heads, index(1)));
  Value panels = ceilDiv(dim(scan.getState(), 4), width);
  Value tasks = mul(mul(dim(scan.getState(), 0), heads), panels);
  parallel(tasks, [&](Value task) {
    enterHead(div(task, panels));
    column = mul(rem(task, panels), index(width));
    OpFoldResult rowCount = getAsOpFoldResult(padded);
    state = scratch({b.getIndexAttr(levels), rowCount, b.getIndexAttr(width)});
    occupied = scratch({b.getIndexAttr(levels)});
    packed.query = scratch({rowCount});
    packed.key = scratch({rowCount});
    clear(packed.query);
    clear(packed.key);
    loadState();
    forEach(begin, end, 1, [&](Value t) { token(t, group); });
    storeState();
    freeScratch();
  });
}

void mlir::linattn::lowerRecurrence(OpBuilder &b, LogLinearOp op, int64_t width,
                                    bool lanes) {
  LogLinear loops(b, op, width);
  loops.forThreads = lanes;
  if (width == 1)
    loops.emitScalars();
  else
    loops.emitVectors();
}
