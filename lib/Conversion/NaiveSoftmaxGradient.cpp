//===- NaiveSoftmaxGradient.cpp - Its backward pass in scalar loops -------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NaiveLoops.h"
#include "Softmax.h"
#include "VisibleKeys.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Each query sums over keys, then each key over queries.
class NaiveSoftmaxGradient : public NaiveOp {
public:
  NaiveSoftmaxGradient(OpBuilder &b, SoftmaxGradientOp op, QuadraticOp scores)
      : NaiveOp(b, cast<FeatureMappedOpInterface>(scores.getOperation()),
                op.getQuery(), Scale::of(op), /*stabilised=*/false),
        op(op), scores(scores), visible(*this, scores) {}

  void emit() {
    parallelRows(op.getQueryOutput(),
                 [&](Value ofBatch, Value ofHead, Value i) {
                   locate(ofBatch, ofHead);
                   emitQuery(i);
                 });
    parallelRows(op.getKeyOutput(), [&](Value ofBatch, Value ofHead, Value j) {
      locate(ofBatch, ofHead);
      emitKey(j);
    });
  }

private:
  void locate(Value ofBatch, Value ofHead) {
    batch = ofBatch;
    head = ofHead;
    slope = op.getSlopes() ? load(op.getSlopes(), {head}) : Value();
    if (slope)
      slope = convert(slope, type);
  }

  void emitQuery(Value i) {
    clear(op.getQueryOutput(), i);
    Value slopes = op.getSlopeOutput();
    if (slopes)
      store(zero(), slopes, {batch, head, i});
    forEach(visible.end(batch, i), [&](Value j) {
      ifSeen(i, j, [&] {
        Pair pair = pairOf(i, j);
        addRow(op.getQueryOutput(), i, scaled(pair.product), op.getKey(), j);
        if (slopes)
          store(subf(load(slopes, {batch, head, i}),
                     mulf(pair.score,
                          emitDistance(b, loc, type, visible.position(i), j))),
                slopes, {batch, head, i});
      });
    });
  }

  void emitKey(Value j) {
    clear(op.getKeyOutput(), j);
    clear(op.getValueOutput(), j);
    forEach(dim(op.getQuery(), 2), [&](Value i) {
      Value reaches =
          compare(arith::CmpIPredicate::slt, j, visible.end(batch, i));
      ifThen(reaches, [&] {
        ifSeen(i, j, [&] {
          Pair pair = pairOf(i, j);
          addRow(op.getKeyOutput(), j, scaled(pair.product), op.getQuery(), i);
          addRow(op.getValueOutput(), j, pair.weight, op.getCotangent(), i);
        });
      });
    });
  }

  /// Runs `body` if the query sees a key that is not behind its last one.
  void ifSeen(Value i, Value j, function_ref<void()> body) {
    Value sees = visible.sees(visible.position(i), j);
    if (op.getMask()) {
      Value kept = load(op.getMask(), {batch, j});
      sees = sees ? Value(arith::AndIOp::create(b, loc, sees, kept)) : kept;
    }
    sees ? ifThen(sees, body) : body();
  }

  /// A weight, and the cotangents of its score and of the product scale · q·k.
  struct Pair {
    Value weight, score, product;
  };
  Pair pairOf(Value i, Value j) {
    Value product = scaled(dot(op.getQuery(), i, op.getKey(), j));
    Value score = emitAdjustedScore(b, loc, scores, product, slope,
                                    visible.position(i), j);
    Value weight = exp(subf(score, load(op.getLogSum(), {batch, head, i})));
    Value ofWeight = dot(op.getCotangent(), i, op.getValue(), j);
    Value ofScore = mulf(
        weight, subf(ofWeight, load(op.getCorrection(), {batch, head, i})));
    Value factor = emitCapDerivative(b, loc, scores, product);
    return {weight, ofScore, factor ? mulf(ofScore, factor) : ofScore};
  }

  Value dot(Value x, Value i, Value y, Value j) {
    return reduce(dim(x, 3), zero(), [&](Value d, Value sum) {
      return addf(sum, mulf(load(x, {batch, head, i, d}),
                            load(y, {batch, head, j, d})));
    });
  }

  void clear(Value rows, Value t) {
    forEach(dim(rows, 3),
            [&](Value d) { store(zero(), rows, {batch, head, t, d}); });
  }

  /// sums_t += factor · rows_s
  void addRow(Value sums, Value t, Value factor, Value rows, Value s) {
    forEach(dim(sums, 3), [&](Value d) {
      Value term = mulf(factor, load(rows, {batch, head, s, d}));
      store(addf(load(sums, {batch, head, t, d}), term), sums,
            {batch, head, t, d});
    });
  }

  SoftmaxGradientOp op;
  QuadraticOp scores;
  VisibleKeys visible;
  Value batch, head, slope;
};

} // namespace

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, SoftmaxGradientOp op) {
  QuadraticOp scores = op.createQuadratic(b);
  b.setInsertionPointAfter(scores);
  NaiveSoftmaxGradient(b, op, scores).emit();
  scores.erase();
}
