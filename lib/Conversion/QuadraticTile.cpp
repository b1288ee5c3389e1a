//===- QuadraticTile.cpp - The quadratic form, block by block -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Queries lie across vector lanes: a panel of `cols` queries is packed
// transposed, so scores need no transposed keys. Per task (batch, head, block
// of query panels) the keys stream past in blocks:
//
//   scores   s[j][:] = Σ_d k[j,d] · qᵀ[d][:]         rows × cols accumulators
//   weights  linear: masked s; softmax: e^(s − m), m the running row maximum
//   output   o[i][:] = c[i]·o[i][:] + Σ_j p[j][i] · v[j][:]
//
// No N×N value exists; softmax rescales by c = e^(m_old − m_new) as it goes
// (Milakov and Gimelshein, 2018; Dao et al., 2022).
//
// Rows of one head lie far apart in memory, so tiles prefetch a few each. At
// the first block of keys those of scores prefetch queries of the next task,
// those of outputs their own rows; at the first panel keys and values of the
// next block.
//
//===----------------------------------------------------------------------===//

#include "QuadraticTile.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void QuadraticTile::emit() {
  keySize = roundUp(dim(op.getQuery(), 3), shape.lanes);
  valueSize = roundUp(dim(op.getValue(), 3), shape.cols);
  Value blocks = ceilDiv(dim(op.getQuery(), 2), queriesOfTask());
  parallel(mul(batchHeads(), blocks), [&](Value task) {
    locate(div(task, blocks));
    setQueries(mul(rem(task, blocks), index(queriesOfTask())));
    emitTask();
  });
}

void QuadraticTile::emitTask() {
  allocateScratch();
  keyShift = headMaximum(range.keyLimit);
  packQueries();
  initialize();
  forEachRange(visible.begin(range.firstQuery), range.keyLimit,
               [&](Value from, Value to) {
                 forEach(from, to, blockKeys(), [&](Value start) {
                   range.firstKey = start;
                   Value count = min(sub(to, start), index(blockKeys()));
                   fetches.keys = compare(arith::CmpIPredicate::slt,
                                          add(start, count), to);
                   packKeys(count);
                   forEach(panelCount(),
                           [&](Value panel) { processPanel(panel, count); });
                 });
               });
  writeOutputs();
  freeTask();
}

/// A panel prefetches at the block of keys where its first query begins.
void QuadraticTile::decidePrefetches(Value panel) {
  Value isFirst = compare(arith::CmpIPredicate::sle, range.firstKey,
                          visible.begin(firstOfPanel(panel)));
  Value nextQuery = add(range.firstQuery, index(queriesOfTask()));
  fetches.outputs = isFirst;
  fetches.queries = both(isFirst, compare(arith::CmpIPredicate::slt, nextQuery,
                                          dim(op.getQuery(), 2)));
}

void QuadraticTile::allocateScratch() {
  OpFoldResult features = getAsOpFoldResult(keySize);
  OpFoldResult columns = getAsOpFoldResult(valueSize);
  auto size = [&](int64_t n) -> OpFoldResult { return b.getIndexAttr(n); };
  OpFoldResult panels = size(panelsPerTask()), cols = size(shape.cols),
               block = size(blockKeys());
  rows = scratch({size(shape.lanes), features});
  transposed = scratch({panels, features, cols});
  keys = scratch({block, features});
  values = scratch({block, columns});
  scores = scratch({block, cols});
  output = scratch({panels, cols, columns});
  sums = scratch({panels, cols});
  if (softmax) {
    maxima = scratch({panels, cols});
    corrections = scratch({cols});
  }
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void QuadraticTile::packQueries() {
  packPanels(keySize, rows, transposed,
             [&](Value i) { return queryRow(add(range.firstQuery, i)); });
}

void QuadraticTile::packKeys(Value count) { packBlock(keys, values, count); }

/// The maxima and sums of a panel before its first key.
void QuadraticTile::clearSums(Value panel) {
  auto [maximum, sum] = emptyRow();
  storeVector(splat(sum, shape.cols), sums, {panel, index(0)});
  if (softmax)
    storeVector(splat(maximum, shape.cols), maxima, {panel, index(0)});
}

void QuadraticTile::initialize() {
  forEach(panelCount(), [&](Value panel) {
    clearSums(panel);
    forEach(index(shape.cols), [&](Value i) {
      forEach(index(0), valueSize, shape.cols, [&](Value e) {
        storeVector(zeros(shape.cols), output, {panel, i, e});
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// The three steps
//===----------------------------------------------------------------------===//

void QuadraticTile::processPanel(Value panel, Value count) {
  auto run = [&] {
    decidePrefetches(panel);
    scorePanel(panel, count);
    if (Value hides = mayHide(panel, count))
      ifThen(hides, [&] { hidePanel(panel, count); });
    weighPanel(panel, count);
    accumulatePanel(panel, count);
  };
  if (Value sees = seesBlock(panel, count))
    ifThen(sees, run);
  else
    run();
}

/// i1: may a query of the panel see a key of the block? Null if always.
Value QuadraticTile::seesBlock(Value panel, Value count) {
  bool isWindow = visible.reach() && !visible.globals();
  if (!op.getCausal() && !isWindow)
    return {};
  Value first = firstOfPanel(panel);
  Value last = add(first, index(shape.cols - 1));
  Value sees =
      compare(arith::CmpIPredicate::sgt, visibleEnd(last), range.firstKey);
  if (!isWindow)
    return sees;
  Value end = add(range.firstKey, count);
  return both(sees,
              compare(arith::CmpIPredicate::slt, visible.begin(first), end));
}

/// s[j][:] = Σ_d k[j,d] · qᵀ[d][:], `rows` keys at a time.
void QuadraticTile::scorePanel(Value panel, Value count) {
  forEach(index(0), count, shape.rows, [&](Value j) {
    ifThen(fetches.queries, [&] { prefetchQueries(panel, j); });
    ifThen(both(fetches.keys, isZero(panel)),
           [&] { prefetchNextBlock(op.getKey(), keyHead, j, shape.rows); });
    Rows sums = dotPanel(keys, transposed, keySize, panel, j);
    Value at = adjustsScores(op) ? positions(panel) : Value();
    for (int64_t i = 0; i < shape.rows; ++i) {
      Value row = add(j, index(i));
      Value score = at ? emitAdjustedScore(b, loc, op, sums[i], slope, at,
                                           add(range.firstKey, row))
                       : sums[i];
      storeVector(score, scores, {row, index(0)});
    }
  });
}

/// Prefetches the share of the tile of scores that begins at key j.
void QuadraticTile::prefetchQueries(Value panel, Value j) {
  std::optional<int64_t> known = getConstantIntValue(dim(op.getKey(), 2));
  int64_t keys = std::min(known.value_or(blockKeys()), blockKeys());
  int64_t share = llvm::divideCeil(
      shape.cols, llvm::divideCeil(std::max<int64_t>(keys, 1), shape.rows));
  Value ahead = add(mul(add(panel, index(panelsPerTask())), index(shape.cols)),
                    mul(div(j, index(shape.rows)), index(share)));
  prefetchTokens(op.getQuery(), {batch, queryHead},
                 add(range.firstQuery, ahead), share, index(0),
                 dim(op.getQuery(), 3));
}

/// Prefetches the share of the tile of outputs at query i and a column: of the
/// next block's values, and the outputs themselves.
void QuadraticTile::prefetchWhileAccumulating(Value panel, Value i,
                                              Value column) {
  int64_t share = llvm::divideCeil(blockKeys() * shape.rows, shape.cols);
  ifThen(both(fetches.keys, both(isZero(panel), isZero(column))), [&] {
    prefetchNextBlock(op.getValue(), valueHead,
                      mul(div(i, index(shape.rows)), index(share)), share);
  });
  ifThen(fetches.outputs, [&] {
    Value query = add(mul(panel, index(shape.cols)), i);
    prefetchTokens(op.getOutput(), {batch, head}, add(range.firstQuery, query),
                   shape.rows, column, index(shape.cols), /*isWritten=*/true);
  });
}

/// Prefetches `count` rows of the next block, from its row j on.
void QuadraticTile::prefetchNextBlock(Value operand, Value head, Value j,
                                      int64_t count) {
  prefetchTokens(operand, {batch, head},
                 add(add(range.firstKey, index(blockKeys())), j), count,
                 index(0), dim(operand, 3));
}

/// Prefetches columns of an operand [B, H, T, D] from a token on; past the last
/// token that one again.
void QuadraticTile::prefetchTokens(Value operand, SmallVector<Value> place,
                                   Value first, int64_t count, Value column,
                                   Value width, bool isWritten) {
  Value last = sub(dim(operand, 2), index(1));
  place.emplace_back();
  forEach(index(count), [&](Value i) {
    place.back() = min(add(first, i), last);
    prefetchRow(operand, place, column, width, isWritten);
  });
}

/// Gives the keys that a query does not see a score without weight.
void QuadraticTile::hidePanel(Value panel, Value count) {
  forEach(count, [&](Value j) {
    Value s = loadVector(scores, {j, index(0)}, shape.cols);
    s = maskScores(s, panel, j, hiddenScore());
    storeVector(s, scores, {j, index(0)});
  });
}

void QuadraticTile::weighPanel(Value panel, Value count) {
  int64_t cols = shape.cols;
  Value oldSum = loadVector(sums, {panel, index(0)}, cols);
  if (!softmax) {
    Value total =
        reduce(index(0), count, 1, oldSum,
               [&](Value j, ValueRange carried) -> SmallVector<Value> {
                 return {addf(carried.front(),
                              loadVector(scores, {j, index(0)}, cols))};
               })
            .front();
    storeVector(total, sums, {panel, index(0)});
    return;
  }
  Value oldMax = loadVector(maxima, {panel, index(0)}, cols);
  Value newMax =
      reduce(index(0), count, 1, oldMax,
             [&](Value j, ValueRange carried) -> SmallVector<Value> {
               return {larger(carried.front(),
                              loadVector(scores, {j, index(0)}, cols))};
             })
          .front();
  Value correction = exp(subf(oldMax, newMax));
  Value total =
      reduce(index(0), count, 1, mulf(oldSum, correction),
             [&](Value j, ValueRange carried) -> SmallVector<Value> {
               Value p =
                   exp(subf(loadVector(scores, {j, index(0)}, cols), newMax));
               Value kept = keptWeights(panel, j);
               storeVector(kept ? mulf(p, kept) : p, scores, {j, index(0)});
               return {addf(carried.front(), p)};
             })
          .front();
  storeVector(newMax, maxima, {panel, index(0)});
  storeVector(correction, corrections, {index(0)});
  storeVector(total, sums, {panel, index(0)});
}

/// The sum over the keys of this block for queries [i, i + rows). A key that a
/// query may not see is left out rather than weighed by 0: its value may be
/// NaN.
SmallVector<Value> QuadraticTile::accumulateRows(Value panel, Value i,
                                                 Value column, Value count,
                                                 ArrayRef<Value> initial) {
  int64_t cols = shape.cols;
  SmallVector<Value> rows, ends;
  auto isSeen = [&](int64_t r, Value j) {
    Value sees = compare(arith::CmpIPredicate::slt, j, ends[r]);
    Value ofPattern =
        visible.isLimited()
            ? visible.sees(visible.position(rows[r]), add(range.firstKey, j))
            : Value();
    return ofPattern ? arith::AndIOp::create(b, loc, sees, ofPattern) : sees;
  };
  auto weight = [&](int64_t r, Value j) {
    return load(scores, {j, add(i, index(r))});
  };
  auto valueRow = [&](Value j) {
    return loadVector(values, {j, column}, cols);
  };
  auto addSeen = [&](Value from, Value to, ValueRange sums) {
    return reduce(from, to, 1, sums, [&](Value j, ValueRange carriedIn) {
      SmallVector<Value> carried(carriedIn);
      Value v = valueRow(j);
      for (int64_t r = 0; r < shape.rows; ++r) {
        Value sum = fmaVector(splat(weight(r, j), cols), v, carried[r]);
        carried[r] = select(isSeen(r, j), sum, carried[r]);
      }
      return carried;
    });
  };
  auto addAll = [&](Value from, Value to, ArrayRef<Value> sums) {
    Value rest = endOfSteps(from, to);
    Rows whole = accumulate(to_vector(sums), from, rest, weight, valueRow);
    return accumulateRest(whole, rest, to, weight, valueRow);
  };
  if (!op.getCausal() && !visible.isLimited())
    return addAll(index(0), count, initial);
  Value query = add(range.firstQuery, add(mul(panel, index(cols)), i));
  auto inBlock = [&](Value key) {
    return max(min(sub(key, range.firstKey), count), index(0));
  };
  for (int64_t r = 0; r < shape.rows; ++r) {
    rows.push_back(add(query, index(r)));
    ends.push_back(inBlock(visibleEnd(rows.back())));
  }
  Value first = ends.front(), last = ends.front();
  if (op.getCausal()) {
    last = ends.back();
  } else {
    for (Value end : ends) {
      first = min(first, end);
      last = max(last, end);
    }
  }
  // Keys that all of the queries see, between those that only some do.
  SmallVector<Value> sums(initial);
  Value all = index(0);
  if (visible.isDilated())
    return addSeen(all, last, sums);
  if (visible.reach()) {
    all = min(inBlock(visible.begin(rows.back())), last);
    Value begin =
        visible.globals() ? index(0) : inBlock(visible.begin(rows.front()));
    sums = addSeen(begin, all, sums);
    first = max(first, all);
  }
  sums = addAll(all, first, sums);
  return addSeen(first, last, sums);
}

/// o[i][:] = c[i]·o[i][:] + Σ_j p[j][i] · v[j][:], `rows` queries at a time.
void QuadraticTile::accumulatePanel(Value panel, Value count) {
  int64_t cols = shape.cols;
  forEach(index(0), valueSize, cols, [&](Value column) {
    forEach(index(0), index(cols), shape.rows, [&](Value i) {
      prefetchWhileAccumulating(panel, i, column);
      SmallVector<Value> initial;
      for (int64_t r = 0; r < shape.rows; ++r) {
        Value query = add(i, index(r));
        Value o = loadVector(output, {panel, query, column}, cols);
        if (softmax)
          o = mulf(o, splat(load(corrections, query), cols));
        initial.push_back(o);
      }
      SmallVector<Value> total =
          accumulateRows(panel, i, column, count, initial);
      for (int64_t r = 0; r < shape.rows; ++r)
        storeVector(total[r], output, {panel, add(i, index(r)), column});
    });
  });
}

Value QuadraticTile::finishRow(Value panel, Value lane, Value query) {
  Value sum = load(sums, {panel, lane});
  if (logSum)
    store(addf(load(maxima, {panel, lane}), math::LogOp::create(b, loc, sum)),
          logSum, {batch, head, query});
  return inverseOf(sum);
}

void QuadraticTile::writeOutputs() {
  forEach(range.queryCount, [&](Value i) {
    Value panel = div(i, index(shape.cols)), lane = rem(i, index(shape.cols));
    Value inverse = finishRow(panel, lane, add(range.firstQuery, i));
    forEach(index(0), dim(op.getValue(), 3), shape.cols, [&](Value column) {
      Value o = loadVector(output, {panel, lane, column}, shape.cols);
      writeRow(o, inverse, add(range.firstQuery, i), column);
    });
  });
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

StringRef mlir::linattn::whyNoQuadraticTile(QuadraticOp op) {
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  if ((op.getCausal() || op.getPattern()) &&
      needsRunningMax(mapped.getFeatureMapKind(),
                      op.getNormalize().has_value()))
    return "the exp map under a normalizer needs a maximum per query";
  return {};
}

void mlir::linattn::lowerToQuadraticTile(OpBuilder &b, QuadraticOp op,
                                         TileShape shape) {
  QuadraticTile(b, op, shape).emit();
}

void mlir::linattn::lowerToQuadraticTile(OpBuilder &b, SoftmaxOp op,
                                         TileShape shape) {
  QuadraticOp quadratic = op.createQuadratic(b);
  b.setInsertionPointAfter(quadratic);
  QuadraticTile(b, quadratic, shape, op.getLogSum(), Dropout::of(op)).emit();
  quadratic.erase();
}
