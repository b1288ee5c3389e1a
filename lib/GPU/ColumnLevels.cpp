//===- ColumnLevels.cpp - Chunks by columns: scores level by level --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block's scores fall into levels. On the level of 8 rows the later half of
// the block meets the earlier: with m the token between, e^(c_i − c_j) is
// e^(c_i − c_m) for the query times e^(c_m − c_j) for the key, neither above 1.
// On the level of 4 rows the halves of each half meet, and so on down to one
// row; the diagonal is left, without a decay. So decays per channel need no
// quotient of exponentials, however steep they are.
//
//===----------------------------------------------------------------------===//

#include "ColumnKernel.h"

using namespace mlir;
using namespace mlir::linattn;

/// The level where blocks of `rows` rows meet, null for 8: those of odd number
/// read (`reads`: this lane's), those before them are read.
void ColumnScores::scoreLevel(Value rows, Value reads, const DecaySums &sums,
                              const Tokens &tokens,
                              MutableArrayRef<Value> scores) {
  Value zero = k.f32(0);
  bool isTop = !rows;
  auto choose = [&](size_t i, Value x, Value y) {
    return isTop ? (sums.isLower(i) ? x : y) : k.select(reads, x, y);
  };
  // The rows that read, or the others; the two numbers of a pair are of one.
  auto keep = [&](const Summands &all, bool areReaders) {
    Summands kept(all.size());
    for (auto [of, from] : llvm::zip(kept, all))
      for (auto [i, x] : llvm::enumerate(from)) {
        Value none =
            arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(x.getType()));
        of.push_back(
            choose(2 * i, areReaders ? x : none, areReaders ? none : x));
      }
    return kept;
  };
  Sides sides = decaySides(sums, tokens, isTop, choose);
  // Below 8 rows more than one pair of blocks meets; a selection keeps the pair
  // that belongs to the row.
  Value meets;
  if (!isTop) {
    Value pairs = k.sub(k.i32(8), k.mul(rows, 2));
    Value apart = k.bxor(row, k.mul(pair, 2));
    meets = k.equal(k.band(apart, pairs), 0);
  }
  Sides kept{keep(sides.query, true), keep(sides.key, false),
             keep(sides.reader, true), keep(sides.push, false)};
  auto add = [&](MutableArrayRef<Value> c, const Summands &left,
                 const Summands &right, int64_t terms) {
    if (isTop)
      return multiply(c, left, right, terms, /*halves=*/1);
    Matrix met(8, zero);
    multiply(met, left, right, terms);
    for (int64_t i : {0, 1, 6, 7})
      c[i] = k.addf(c[i], k.select(meets, met[i], zero));
  };
  forEachScore(kept, scores, add);
}

/// A level's operands of products: by the token in between decayed to or from.
ColumnScores::Sides
ColumnScores::decaySides(const DecaySums &sums, const Tokens &tokens,
                         bool isTop,
                         function_ref<Value(size_t, Value, Value)> choose) {
  Matrix queries, keys, readers, pushes;
  for (size_t i = 0; i < tokens.key.size(); ++i) {
    Value factor = approximateExp(choose(i, sums.upTo[i], sums.after[i]));
    Value before = factor;
    // Of the top level's earlier rows nothing reads.
    if ((isExclusive() || readsBefore()) && !(isTop && !sums.isLower(i)))
      before = approximateExp(sums.before[i]);
    if (reads())
      queries.push_back(
          k.mulf(tokens.query[i], isExclusive() ? before : factor));
    keys.push_back(k.mulf(tokens.key[i], factor));
    if (!tokens.reader.empty())
      readers.push_back(
          k.mulf(tokens.reader[i], readsBefore() ? before : factor));
    if (isGiven())
      pushes.push_back(k.mulf(tokens.push[i], factor));
  }
  auto make = [&](ValueRange matrix, int64_t count) {
    return matrix.empty() ? Summands() : split(matrix, count);
  };
  Sides sides{make(queries, querySummands()), make(keys, stateSummands()),
              make(readers, stateSummands()), make(pushes, stateSummands())};
  if (isDelta() && !op.getErase())
    sides.reader = sides.key;
  return sides;
}

/// The products of 16 channels on every level, and the tokens decayed from the
/// start of the block and to its end.
void ColumnScores::scoreLevels(Value block, Value step, const Tokens &tokens,
                               MutableArrayRef<Value> scores) {
  Matrix decays = loadDecays(block, step);
  DecaySums sums(k, decays, isExclusive() || readsBefore());
  sums.growInLoop(k, 3, scores, [&](Value level, DecaySums &grown, auto next) {
    Value rows = k.shl(k.i32(1), level);
    Value reads = k.equal(k.band(k.shr(row, level), 1), 1);
    scoreLevel(rows, reads, grown, tokens, next);
    grown.grow(k, rows, reads);
  });
  scoreLevel(/*rows=*/{}, /*reads=*/{}, sums, tokens, scores);
  sums.growToAll(k);
  decayTokens(block, step, sums, tokens);
}
