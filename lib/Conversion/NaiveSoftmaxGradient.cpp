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
        op(op), scores(scores), dropout(Dropout::of(op)),
        visible(*this, scores, op.getSpans()) {}

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
    VisibleKeys::Span keys = visible.span(batch, i);
    forEach(keys.first, keys.end, 1, [&](Value j) {
      ifSeen(keys, j, [&] {
        Pair pair = pairOf(keys, i, j);
        addRow(op.getQueryOutput(), i, scaled(pair.product), op.getKey(), j);
        if (slopes)
          store(subf(load(slopes, {batch, head, i}),
                     mulf(pair.score, emitDistance(b, loc, type, keys.position,
                                                   sub(j, keys.first)))),
                slopes, {batch, head, i});
      });
    });
  }

  void emitKey(Value j) {
    clear(op.getKeyOutput(), j);
    clear(op.getValueOutput(), j);
    forEach(dim(op.getQuery(), 2), [&](Value i) {
      VisibleKeys::Span keys = visible.span(batch, i);
      Value reaches = compare(arith::CmpIPredicate::slt, j, keys.end);
      if (op.getSpans())
        reaches = arith::AndIOp::create(
            b, loc, reaches, compare(arith::CmpIPredicate::sge, j, keys.first));
      ifThen(reaches, [&] {
        ifSeen(keys, j, [&] {
          Pair pair = pairOf(keys, i, j);
          addRow(op.getKeyOutput(), j, scaled(pair.product), op.getQuery(), i);
          addRow(op.getValueOutput(), j, pair.kept, op.getCotangent(), i);
        });
      });
    });
  }

  /// Runs `body` if the query sees a key of its span.
  void ifSeen(const VisibleKeys::Span &keys, Value j,
              function_ref<void()> body) {
    Value sees = visible.sees(keys.position, sub(j, keys.first));
    if (op.getMask()) {
      Value kept = load(op.getMask(), {batch, j});
      sees = sees ? Value(arith::AndIOp::create(b, loc, sees, kept)) : kept;
    }
    sees ? ifThen(sees, body) : body();
  }

  /// A weight after dropout, and the cotangents of its score and of the product
  /// scale · q·k.
  struct Pair {
    Value kept, score, product;
  };
  Pair pairOf(const VisibleKeys::Span &keys, Value i, Value j) {
    Value product = scaled(dot(op.getQuery(), i, op.getKey(), j));
    Value score = emitAdjustedScore(b, loc, scores, product, slope,
                                    keys.position, sub(j, keys.first));
    Value weight = exp(subf(score, load(op.getLogSum(), {batch, head, i})));
    Value ofWeight = dot(op.getCotangent(), i, op.getValue(), j);
    Value kept = weight;
    if (dropout) {
      Value factor = emitKept(b, loc, type, *dropout, batch, head, i, j);
      kept = mulf(weight, factor);
      ofWeight = mulf(ofWeight, factor);
    }
    Value ofScore = mulf(
        weight, subf(ofWeight, load(op.getCorrection(), {batch, head, i})));
    Value factor = emitCapDerivative(b, loc, scores, product);
    return {kept, ofScore, factor ? mulf(ofScore, factor) : ofScore};
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
  std::optional<Dropout> dropout;
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
