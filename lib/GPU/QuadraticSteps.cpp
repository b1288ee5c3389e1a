//===- QuadraticSteps.cpp - Attention by tiles: what a tile computes ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuadraticKernel.h"
#include "linattn/Dialect/FeatureMaps.h"
#include <limits>

using namespace mlir;
using namespace mlir::linattn;

/// O and l of zeros; m is finite, so that c (m − m') never is the difference of
/// two infinities, and c · m does not overflow.
QuadraticKernel::Values QuadraticKernel::initialValues() {
  Values values(sumAt(rowTiles(), 0), k.f32(0));
  double lowest =
      -std::numeric_limits<float>::max() / std::max(1.0, exponentFactor());
  for (int64_t r = 0; r < rowTiles(); ++r)
    for (int64_t half = 0; half < 2; ++half)
      values[maximumAt(r, half)] = k.f32(lowest);
  return values;
}

/// c += a bᵀ. Long sums of f32 do not stay in the tensor cores.
void QuadraticKernel::addProduct(MutableArrayRef<Value> c, const Summands &a,
                                 const Summands &b, int64_t terms) {
  auto add = isWide() ? linattn::addProduct : accumulate;
  add(k, summandType(), c, a, b, terms, /*halves=*/2);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// 16 channels of the warp's queries, a fragment for each tile of rows.
SmallVector<Summands> QuadraticKernel::loadQueries(LanePointer &tile,
                                                   int64_t step) {
  SmallVector<Summands> fragments;
  for (int64_t r = 0; r < rowTiles(); ++r)
    fragments.push_back(loadKeys(tile, r, step));
  return fragments;
}

/// 16 rows of a tile of queries or keys × 16 channels.
Summands QuadraticKernel::loadKeys(LanePointer &tile, int64_t n, int64_t step) {
  if (!isWide())
    return {Values(k.loadMatrices(tile.at(16 * n, 2 * step), false))};
  return split(k, summandType(), loadPairs(k, tile, 16 * n, 16 * step),
               tokenSummands());
}

/// 16 columns of values × 16 tokens.
Summands QuadraticKernel::loadValues(LanePointer &tile, int64_t step,
                                     int64_t n) {
  if (!isWide())
    return {Values(k.loadMatrices(tile.at(16 * step, 2 * n), true))};
  return split(k, summandType(), loadTransposed(k, tile, 16 * step, 16 * n),
               tokenSummands());
}

/// The products of 16 channels.
void QuadraticKernel::addScores(MutableArrayRef<Value> x,
                                ArrayRef<Summands> queries, LanePointer &tile,
                                int64_t step) {
  for (int64_t n = 0; n < keys() / 16; ++n) {
    Summands b = loadKeys(tile, n, step);
    for (int64_t r = 0; r < rowTiles(); ++r)
      addProduct(x.slice(scoreAt(r, 2 * n), 8), queries[r], b, tokenSummands());
  }
}

QuadraticKernel::Values QuadraticKernel::scoresOfWarp(Value base) {
  Values x(scoreAt(rowTiles(), 0), k.f32(0));
  auto queriesAt = [&](Value place) {
    return LanePointer(k, queryTile(), here.shared, place);
  };
  auto keysAt = [&](Value place) {
    return LanePointer(k, keyTile(), base, place);
  };
  if (isWide()) // As a loop, for the registers.
    return k.loop(k.i32(keySteps()), x, [&](Value step, ValueRange sums) {
      Values next(sums);
      Value unit = k.mul(step, 4), row = k.add(lane.warpRow, lane.row);
      LanePointer queries =
          queriesAt(pairOffset(k, queryTile(), row, unit, lane.pair));
      LanePointer keys =
          keysAt(pairOffset(k, keyTile(), lane.row, unit, lane.pair));
      addScores(next, loadQueries(queries, 0), keys, 0);
      return next;
    });
  LanePointer queries = queriesAt(lane.query), keys = keysAt(lane.key);
  for (int64_t step = 0; step < keySteps(); ++step)
    addScores(x,
              holdsQueries() ? heldQueries[step] : loadQueries(queries, step),
              keys, step);
  return x;
}

QuadraticKernel::Values QuadraticKernel::scoresOfWarpgroup(Value base) {
  Value group = k.div(here.thread, 32 * warpgroupWarps);
  Value mine =
      k.offset(here.shared, k.mul(group, warpgroupRows * queryTile().pitch()));
  WarpgroupOperand rows(k, queryTile(), mine, /*byRows=*/false);
  WarpgroupOperand columns(k, keyTile(), base, /*byRows=*/false);
  WarpgroupProducts products(k, type());
  Values x;
  products.begin();
  for (int64_t step = 0; step < keySteps(); ++step)
    products.multiply(x, keys(), rows.at(step), columns, step);
  products.commit();
  products.await(x);
  return x;
}

QuadraticKernel::Values QuadraticKernel::scores(Value base) {
  Values x = usesWarpgroups() ? scoresOfWarpgroup(base) : scoresOfWarp(base);
  if (scalesScores())
    for (Value &score : x)
      score = k.mulf(score, k.f32(factor()));
  return x;
}

/// Keys that a query does not see weigh nothing: e^−∞, or 0 by itself.
QuadraticKernel::Values QuadraticKernel::maskScores(Value number,
                                                    ValueRange x) {
  Value none =
      k.f32(isSoftmax() ? -std::numeric_limits<double>::infinity() : 0.0);
  // Few tiles need a mask; its values are computed here so that they take no
  // registers in the other tiles.
  Value mine = k.keepInLoop(lane.number);
  Value row = k.add(k.add(here.firstQuery, lane.warpRow), k.shr(mine, 2));
  Value first = k.add(k.mul(number, keys()), k.mul(k.band(mine, 3), 2));
  Values limits;
  for (int64_t i = 0; i < 2 * rowTiles(); ++i)
    limits.push_back(k.sub(limitOf(k.add(row, 8 * i)), first));
  Values masked(x);
  for (int64_t n = 0; n < keys() / 8; ++n)
    for (int64_t i = 0; i < 2; ++i) {
      Value given;
      if (here.mask) {
        Value column = k.add(first, 8 * n + i);
        column = k.select(k.less(column, here.keyCount), column, k.i32(0));
        given = k.loadFlag(here.mask.at(k, {here.batch, column}));
      }
      for (int64_t r = 0; r < rowTiles(); ++r)
        for (int64_t half = 0; half < 2; ++half) {
          Value sees = k.greaterSigned(limits[2 * r + half], 8 * n + i);
          Value &score = masked[scoreAt(r, n) + 2 * half + i];
          score = k.select(k.both(sees, given), score, none);
        }
    }
  return masked;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Scores become weights of one row, its maximum and sum go on, and its output
/// is brought to the new maximum.
void QuadraticKernel::softmax(MutableArrayRef<Value> x,
                              MutableArrayRef<Value> carried, int64_t r,
                              int64_t half) {
  Values row;
  for (int64_t n = 0; n < keys() / 8; ++n)
    for (int64_t i = 0; i < 2; ++i)
      row.push_back(x[scoreAt(r, n) + 2 * half + i]);
  Value maximum = row.front();
  for (Value score : llvm::drop_begin(row))
    maximum = k.maxf(maximum, score);
  for (int64_t other : {1, 2})
    maximum = k.maxf(maximum, k.shuffleXor(maximum, other));
  Value &m = carried[maximumAt(r, half)], &l = carried[sumAt(r, half)];
  maximum = k.maxf(maximum, m);
  Value c = k.f32(exponentFactor()), minus = k.f32(-exponentFactor());
  Value old = k.exp2Approximate(k.mulf(k.subf(m, maximum), c));
  Value shift = k.mulf(maximum, minus), sum;
  for (Value &score : row) {
    // Of f32 the difference comes first: c · m would err by as much as it is
    // large.
    Value exponent =
        isWide() ? k.mulf(k.subf(score, maximum), c) : k.fma(score, c, shift);
    score = k.exp2Approximate(exponent);
    sum = sum ? k.addf(sum, score) : score;
  }
  m = maximum;
  l = k.fma(l, old, sum);
  for (int64_t n = 0; n < keys() / 8; ++n)
    for (int64_t i = 0; i < 2; ++i)
      x[scoreAt(r, n) + 2 * half + i] = row[2 * n + i];
  for (int64_t n = 0; n < paddedValue() / 8; ++n)
    for (int64_t i = 0; i < 2; ++i) {
      Value &o = carried[outputAt(r, n) + 2 * half + i];
      o = k.mulf(o, old);
    }
}

void QuadraticKernel::weigh(MutableArrayRef<Value> x,
                            MutableArrayRef<Value> carried) {
  for (int64_t r = 0; r < rowTiles(); ++r)
    for (int64_t half = 0; half < 2; ++half) {
      if (isSoftmax()) {
        softmax(x, carried, r, half);
        continue;
      }
      if (!op.getNormalize())
        continue;
      Value &l = carried[sumAt(r, half)];
      for (int64_t n = 0; n < keys() / 8; ++n)
        for (int64_t i = 0; i < 2; ++i)
          l = k.addf(l, x[scoreAt(r, n) + 2 * half + i]);
    }
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Weights of 16 keys for 16 rows: an accumulator is an operand's fragment, but
/// for its width.
Summands QuadraticKernel::splitWeights(ValueRange p, int64_t r, int64_t step) {
  return split(k, summandType(), p.slice(scoreAt(r, 2 * step), 8),
               weightSummands());
}

/// o += p V.
void QuadraticKernel::readValues(Value base, ValueRange p,
                                 MutableArrayRef<Value> o) {
  Value first = k.offset(base, keyTile().bytes());
  if (usesWarpgroups())
    return readValuesOfWarpgroup(first, p, o);
  // Of f32 there are more addresses than registers.
  Value place = isWide() ? k.keepInLoop(lane.value) : lane.value;
  LanePointer values(k, valueTile(), first, place);
  for (int64_t step = 0; step < keys() / 16; ++step) {
    SmallVector<Summands> a;
    for (int64_t r = 0; r < rowTiles(); ++r)
      a.push_back(splitWeights(p, r, step));
    for (int64_t n = 0; n < paddedValue() / 16; ++n) {
      Summands b = loadValues(values, step, n);
      for (int64_t r = 0; r < rowTiles(); ++r)
        addProduct(o.slice(outputAt(r, 2 * n), 8), a[r], b, weightSummands());
    }
  }
}

void QuadraticKernel::readValuesOfWarpgroup(Value base, ValueRange p,
                                            MutableArrayRef<Value> o) {
  WarpgroupOperand values(k, valueTile(), base, /*byRows=*/true);
  WarpgroupProducts products(k, type());
  SmallVector<Summands> weights;
  for (int64_t step = 0; step < keys() / 16; ++step)
    weights.push_back(splitWeights(p, 0, step));
  Values sums(o);
  products.begin();
  for (auto [step, summands] : llvm::enumerate(weights))
    for (const auto &summand : summands)
      products.multiply(sums, paddedValue(), summand, values, step);
  products.commit();
  products.await(sums);
  llvm::copy(sums, o.begin());
}

QuadraticKernel::Values QuadraticKernel::tile(Value number, Value base,
                                              ValueRange carried) {
  Values next(carried), x = scores(base);
  // Only the last tiles hold keys that not every row sees.
  Value end = k.mul(k.add(number, 1), keys());
  Value isCut = here.mask ? Value() : k.greaterSigned(end, here.warpLimit);
  if (!seesWholeTiles())
    x = k.ifElse(isCut, [&] { return maskScores(number, x); }, ValueRange(x));
  weigh(x, next);
  readValues(base, x,
             MutableArrayRef(next).take_front(outputAt(rowTiles(), 0)));
  return next;
}

/// Divides the outputs of one row, every other pair of `o`, as the op says.
void QuadraticKernel::scaleOutput(MutableArrayRef<Value> o, Value sum) {
  NormalizeAttr normalize = op.getNormalizeAttr();
  if (isSoftmax()) // Without any key the sum is 0, and so is o.
    normalize =
        NormalizeAttr::get(op.getContext(), k.b.getF64FloatAttr(0), {}, {}, {});
  if (!normalize)
    return;
  for (int64_t other : {1, 2})
    sum = k.addf(sum, k.shuffleXor(sum, other));
  Value inverse = emitInverseDenominator(k.b, k.loc, normalize, type(), sum);
  for (size_t i = 0; i < o.size(); ++i)
    if (i % 4 < 2)
      o[i] = emitClamp(k.b, k.loc, normalize, k.mulf(o[i], inverse));
}

void QuadraticKernel::writeOutput(const Rows &rows, ValueRange carried) {
  Values o(carried.take_front(outputAt(rowTiles(), 0)));
  for (int64_t r = 0; r < rowTiles(); ++r)
    for (int64_t half = 0; half < 2; ++half)
      scaleOutput(MutableArrayRef(o).slice(outputAt(r, 0) + 2 * half,
                                           outputAt(1, 0) - 2 * half),
                  carried[sumAt(r, half)]);
  TileTarget target{rows.base,
                    rows.stride,
                    valueSize(),
                    k.sub(here.queryCount, here.firstQuery),
                    granuleOf(valueSize(), type()),
                    Value()};
  if (isWide()) {
    for (int64_t r = 0; r < rowTiles(); ++r)
      storePairs(k, ValueRange(o).slice(outputAt(r, 0), outputAt(1, 0)),
                 k.add(lane.warpRow, 16 * r), lane.row, lane.pair, target);
    return;
  }
  k.barrier(); // All have read their queries.
  LanePointer pointer(k, outputTile(), here.shared, lane.output);
  for (int64_t r = 0; r < rowTiles(); ++r)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t n = 0; n < paddedValue() / 8; ++n) {
        ValueRange two = ValueRange(o).slice(outputAt(r, n) + 2 * half, 2);
        k.store(k.pack(type(), two[0], two[1]),
                pointer.at(16 * r + 8 * half, n), 4);
      }
  k.warpBarrier();
  storeTileRows(k, outputTile(), here.shared, lane.number, lane.warpRow,
                warpRows(), target);
}
