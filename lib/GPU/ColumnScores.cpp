//===- ColumnScores.cpp - Chunks by columns: what needs no state ----------===//
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

constexpr double log2e = 1.44269504088896341;

//===----------------------------------------------------------------------===//
// Tokens as matrices
//===----------------------------------------------------------------------===//

/// 16 tokens and 16 channels as they have arrived, in 16 bits.
ColumnScores::Values ColumnScores::loadFragment(Value base, Value block,
                                                Value step) {
  Value place = tokenTile().place(k, k.band(lane, 15),
                                  k.add(k.mul(step, 2), k.shr(lane, 4)));
  Value start = k.mul(block, blockSize * tokenTile().pitch());
  return k.loadMatrices(k.offset(k.offset(base, start), place), false);
}

/// 16 tokens and 16 channels of f32.
Matrix ColumnScores::loadWide(Value base, Value block, Value step) {
  SharedTile tile = channelTile();
  Value place = pairOffset(k, tile, row, k.mul(step, 4), pair);
  Value start = k.mul(block, blockSize * tile.pitch());
  LanePointer pointer(k, tile, k.offset(base, start), place);
  return loadPairs(k, pointer, 0, 0);
}

/// Decays of 16 tokens and 16 channels, in f32.
Matrix ColumnScores::loadDecays(Value block, Value step) {
  Value base = k.offset(stage, inStage.decay);
  Matrix decays =
      decayType().isF32()
          ? loadWide(base, block, step)
          : linattn::join(k, decayType(), {loadFragment(base, block, step)});
  if (hasBinaryDecays())
    for (Value &c : decays)
      c = k.mulf(c, k.f32(log2e));
  return decays;
}

/// 16 tokens and 16 channels, converted and feature-mapped. Absent tokens and
/// channels, and tokens that are not written, are 0 after the map, which may
/// not keep 0 itself.
Matrix ColumnScores::loadTokens(Value base, Value block, Value step,
                                bool areWritten) {
  Matrix matrix = isWide() ? loadWide(base, block, step)
                           : join({loadFragment(base, block, step)});
  FeatureMapKind kind = featureMap();
  if (kind == FeatureMapKind::Identity)
    return matrix;
  bool keepsZero =
      kind == FeatureMapKind::Relu || kind == FeatureMapKind::Relu2;
  std::array<Value, 2> exist;
  for (int64_t lower = 0; lower < 2 && !keepsZero; ++lower) {
    Value token = k.add(k.add(k.mul(block, blockSize), row), 8 * lower);
    exist[lower] = k.less(token, left);
    if (areWritten && written) {
      Value number = k.sub(k.add(scan.here.count, token), left);
      exist[lower] = written.has(k, number, exist[lower]);
    }
  }
  for (size_t i = 0; i < matrix.size(); ++i) {
    Value &x = matrix[i];
    x = emitMap(k, x);
    if (keepsZero)
      continue;
    Value channel =
        k.add(k.add(k.mul(step, blockSize), k.mul(pair, 2)), i / 4 * 8 + i % 2);
    Value exists = exist[i / 2 % 2];
    if (keySize() < paddedKey())
      exists = k.both(exists, k.less(channel, keySize()));
    x = k.select(exists, x, k.f32(0));
  }
  return matrix;
}

void ColumnScores::storeSummands(int64_t offset, Value block, Value step,
                                 const Summands &summands) {
  SharedTile tile = tokenTile();
  Value place = k.add(tile.place(k, row, k.mul(step, 2)), k.mul(pair, 4));
  Value base = k.offset(scan.shared, k.mul(block, blockSize * tile.pitch()));
  for (auto [s, fragment] : llvm::enumerate(summands)) {
    LanePointer pointer(k, tile, k.offset(base, offset + s * tile.bytes()),
                        place);
    for (int64_t i = 0; i < 4; ++i)
      k.store(fragment[i], pointer.at(i % 2 * 8, i / 2), 4);
  }
}

//===----------------------------------------------------------------------===//
// Scores, a share of the channels at a time
//===----------------------------------------------------------------------===//

/// Every warp takes its share of a block's channels and leaves its sums.
void ColumnScores::shareScores() {
  Value block = k.rem(warp, blocks()), sharer = k.div(warp, blocks());
  int64_t sums = 8 + (isDelta() ? 8 : 0) + (hasDiagonal() ? 2 : 0);
  if (!reads())
    sums = 0;
  bool allWork = blocks() * sharers() == warps();
  k.ifThen(allWork ? Value() : k.less(sharer, sharers()), [&] {
    Value count =
        k.div(k.sub(k.i32(steps() + sharers() - 1), sharer), sharers());
    Values shares = k.loop(
        count, Values(sums, k.f32(0)), [&](Value number, ValueRange carried) {
          Value step = k.add(k.mul(number, sharers()), sharer);
          return scoreStep(block, step, carried);
        });
    if (reads())
      storeScores(block, sharer, shares);
  });
}

/// Adds the contributions of 16 channels: to P, to A and to the diagonal of P.
ColumnScores::Values ColumnScores::scoreStep(Value block, Value step,
                                             ValueRange carried) {
  Values sums(carried);
  if (!reads()) {
    writeTokens(block, step);
    return sums;
  }
  MutableArrayRef<Value> all(sums);
  auto p = all.take_front(8);
  auto a = isDelta() ? all.slice(8, 8) : MutableArrayRef<Value>();
  Value keyBase = k.offset(stage, inStage.key);
  if (takesTokens()) {
    Summands q{loadFragment(stage, block, step)};
    Summands key{loadFragment(keyBase, block, step)};
    multiply(p, q, key, /*terms=*/1);
    if (isDelta())
      multiply(a, key, key, 1);
    if (hasDiagonal())
      addDiagonal(step, join(q), join(key), all.take_back(2));
    if (normalizes())
      sumKeys(block, step, join(key));
    return sums;
  }
  Matrix q = loadTokens(stage, block, step, /*areWritten=*/false);
  Matrix key = loadTokens(keyBase, block, step, /*areWritten=*/true);
  if (hasDiagonal())
    addDiagonal(step, q, key, all.take_back(2));
  if (hasChannelDecay()) {
    scoreLevels(block, step, q, key, p, a);
    return sums;
  }
  Summands qs = split(q, querySummands()), keys = split(key, stateSummands());
  storeSummands(layout.tiles.query, block, step, qs);
  storeSummands(layout.tiles.write, block, step, keys);
  multiply(p, qs, keys, readSummands());
  if (isDelta())
    multiply(a, keys, keys, stateSummands());
  if (normalizes())
    sumKeys(block, step, key);
  return sums;
}

/// Makes the keys that are written and their sums, where nothing is read.
void ColumnScores::writeTokens(Value block, Value step) {
  Matrix key = loadTokens(k.offset(stage, inStage.key), block, step,
                          /*areWritten=*/true);
  if (hasChannelDecay()) {
    Matrix decays = loadDecays(block, step);
    RowSums sums(k, decays, /*exclusive=*/false);
    for (int64_t rows : {1, 2, 4})
      sums.grow(k, k.i32(rows), k.equal(k.band(row, rows), rows));
    sums.growToAll(k);
    for (size_t i = 0; i < key.size(); ++i)
      key[i] = k.mulf(key[i], decayFactor(sums.after[i]));
    storeTotals(sums, block, step);
  }
  if (!takesTokens())
    storeSummands(layout.tiles.write, block, step, split(key, stateSummands()));
  // Keys with decays per channel are decayed already.
  if (normalizes())
    sumKeys(block, step, key);
}

/// The products of 16 channels on every level, and the tokens decayed from the
/// start of the block and to its end.
void ColumnScores::scoreLevels(Value block, Value step, const Matrix &q,
                               const Matrix &key, MutableArrayRef<Value> p,
                               MutableArrayRef<Value> a) {
  Matrix decays = loadDecays(block, step);
  RowSums sums(k, decays, isExclusive());
  // As a loop, for the registers.
  Values carried = sums.flatten();
  size_t count = carried.size();
  llvm::append_range(carried, p);
  llvm::append_range(carried, a);
  carried = k.loop(k.i32(3), carried, [&](Value level, ValueRange values) {
    RowSums grown(values.take_front(count), sums);
    Values scores(values.drop_front(count));
    auto all = MutableArrayRef(scores);
    Value rows = k.shl(k.i32(1), level);
    Value reads = k.equal(k.band(k.shr(row, level), 1), 1);
    scoreLevel(rows, reads, grown, q, key, all.take_front(8),
               all.drop_front(8));
    grown.grow(k, rows, reads);
    Values next = grown.flatten();
    next.append(scores);
    return next;
  });
  sums = RowSums(ValueRange(carried).take_front(count), sums);
  llvm::copy(ValueRange(carried).slice(count, 8), p.begin());
  llvm::copy(ValueRange(carried).drop_front(count + 8), a.begin());
  scoreLevel(/*rows=*/{}, /*reads=*/{}, sums, q, key, p, a);
  sums.growToAll(k);

  Matrix queries, reads, writes;
  for (size_t i = 0; i < q.size(); ++i) {
    Value c = isExclusive() ? sums.before[i] : sums.upTo[i];
    Value factor = isWide() ? k.exp(c) : approximateExp(c);
    queries.push_back(k.mulf(q[i], factor));
    if (isDelta())
      reads.push_back(k.mulf(key[i], decayFactor(sums.upTo[i])));
    writes.push_back(k.mulf(key[i], decayFactor(sums.after[i])));
  }
  storeSummands(layout.tiles.query, block, step,
                split(queries, querySummands()));
  storeSummands(layout.tiles.write, block, step,
                split(writes, stateSummands()));
  if (isDelta())
    storeSummands(layout.tiles.read, block, step,
                  split(reads, stateSummands()));

  storeTotals(sums, block, step);
  if (normalizes())
    storeKeySums(block, step, writes);
}

/// One number for each of this lane's channels, of a block.
void ColumnScores::storeChannels(int64_t offset, Value block, Value step,
                                 ValueRange x) {
  Value channel = k.add(k.mul(step, blockSize), k.mul(pair, 2));
  Value index = k.add(k.mul(block, paddedKey()), channel);
  k.ifThen(k.equal(row, 0), [&] {
    k.store(k.vectorOf({x[0], x[1]}), at(offset, index), 8);
    k.store(k.vectorOf({x[2], x[3]}), at(offset, k.add(index, 8)), 8);
  });
}

/// e^c, 22 bits of it.
Value ColumnScores::approximateExp(Value c) {
  return k.exp2Approximate(hasBinaryDecays() ? c : k.mulf(c, k.f32(log2e)));
}

/// By what a key is decayed that the state takes, or that reads it: of a key
/// that is one summand of 16 bits no more than 22 bits of the factor matter.
Value ColumnScores::decayFactor(Value c) {
  return stateSummands() == 1 ? approximateExp(c) : k.exp(c);
}

/// Stores the total decay of a block per channel.
void ColumnScores::storeTotals(const RowSums &sums, Value block, Value step) {
  Values factors;
  for (int64_t i : {0, 1, 4, 5}) {
    Value c = sums.total[i];
    factors.push_back(
        k.exp(hasBinaryDecays() ? k.mulf(c, k.f32(1 / log2e)) : c));
  }
  storeChannels(layout.totals, block, step, factors);
}

/// The level where blocks of `rows` rows meet, null for 8: those of odd number
/// read (`reads`: this lane's), those before them are read.
void ColumnScores::scoreLevel(Value rows, Value reads, const RowSums &sums,
                              const Matrix &q, const Matrix &key,
                              MutableArrayRef<Value> p,
                              MutableArrayRef<Value> a) {
  Value zero = k.f32(0);
  bool isTop = !rows;
  auto choose = [&](size_t i, Value x, Value y) {
    return isTop ? (sums.isLower(i) ? x : y) : k.select(reads, x, y);
  };
  auto factor = [&](Value c) { return approximateExp(c); };
  Matrix queries, decayedKeys;
  for (size_t i = 0; i < q.size(); ++i) {
    Value keyFactor = factor(choose(i, sums.upTo[i], sums.after[i]));
    Value queryFactor = isExclusive() && !(isTop && !sums.isLower(i))
                            ? factor(sums.before[i])
                            : keyFactor;
    decayedKeys.push_back(k.mulf(key[i], keyFactor));
    queries.push_back(k.mulf(q[i], queryFactor));
  }
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
  Summands both = split(decayedKeys, stateSummands());
  Summands keys = keep(both, /*areReaders=*/false);
  // Below 8 rows more than one pair of blocks meets; a selection keeps the pair
  // that belongs to the row.
  Value meets;
  if (!isTop) {
    Value pairs = k.sub(k.i32(8), k.mul(rows, 2));
    Value apart = k.bxor(row, k.mul(pair, 2));
    meets = k.equal(k.band(apart, pairs), 0);
  }
  auto add = [&](MutableArrayRef<Value> c, const Summands &left,
                 int64_t terms) {
    if (isTop)
      return multiply(c, left, keys, terms, /*halves=*/1);
    Matrix met(8, zero);
    multiply(met, left, keys, terms);
    for (int64_t i : {0, 1, 6, 7})
      c[i] = k.addf(c[i], k.select(meets, met[i], zero));
  };
  add(p, keep(split(queries, querySummands()), true), readSummands());
  if (isDelta())
    add(a, keep(both, true), stateSummands());
}

/// Adds q_i · k_i, or q_i · (u ⊙ k_i) for an exclusive read.
void ColumnScores::addDiagonal(Value step, const Matrix &q, const Matrix &key,
                               MutableArrayRef<Value> diagonal) {
  if (isExclusive() && !bonus)
    return;
  Values weights(q.size());
  for (size_t i = 0; bonus && i < q.size(); ++i) {
    if (i & 2) { // Another row of the same channel.
      weights[i] = weights[i ^ 2];
      continue;
    }
    Value channel =
        k.add(k.add(k.mul(step, blockSize), k.mul(pair, 2)), i / 4 * 8 + i % 2);
    Value exists =
        keySize() < paddedKey() ? k.less(channel, keySize()) : Value();
    weights[i] = k.ifElse(
        exists,
        [&] {
          Value u =
              k.load(bonus.element, bonus.at(k, {scan.here.head, channel}),
                     bonus.bytes());
          return k.convert(u, k.b.getF32Type());
        },
        k.f32(0));
  }
  for (size_t i = 0; i < q.size(); ++i) {
    Value x = weights[i] ? k.mulf(key[i], weights[i]) : key[i];
    Value &sum = diagonal[i / 2 % 2];
    sum = k.fma(q[i], x, sum);
  }
}

/// The sum of a block's keys, each decayed to the end of the block.
void ColumnScores::sumKeys(Value block, Value step, Matrix key) {
  if (hasScalarDecay()) {
    Values decays;
    for (int64_t lower : {0, 8}) {
      Value token = k.add(k.add(k.mul(block, blockSize), row), lower);
      decays.push_back(blockDecay(token));
    }
    RowSums sums(k, decays, /*exclusive=*/false);
    for (int64_t rows : {1, 2, 4})
      sums.grow(k, k.i32(rows), k.equal(k.band(row, rows), rows));
    sums.growToAll(k);
    Values factors{k.exp(sums.after[0]), k.exp(sums.after[1])};
    for (size_t i = 0; i < key.size(); ++i)
      key[i] = k.mulf(key[i], factors[i / 2 % 2]);
  }
  storeKeySums(block, step, key);
}

/// The sum of a block's rows.
void ColumnScores::storeKeySums(Value block, Value step, const Matrix &key) {
  Values keys;
  for (int64_t i : {0, 1, 4, 5}) {
    Value sum = k.addf(key[i], key[i + 2]);
    for (int64_t mask : {4, 8, 16})
      sum = k.addf(sum, k.shuffleXor(sum, mask));
    keys.push_back(sum);
  }
  storeChannels(layout.keySums, block, step, keys);
}

void ColumnScores::storeScores(Value block, Value sharer, ValueRange sums) {
  Value place = k.add(k.mul(row, scorePitch), k.mul(pair, 8));
  place = k.add(place, k.mul(sharer, shareBytes()));
  Value first = k.offset(at(layout.sharedScores, block, sharesBytes()), place);
  for (int64_t matrix = 0; matrix < scoreMatrices(); ++matrix)
    for (int64_t i = 0; i < 4; ++i) {
      ValueRange two = sums.slice(8 * matrix + 2 * i, 2);
      k.store(k.vectorOf(two),
              k.offset(first, matrix * scoreBytes + i % 2 * 8 * scorePitch +
                                  i / 2 * 32),
              8);
    }
  if (!hasDiagonal())
    return;
  Value number = k.add(k.mul(block, sharers()), sharer);
  Value token = k.add(k.mul(number, blockSize), row);
  for (int64_t lower = 0; lower < 2; ++lower) {
    Value sum = sums[sums.size() - 2 + lower];
    for (int64_t mask : {1, 2})
      sum = k.addf(sum, k.shuffleXor(sum, mask));
    k.ifThen(k.equal(pair, 0), [&] {
      k.store(sum, at(layout.diagonals, k.add(token, 8 * lower)), 4);
    });
  }
}

void ColumnScores::run() {
  if (reads() || !takesTokens() || normalizes()) {
    shareScores();
    k.barrier();
  }
  if (reads() || hasScalarDecay()) {
    finishScores();
    k.barrier();
  }
  if (normalizes()) {
    sumNormalizer();
    k.barrier();
  }
}
