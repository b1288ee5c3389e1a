//===- ColumnDecays.cpp - Chunks by columns: a decay per value column -----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrices here are columns × tokens, as values are: the sums of a column's
// decays stand in the places of what they decay. Outputs are transposed in the
// end, by a product with 1.
//
//===----------------------------------------------------------------------===//

#include "ColumnKernel.h"

using namespace mlir;
using namespace mlir::linattn;

/// S through one block, as `advance`.
ColumnSteps::Values ColumnSteps::advanceColumns(Value block, ValueRange state) {
  DecaySums sums(
      k, loadGates(arrived.valueDecay, op.getValueDecay(), decayPlace, block),
      /*exclusive=*/false);
  // An exclusive read precedes the decay of its token.
  if (isExclusive())
    sums.upTo.assign(8, k.f32(0));
  Values inType = loadColumns(arrived.value, type(), valuePlace, block);
  Matrix values = isWide() ? inType : join({inType});
  Value scores = k.offset(at(layout.finalScores, block, finalBytes()),
                          QueryKey * scoreBytes);
  Matrix o(8, k.f32(0));
  Value zero = k.i32(0);
  if (!isExclusive() || op.getBonus())
    addLevel(/*tokens=*/{}, scores, values, /*sums=*/nullptr, o);
  addLevel(k.i32(1), scores, values, &sums, o);
  sums.growWithin(k, 1);
  sums.growInLoop(k, 2, o, [&](Value level, DecaySums &grown, auto sum) {
    Value distance = k.shl(k.i32(1), level);
    addLevel(k.shl(distance, 1), scores, values, &grown, sum);
    grown.growAcross(k, distance, k.less(zero, k.band(pair, distance)));
  });
  addHalves(scores, values, sums, o);
  sums.growWithin(k, 4);
  for (auto [i, x] : llvm::enumerate(readColumns(block, state)))
    o[i] = k.fma(x, outputFactor(sums.upTo[i]), o[i]);
  writeOutput(block, transposed(o), /*denominators=*/{});
  for (auto [x, c] : llvm::zip(values, sums.after))
    x = k.mulf(x, decayFactor(c));
  return updateState(block, state, split(values, stateSummands()),
                     /*pushed=*/{},
                     {k.exp(sums.total[0]), k.exp(sums.total[2])});
}

/// S Qᵀ.
Matrix ColumnSteps::readColumns(Value block, ValueRange state) {
  TileRows queries =
      rowsOf(layout.tiles.query, block, querySummands(), tokenPlace);
  Matrix read(8, k.f32(0));
  for (int64_t step = 0; step < steps(); ++step)
    multiply(read, split(state.slice(8 * step, 8), readSummands()),
             loadStep(queries, step), readSummands());
  return read;
}

/// Adds the level where blocks of 1, 2 or 4 tokens meet, whose sums of decays
/// are given: those of odd number read those before them. Without `tokens` each
/// token reads itself.
void ColumnSteps::addLevel(Value tokens, Value scores, ValueRange values,
                           const DecaySums *sums, MutableArrayRef<Value> o) {
  Value zero = k.f32(0);
  Matrix loaded = loadScores(scores), kept(8, zero);
  // Rows and columns of the same half: 8 · half + row, 8 · half + 2 · pair + i.
  Value higher = tokens ? k.sub(k.i32(8), tokens) : k.i32(7);
  for (size_t i : {0, 1, 6, 7}) {
    Value apart = k.bxor(row, k.add(k.mul(pair, 2), i % 2));
    apart = k.band(apart, higher);
    Value meets = k.equal(tokens ? k.bxor(apart, tokens) : apart, 0);
    if (tokens)
      meets = k.both(meets, k.less(k.i32(0), k.band(row, tokens)));
    kept[i] = k.select(meets, loaded[i], zero);
  }
  addRead(kept, values, sums, o);
}

/// The same where the two halves of a block meet.
void ColumnSteps::addHalves(Value scores, ValueRange values,
                            const DecaySums &sums, MutableArrayRef<Value> o) {
  Matrix loaded = loadScores(scores), kept(8, k.f32(0));
  for (size_t i : {2, 3})
    kept[i] = loaded[i];
  addRead(kept, values, &sums, o);
}

/// Adds V Pᵀ, of values that have decayed to the token in between, and from it.
void ColumnSteps::addRead(ValueRange scores, ValueRange values,
                          const DecaySums *sums, MutableArrayRef<Value> o) {
  Matrix decayed(values), read(8, k.f32(0));
  for (size_t i = 0; sums && i < decayed.size(); ++i)
    decayed[i] = k.mulf(decayed[i], outputFactor(sums->after[i]));
  multiply(read, split(decayed, readSummands()), split(scores, readSummands()),
           readSummands());
  for (auto [i, x] : llvm::enumerate(read))
    o[i] = sums ? k.fma(x, outputFactor(sums->upTo[i]), o[i]) : k.addf(x, o[i]);
}

/// A matrix of outputs with its rows as columns: I Mᵀ, of all bits that these
/// keep.
Matrix ColumnSteps::transposed(ValueRange matrix) {
  Value zero = k.f32(0), one = k.f32(1);
  Matrix unit;
  for (int64_t i = 0; i < 8; ++i) {
    Value apart = k.bxor(row, k.add(k.mul(pair, 2), i % 2));
    Value isDiagonal = k.equal(apart, 0);
    unit.push_back(i / 2 % 2 == i / 4 ? k.select(isDiagonal, one, zero) : zero);
  }
  Matrix result(8, zero);
  int64_t count = isWide() ? allSummands : 2;
  accumulate(k, summandType(), result, split(unit, 1), split(matrix, count),
             count);
  return result;
}
