//===- NaiveQuadratic.cpp - Attention in scalar loops ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NaiveLoops.h"
#include "Softmax.h"
#include "VectorBuilder.h"
#include "VisibleKeys.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// quadratic
//===----------------------------------------------------------------------===//

namespace {

/// One query row at a time: no more than a row of the output is ever stored.
class NaiveQuadratic : public NaiveOp {
public:
  /// `training`: the op whose scores `op` states and which stores L, or null.
  NaiveQuadratic(OpBuilder &b, QuadraticOp op, SoftmaxOp training = {})
      : NaiveOp(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                op.getQuery(), Scale::of(op), op.getNormalize().has_value()),
        op(op), visible(*this, op, training ? training.getSpans() : Value()) {
    if (training) {
      logSum = training.getLogSum();
      dropout = Dropout::of(training);
    }
  }

  /// A task is a row.
  void emit() {
    parallelRows(op.getOutput(), [&](Value ofBatch, Value ofHead, Value row) {
      batch = ofBatch;
      head = ofHead;
      Value heads = dim(op.getOutput(), 1);
      from.query = headOf(op.getQuery(), head, heads);
      from.key = headOf(op.getKey(), head, heads);
      from.value = headOf(op.getValue(), head, heads);
      VectorBuilder memory(b, loc, type);
      sums = memory.scratch({getAsOpFoldResult(dim(op.getValue(), 3))});
      emitRow(row);
      memory.freeScratch();
    });
  }

private:
  bool isSoftmax() { return op.getWeights() == Weights::Softmax; }

  void emitRow(Value row) {
    i = row;
    keys = visible.span(batch, i);
    shift = queryShift(op.getQuery(), batch, from.query, i);
    Value lowest = constant(type, -std::numeric_limits<double>::infinity());
    Value sink = perHead(op.getSinks());
    // Softmax: the largest score. Stabilised exp: the largest key seen.
    if (isSoftmax())
      best = overKeys(sink ? sink : lowest, [&](Value j, Value top) {
        return maxf(top, masked(j, score(j), lowest));
      });
    else if (needsRunningMax(NaiveOp::op.getFeatureMapKind(),
                             op.getNormalize().has_value()))
      best = overKeys(lowest, [&](Value j, Value top) {
        return maxf(
            top, masked(j, maximumOf(op.getKey(), batch, from.key, j), lowest));
      });
    Value columns = dim(op.getValue(), 3);
    forEach(columns, [&](Value column) { store(zero(), sums, {column}); });
    // Where the sink is −∞ so may be the maximum.
    Value isFinite =
        sink ? compareFloat(arith::CmpFPredicate::OGT, sink, lowest) : Value();
    Value first =
        sink ? select(isFinite, exp(subf(sink, best)), zero()) : zero();
    Value den = overKeys(first, [&](Value j, Value sum) {
      Value w = weight(j), kept = w;
      if (dropout)
        kept = mulf(w, emitKept(b, loc, type, *dropout, batch, head, i, j));
      forEach(columns, [&](Value column) {
        Value v = loadAs(op.getValue(), {batch, from.value, j, column});
        // A masked key adds nothing, not even 0 · NaN.
        Value term = masked(j, mulf(kept, v), zero());
        store(addf(load(sums, {column}), term), sums, {column});
      });
      return addf(sum, w);
    });
    if (logSum)
      store(addf(best, math::LogOp::create(b, loc, den)), logSum,
            {batch, head, i});
    forEach(columns, [&](Value column) {
      store(convert(divide(load(sums, {column}), den), tokenType),
            op.getOutput(), {batch, head, i, column});
    });
  }

  /// Reduces a value over the keys that the query may see.
  Value overKeys(Value initial, function_ref<Value(Value, Value)> body) {
    return reduce(keys.first, keys.end, 1, initial,
                  [&](Value j, ValueRange carried) -> SmallVector<Value> {
                    return {body(j, carried.front())};
                  })
        .front();
  }

  Value compareFloat(arith::CmpFPredicate predicate, Value x, Value y) {
    return arith::CmpFOp::create(b, loc, predicate, x, y);
  }

  Value divide(Value num, Value den) {
    if (!isSoftmax())
      return normalized(op.getNormalize(), num, den);
    // A row without a key to attend has no weights and gives 0.
    Value isEmpty = compareFloat(arith::CmpFPredicate::OEQ, den, zero());
    return arith::DivFOp::create(b, loc, num,
                                 select(isEmpty, constant(type, 1.0), den));
  }

  Value masked(Value j, Value x, Value otherwise) {
    if (Value sees = visible.sees(keys.position, sub(j, keys.first)))
      x = select(sees, x, otherwise);
    return op.getMask() ? select(load(op.getMask(), {batch, j}), x, otherwise)
                        : x;
  }

  /// This head's number of [Ho], or null.
  Value perHead(Value numbers) {
    return numbers ? convert(load(numbers, {head}), type) : Value();
  }

  /// scale · φ(q_i)·φ(k_j)
  Value score(Value j) {
    Value keyShift = best && !isSoftmax() ? best
                     : rowMax ? maximumOf(op.getKey(), batch, from.key, j)
                              : Value();
    Value product =
        scaled(reduce(dim(op.getQuery(), 3), zero(), [&](Value d, Value sum) {
          Value q = feature(op.getQuery(), {batch, from.query, i, d}, shift);
          Value k = feature(op.getKey(), {batch, from.key, j, d}, keyShift);
          return addf(sum, mulf(q, k));
        }));
    return emitAdjustedScore(b, loc, op, product, perHead(op.getSlopes()),
                             keys.position, sub(j, keys.first));
  }

  Value weight(Value j) {
    Value s = score(j);
    if (isSoftmax())
      s = exp(subf(s, best));
    return masked(j, s, zero());
  }

  QuadraticOp op;
  /// [B, H, Tq], or null: receives the log-sum-exp of each row.
  Value logSum;
  std::optional<Dropout> dropout;
  VisibleKeys visible;
  VisibleKeys::Span keys;
  /// The heads that the current one reads.
  struct Heads {
    Value query, key, value;
  };
  Heads from;
  Value batch, head, i, shift, best, sums;
};

} // namespace

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, QuadraticOp op,
                                      bool /*lanes*/) {
  NaiveQuadratic(b, op).emit();
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, SoftmaxOp op) {
  QuadraticOp quadratic = op.createQuadratic(b);
  b.setInsertionPointAfter(quadratic);
  NaiveQuadratic(b, quadratic, op).emit();
  quadratic.erase();
}
