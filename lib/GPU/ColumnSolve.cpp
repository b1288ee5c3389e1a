//===- ColumnSolve.cpp - Chunks by columns: scores of all channels --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ColumnKernel.h"

using namespace mlir;
using namespace mlir::linattn;

Value ColumnScores::blockDecay(Value token) {
  if (headDecay)
    return k.select(k.less(token, left), headDecay, k.f32(0));
  return loadFloat(at(arrived.decay, token));
}

/// The factors of a block's tokens, one lane per token, from the token's decay.
void ColumnScores::sumBlockDecays(Value block, Value column, Value exists,
                                  Value g) {
  Value zero = k.f32(0), upTo = g, from = g;
  for (int64_t d = 1; d < blockSize; d *= 2) {
    Value above = k.less(k.i32(d - 1), column);
    Value below = k.less(column, blockSize - d);
    upTo = k.addf(upTo, k.select(above, k.shuffleUp(upTo, d), zero));
    from = k.addf(from, k.select(below, k.shuffleDown(from, d), zero));
  }
  Value isFirst = k.equal(column, 0);
  Value before = k.select(isFirst, zero, k.shuffleUp(upTo, 1));
  Value after =
      k.select(k.equal(column, blockSize - 1), zero, k.shuffleDown(from, 1));
  Value token = k.add(k.mul(block, blockSize), column);
  k.ifThen(exists, [&] {
    if (reads())
      k.store(k.exp(isExclusive() ? before : upTo),
              at(layout.factors.query, token), 4);
    if (hasTransition())
      k.store(k.exp(readsBefore() ? before : upTo),
              at(layout.factors.read, token), 4);
    k.store(k.exp(after), at(layout.factors.write, token), 4);
    k.ifThen(isFirst,
             [&] { k.store(k.exp(from), at(layout.totals, block), 4); });
  });
}

/// The sum of a score's shares, for this lane's column.
Value ColumnScores::sumShares(Value shares, int64_t matrix, int64_t row) {
  Value sum;
  for (int64_t i = 0; i < sharers(); ++i) {
    Value share = loadFloat(k.offset(
        shares, i * shareBytes() + matrix * scoreBytes + row * scorePitch));
    sum = sum ? k.addf(sum, share) : share;
  }
  return sum;
}

Value ColumnScores::sumDiagonal(int64_t which, Value block, Value column) {
  Value sum = k.f32(0);
  for (int64_t i = 0; i < sharers(); ++i)
    sum = k.addf(sum, loadFloat(diagonalAt(which, block, k.i32(i), column)));
  return sum;
}

/// Half a warp takes a block, or some of its rows from `firstRow` on, each lane
/// one column: sums the shares, applies decays and the mask, and inverts the
/// system of a transition.
void ColumnScores::finishScores() {
  int64_t blockWarps = llvm::divideCeil(blocks(), 2);
  Value mine = k.keepInLoop(lane), half = k.shr(mine, 4);
  Value number = warp, firstRow, works = k.less(warp, blockWarps), exists;
  if (finishedRows() < blockSize) {
    number = k.rem(warp, blockWarps);
    firstRow = k.mul(k.div(warp, blockWarps), finishedRows());
    works = k.less(firstRow, blockSize);
  }
  Value block = k.add(k.mul(number, 2), half);
  if (blocks() == 1) {
    // The other half does the same and keeps it to itself.
    block = k.i32(0);
    exists = k.equal(half, 0);
  }
  k.ifThen(works, [&] { finishBlock(block, firstRow, mine, exists); });
}

void ColumnScores::finishBlock(Value block, Value firstRow, Value lane,
                               Value exists) {
  Value column = k.band(lane, 15), first = k.band(lane, blockSize);
  Value g;
  if (hasScalarDecay()) {
    g = blockDecay(k.add(k.mul(block, blockSize), column));
    sumBlockDecays(block, column, exists, g);
  }
  if (!hasScores())
    return;
  Value inRow = k.mul(column, 4);
  Value result = k.offset(at(layout.finalScores, block, finalBytes()), inRow);
  Values system = finishRows(block, firstRow, column, first, exists, g);
  if (!hasTransition())
    return;
  Values inverse = solve(system, column, first);
  if (Value betas = betasOf(block)) {
    Value step = loadFloat(k.offset(betas, inRow));
    for (Value &x : inverse)
      x = k.mulf(x, step);
  }
  k.ifThen(exists, [&] {
    for (int64_t i = 0; i < blockSize; ++i)
      k.store(inverse[i],
              k.offset(result, inverted() * scoreBytes + i * scorePitch), 4);
  });
}

/// Where the betas of a block are; null without.
Value ColumnScores::betasOf(Value block) {
  if (!op.getBeta())
    return {};
  return at(arrived.beta, block, 4 * blockSize);
}

/// This lane's column of every score, row by row. Returns that of the system to
/// solve, stores the others.
ColumnScores::Values ColumnScores::finishRows(Value block, Value firstRow,
                                              Value column, Value first,
                                              Value exists, Value g) {
  Value zero = k.f32(0), between = zero, betas = betasOf(block);
  std::array<Value, 2> diagonal{};
  if (hasDiagonal())
    diagonal.fill(zero);
  for (int64_t which = 0; which < diagonals(); ++which)
    diagonal[which] = sumDiagonal(which, block, column);
  Value inRow = k.mul(column, 4);
  if (firstRow)
    inRow = k.add(inRow, k.mul(firstRow, scorePitch));
  Value shares = k.offset(at(layout.sharedScores, block, sharesBytes()), inRow);
  Value result = k.offset(at(layout.finalScores, block, finalBytes()), inRow);
  Values system;
  for (int64_t i = 0; i < finishedRows(); ++i) {
    Value row = firstRow ? k.add(firstRow, i) : k.i32(i);
    Value isLater = k.less(column, row);
    // The sum of the decays after this lane's token, up to row i.
    Value unread = between;
    if (g) {
      Value decay = k.shuffleFrom(g, k.add(first, i));
      between = k.select(isLater, k.addf(between, decay), zero);
    }
    for (int64_t score = 0; score < scoreMatrices(); ++score) {
      if (!makes(score))
        continue;
      bool isReader = score % 2;
      Value x = sumShares(shares, score, i);
      if (isReader && betas)
        x = k.mulf(x, loadFloat(k.offset(betas, 4 * i)));
      bool isBefore = isReader ? readsBefore() : isExclusive();
      if (g)
        x = k.mulf(x, approximateExp(isBefore ? unread : between));
      Value own = diagonal[score / 2] ? diagonal[score / 2] : x;
      own = isReader ? zero
                     : k.select(k.equal(k.bxor(column, row), 0), own, zero);
      x = k.select(isLater, x, own);
      if (hasTransition() && score == inverted()) {
        system.push_back(x);
        continue;
      }
      Value place = k.offset(result, score * scoreBytes + i * scorePitch);
      k.ifThen(exists, [&] { k.store(x, place, 4); });
    }
  }
  return system;
}

/// The lane's column of (I + A)⁻¹, or of (I − A)⁻¹ where A is of given updates,
/// by forward substitution. The Neumann series, a product of powers of A,
/// cancels when keys are similar.
ColumnScores::Values ColumnScores::solve(ValueRange a, Value column,
                                         Value first) {
  Value one = k.f32(1), zero = k.f32(0), minus = k.f32(-1);
  Values inverse, negative;
  for (int64_t i = 0; i < blockSize; ++i) {
    inverse.push_back(k.select(k.equal(column, i), one, zero));
    negative.push_back(isGiven() ? a[i] : k.mulf(a[i], minus));
  }
  for (int64_t i = 0; i + 1 < blockSize; ++i)
    for (int64_t m = i + 1; m < blockSize; ++m) {
      Value x = k.shuffleFrom(negative[m], k.add(first, i));
      inverse[m] = k.fma(x, inverse[i], inverse[m]);
    }
  return inverse;
}

/// The normalizer before each block, and behind all.
void ColumnScores::sumNormalizer() {
  forEachChannel([&](Value channel) {
    auto place = [&](Place sums, int64_t block) {
      return at(sums, k.add(channel, block * paddedKey()));
    };
    Value z = loadFloat(place(layout.normalizers, blocks()));
    for (int64_t i = 0; i < blocks(); ++i) {
      k.store(z, place(layout.normalizers, i), 4);
      if (op.getDecay())
        z = k.mulf(z,
                   loadFloat(hasChannelDecay() ? place(layout.totals, i)
                                               : at(layout.totals, k.i32(i))));
      z = k.addf(z, loadFloat(place(layout.keySums, i)));
    }
    k.store(z, place(layout.normalizers, blocks()), 4);
  });
}
