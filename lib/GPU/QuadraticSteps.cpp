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
  Values values(sumAt(rowTiles(), 0), k().f32(0));
  double lowest =
      -std::numeric_limits<float>::max() / std::max(1.0, exponentFactor());
  for (int64_t r = 0; r < rowTiles(); ++r)
    for (int64_t half = 0; half < 2; ++half)
      values[maximumAt(r, half)] = k().f32(lowest);
  return values;
}

void QuadraticKernel::multiplyInto(MutableArrayRef<Value> c, ValueRange a,
                                   ValueRange b) {
  SmallVector<Value, 4> product = k().multiply(type, a, b, ValueRange(c));
  llvm::copy(product, c.begin());
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// 16 channels of the warp's queries, a fragment for each tile of rows.
QuadraticKernel::Values QuadraticKernel::loadQueries(int64_t step) {
  LanePointer queries(k(), queryTile(), shared, queryPlace);
  Values fragments;
  for (int64_t r = 0; r < rowTiles(); ++r)
    fragments.append(
        k().loadMatrices(queries.at(16 * r, 2 * step), /*transposed=*/false));
  return fragments;
}

QuadraticKernel::Values QuadraticKernel::scoresOfWarp(Value base) {
  Values x(scoreAt(rowTiles(), 0), k().f32(0));
  LanePointer keyTiles(k(), keyTile(), base, keyPlace);
  for (int64_t step = 0; step < paddedKey() / 16; ++step) {
    Values a = holdsQueries() ? heldQueries[step] : loadQueries(step);
    for (int64_t n = 0; n < keys() / 16; ++n) {
      auto b = k().loadMatrices(keyTiles.at(16 * n, 2 * step), false);
      for (int64_t r = 0; r < rowTiles(); ++r)
        for (int64_t half = 0; half < 2; ++half)
          multiplyInto(MutableArrayRef(x).slice(scoreAt(r, 2 * n + half), 4),
                       ValueRange(a).slice(4 * r, 4),
                       ValueRange(b).slice(2 * half, 2));
    }
  }
  return x;
}

QuadraticKernel::Values QuadraticKernel::scoresOfWarpgroup(Value base) {
  Value group = k().div(thread, 32 * warpgroupWarps);
  Value mine =
      k().offset(shared, k().mul(group, warpgroupRows * queryTile().pitch()));
  WarpgroupOperand rows(k(), queryTile(), mine, /*byRows=*/false);
  WarpgroupOperand columns(k(), keyTile(), base, /*byRows=*/false);
  WarpgroupProducts products(k(), type);
  Values x;
  products.begin();
  for (int64_t step = 0; step < paddedKey() / 16; ++step)
    products.multiply(x, keys(), rows.at(step), columns, step);
  products.await(x);
  return x;
}

QuadraticKernel::Values QuadraticKernel::scores(Value base) {
  Values x = usesWarpgroups() ? scoresOfWarpgroup(base) : scoresOfWarp(base);
  if (scalesScores())
    for (Value &score : x)
      score = k().mulf(score, k().f32(factor));
  return x;
}

/// Keys that a query does not see weigh nothing: e^−∞, or 0 by itself.
QuadraticKernel::Values QuadraticKernel::maskScores(Value number,
                                                    ValueRange x) {
  Value none =
      k().f32(isSoftmax() ? -std::numeric_limits<double>::infinity() : 0.0);
  // Few tiles are masked: what only they need fills no registers of the others.
  Value mine = k().keepInLoop(lane);
  Value row = k().add(k().add(firstQuery, warpRow), k().shr(mine, 2));
  Value first = k().add(k().mul(number, keys()), k().mul(k().band(mine, 3), 2));
  Values limits;
  for (int64_t i = 0; i < 2 * rowTiles(); ++i)
    limits.push_back(k().sub(limitOf(k().add(row, 8 * i)), first));
  Values masked(x);
  for (int64_t n = 0; n < keys() / 8; ++n)
    for (int64_t i = 0; i < 2; ++i) {
      Value given;
      if (maskView) {
        Value column = k().add(first, 8 * n + i);
        column = k().select(k().less(column, keyCount), column, k().i32(0));
        Value byte =
            k().load(k().b.getI8Type(), maskView.at(k(), {batch, column}), 1);
        given = arith::CmpIOp::create(
            k().b, k().loc, arith::CmpIPredicate::ne, byte,
            arith::ConstantIntOp::create(k().b, k().loc, 0, 8));
      }
      for (int64_t r = 0; r < rowTiles(); ++r)
        for (int64_t half = 0; half < 2; ++half) {
          Value sees = k().greaterSigned(limits[2 * r + half], 8 * n + i);
          Value &score = masked[scoreAt(r, n) + 2 * half + i];
          score = k().select(k().both(sees, given), score, none);
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
    maximum = k().maxf(maximum, score);
  for (int64_t other : {1, 2})
    maximum = k().maxf(maximum, k().shuffleXor(maximum, other));
  Value &m = carried[maximumAt(r, half)], &l = carried[sumAt(r, half)];
  maximum = k().maxf(maximum, m);
  Value c = k().f32(exponentFactor()), minus = k().f32(-exponentFactor());
  Value old = k().exp2Approximate(k().mulf(k().subf(m, maximum), c));
  Value shift = k().mulf(maximum, minus), sum = k().mulf(l, old);
  for (Value &score : row) {
    score = k().exp2Approximate(k().fma(score, c, shift));
    sum = k().addf(sum, score);
  }
  m = maximum;
  l = sum;
  for (int64_t n = 0; n < keys() / 8; ++n)
    for (int64_t i = 0; i < 2; ++i)
      x[scoreAt(r, n) + 2 * half + i] = row[2 * n + i];
  for (int64_t n = 0; n < paddedValue() / 8; ++n)
    for (int64_t i = 0; i < 2; ++i) {
      Value &o = carried[outputAt(r, n) + 2 * half + i];
      o = k().mulf(o, old);
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
          l = k().addf(l, x[scoreAt(r, n) + 2 * half + i]);
    }
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Weights of 16 keys for 16 rows: an accumulator is an operand's fragment, but
/// for its width.
Summands QuadraticKernel::splitWeights(ValueRange p, int64_t r, int64_t step) {
  return split(k(), type, p.slice(scoreAt(r, 2 * step), 8), weightSummands());
}

/// o += p V.
void QuadraticKernel::readValues(Value base, ValueRange p,
                                 MutableArrayRef<Value> o) {
  Value first = k().offset(base, keyTile().bytes());
  if (usesWarpgroups())
    return readValuesOfWarpgroup(first, p, o);
  LanePointer values(k(), valueTile(), first, valuePlace);
  for (int64_t step = 0; step < keys() / 16; ++step) {
    SmallVector<Summands> a;
    for (int64_t r = 0; r < rowTiles(); ++r)
      a.push_back(splitWeights(p, r, step));
    for (int64_t n = 0; n < paddedValue() / 16; ++n) {
      auto b = k().loadMatrices(values.at(16 * step, 2 * n), true);
      for (int64_t r = 0; r < rowTiles(); ++r)
        for (const auto &summand : a[r])
          for (int64_t half = 0; half < 2; ++half)
            multiplyInto(o.slice(outputAt(r, 2 * n + half), 4), summand,
                         ValueRange(b).slice(2 * half, 2));
    }
  }
}

void QuadraticKernel::readValuesOfWarpgroup(Value base, ValueRange p,
                                            MutableArrayRef<Value> o) {
  WarpgroupOperand values(k(), valueTile(), base, /*byRows=*/true);
  WarpgroupProducts products(k(), type);
  SmallVector<Summands> weights;
  for (int64_t step = 0; step < keys() / 16; ++step)
    weights.push_back(splitWeights(p, 0, step));
  Values sums(o);
  products.begin();
  for (auto [step, summands] : llvm::enumerate(weights))
    for (const auto &summand : summands)
      products.multiply(sums, paddedValue(), summand, values, step);
  products.await(sums);
  llvm::copy(sums, o.begin());
}

QuadraticKernel::Values QuadraticKernel::tile(Value number,
                                              ValueRange carried) {
  Value stage = k().band(number, stages() - 1);
  arrive(number, stage);
  Value base = stageBase(stage);
  Values next(carried), x = scores(base);
  // Only the last tiles hold keys that not every row sees.
  Value end = k().mul(k().add(number, 1), keys());
  Value isCut = maskView ? Value() : k().greaterSigned(end, warpLimit);
  if (!seesWholeTiles())
    x = k().ifElse(isCut, [&] { return maskScores(number, x); }, ValueRange(x));
  weigh(x, next);
  readValues(base, x,
             MutableArrayRef(next).take_front(outputAt(rowTiles(), 0)));
  return next;
}

void QuadraticKernel::writeOutput(ValueRange carried) {
  NormalizeAttr normalize = op.getNormalizeAttr();
  if (isSoftmax()) // Without any key the sum is 0, and so is o.
    normalize = NormalizeAttr::get(op.getContext(), k().b.getF64FloatAttr(0),
                                   {}, {}, {});
  k().barrier(); // All have read their queries.
  LanePointer pointer(k(), outputTile(), shared, outputPlace);
  for (int64_t r = 0; r < rowTiles(); ++r)
    for (int64_t half = 0; half < 2; ++half) {
      Value inverse, sum = carried[sumAt(r, half)];
      if (normalize) {
        for (int64_t other : {1, 2})
          sum = k().addf(sum, k().shuffleXor(sum, other));
        inverse = emitInverseDenominator(k().b, k().loc, normalize, type, sum);
      }
      for (int64_t n = 0; n < paddedValue() / 8; ++n) {
        Values pair;
        for (int64_t i = 0; i < 2; ++i) {
          Value x = carried[outputAt(r, n) + 2 * half + i];
          x = inverse ? k().mulf(x, inverse) : x;
          if (normalize)
            x = emitClamp(k().b, k().loc, normalize, x);
          pair.push_back(x);
        }
        k().store(k().pack(type, pair[0], pair[1]),
                  pointer.at(16 * r + 8 * half, n), 4);
      }
    }
  k().warpBarrier();
  storeTileRows(k(), outputTile(), shared, lane, warpRow, warpRows(),
                {outputBase, outputStride, valueSize,
                 k().sub(queryCount, firstQuery), granuleOf(valueSize, type),
                 Value()});
}
