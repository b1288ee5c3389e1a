//===- QuadraticRows.cpp - The quadratic form for a few queries -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A panel of queries fills the vector lanes; one query does not. Here features
// lie across the lanes: a score is a dot product, the output a sum of value
// rows, and keys and values are read where they are, once. This is decoding
// over a cache of keys: the memory that holds the cache is the limit.
//
//===----------------------------------------------------------------------===//

#include "QuadraticBuilder.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class QuadraticRows : public QuadraticBuilder {
public:
  using QuadraticBuilder::QuadraticBuilder;

  void emit();

private:
  void emitRow(Value query);
  void scoreKeys(Value count);
  Value scoreKey(Value j);
  Value isSeen(Value token);
  SmallVector<Value> weighKeys(Value maximum, Value sum);
  void accumulate(Value count, Value correction);

  /// Keys between two corrections of the running maximum.
  static constexpr int64_t blockKeys = 128;

  Value position, firstKey, packedQuery, scores, output;
};

} // namespace

void QuadraticRows::emit() {
  Value queries = dim(op.getQuery(), 2);
  parallel(mul(batchHeads(), queries), [&](Value task) {
    locate(div(task, queries));
    OpFoldResult one = b.getIndexAttr(1);
    Value features = roundUp(dim(op.getQuery(), 3), shape.lanes);
    Value columns = roundUp(dim(op.getValue(), 3), shape.cols);
    packedQuery = scratch({one, getAsOpFoldResult(features)});
    scores = scratch({b.getIndexAttr(blockKeys)});
    output = scratch({getAsOpFoldResult(columns)});
    emitRow(rem(task, queries));
    freeScratch();
  });
}

void QuadraticRows::emitRow(Value query) {
  Value end = visibleEnd(query);
  position = visible.position(query);
  keyShift = headMaximum(end);
  packRow(queryRow(query), packedQuery, index(0));
  forEach(index(0), dim(output, 0), shape.cols,
          [&](Value e) { storeVector(zeros(shape.cols), output, {e}); });

  auto [maximum, sum] = emptyRow();
  SmallVector<Value> row{maximum, sum};
  forEachRange(visible.begin(query), end, [&](Value from, Value to) {
    row =
        reduce(from, to, blockKeys, row, [&](Value start, ValueRange carried) {
          firstKey = start;
          Value count = min(sub(to, start), index(blockKeys));
          scoreKeys(count);
          Value old = carried[0];
          SmallVector<Value> next = weighKeys(old, carried[1]);
          accumulate(count, softmax ? exp(subf(old, next[0])) : Value());
          return next;
        });
  });
  Value inverse = inverseOf(row[1]);
  forEach(index(0), dim(op.getValue(), 3), shape.cols, [&](Value e) {
    writeRow(loadVector(output, {e}, shape.cols), inverse, query, e);
  });
}

/// Scores of one block; entries without a key have weight 0.
void QuadraticRows::scoreKeys(Value count) {
  Value none = constant(type, hiddenScore());
  forEach(count, [&](Value j) {
    Value score = scoreKey(j), token = add(firstKey, j);
    score = emitAdjustedScore(b, loc, op, score, slope, position, token);
    if (Value kept = isSeen(token))
      score = select(kept, score, none);
    store(score, scores, {j});
  });
  forEach(count, index(blockKeys), 1,
          [&](Value j) { store(none, scores, {j}); });
}

/// i1: may the query attend a key of its range? Null if always.
Value QuadraticRows::isSeen(Value token) {
  Value kept = isKept(token);
  if (!visible.isDilated())
    return kept;
  Value sees = visible.sees(position, token);
  return kept ? arith::AndIOp::create(b, loc, kept, sees) : sees;
}

/// scale · φ(q)·φ(k_j), along the features.
Value QuadraticRows::scoreKey(Value j) {
  int64_t lanes = shape.lanes;
  Row key = keyRow(add(firstKey, j));
  Value size = dim(op.getKey(), 3);
  Value dot = reduce(index(0), size, lanes, zeros(lanes),
                     [&](Value d, ValueRange carried) -> SmallVector<Value> {
                       SmallVector<Value> at(key.index);
                       at.push_back(d);
                       Value k = readOperand(op.getKey(), at, lanes);
                       if (key.shift)
                         k = subf(k, splat(key.shift, lanes));
                       k = emitFeatureMap(b, loc, TileBuilder::op, k);
                       Value q = loadVector(packedQuery, {index(0), d}, lanes);
                       // The query's padding is 0, but 0 · φ(padding) need not
                       // be.
                       if (TileBuilder::op.getFeatureMapKind() !=
                           FeatureMapKind::Identity) {
                         Value inside = vector::CreateMaskOp::create(
                             b, loc, VectorType::get(lanes, b.getI1Type()),
                             ValueRange{sub(size, d)});
                         k = select(inside, k, zeros(lanes));
                       }
                       return {fmaVector(q, k, carried.front())};
                     })
                  .front();
  return reduceVector(vector::CombiningKind::ADD, dot);
}

/// Turns scores into weights; returns the new maximum and sum.
SmallVector<Value> QuadraticRows::weighKeys(Value maximum, Value sum) {
  int64_t lanes = shape.lanes;
  auto overScores = [&](Value initial, vector::CombiningKind kind,
                        function_ref<Value(Value, Value)> body) {
    Value total =
        reduce(index(0), index(blockKeys), lanes, initial,
               [&](Value j, ValueRange carried) -> SmallVector<Value> {
                 return {body(j, carried.front())};
               })
            .front();
    return reduceVector(kind, total);
  };
  Value best = maximum;
  if (softmax) {
    Value block =
        overScores(constant(vectorType(lanes), lowestMaximum),
                   vector::CombiningKind::MAXIMUMF, [&](Value j, Value top) {
                     return larger(top, loadVector(scores, {j}, lanes));
                   });
    best = maxf(maximum, block);
  }
  Value added = overScores(zeros(lanes), vector::CombiningKind::ADD,
                           [&](Value j, Value partial) {
                             Value p = loadVector(scores, {j}, lanes);
                             if (softmax) {
                               p = exp(subf(p, splat(best, lanes)));
                               storeVector(p, scores, {j});
                             }
                             return addf(partial, p);
                           });
  if (softmax)
    sum = mulf(sum, exp(subf(maximum, best)));
  return {best, addf(sum, added)};
}

/// o ← c·o + Σ_j p_j v_j, a panel of columns at a time.
void QuadraticRows::accumulate(Value count, Value correction) {
  int64_t cols = shape.cols;
  forEach(index(0), dim(op.getValue(), 3), cols, [&](Value e) {
    Value o = loadVector(output, {e}, cols);
    if (correction)
      o = mulf(o, splat(correction, cols));
    Value total =
        reduce(index(0), count, 1, o,
               [&](Value j, ValueRange carried) -> SmallVector<Value> {
                 Value token = add(firstKey, j);
                 Value v = readOperand(op.getValue(),
                                       {batch, valueHead, token, e}, cols);
                 Value next = fmaVector(splat(load(scores, {j}), cols), v,
                                        carried.front());
                 // A masked value adds nothing, not even 0 · NaN.
                 if (Value kept = isSeen(token))
                   next = select(kept, next, carried.front());
                 return {next};
               })
            .front();
    storeVector(total, output, {e});
  });
}

void mlir::linattn::lowerToQuadraticRows(OpBuilder &b, QuadraticOp op,
                                         TileShape shape) {
  QuadraticRows(b, op, shape).emit();
}
