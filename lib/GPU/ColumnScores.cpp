//===- ColumnScores.cpp - Chunks by columns: what needs no state ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ColumnKernel.h"
#include "linattn/GPU/Machine.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Tokens as matrices
//===----------------------------------------------------------------------===//

/// 16 tokens and 16 channels as they have arrived, in 16 bits.
ColumnScores::Values ColumnScores::loadFragment(Place tile, Value block,
                                                Value step) {
  Value place = tokenTile().place(k, k.band(lane, 15),
                                  k.add(k.mul(step, 2), k.shr(lane, 4)));
  Value start = k.mul(block, blockSize * tokenTile().pitch());
  return k.loadMatrices(k.offset(k.offset(at(tile), start), place), false);
}

/// 16 tokens and 16 channels of f32.
Matrix ColumnScores::loadWide(Place place, Value block, Value step) {
  SharedTile tile = channelTile();
  Value start = k.mul(block, blockSize * tile.pitch());
  LanePointer pointer(k, tile, k.offset(at(place), start),
                      pairOffset(k, tile, row, k.mul(step, 4), pair));
  return loadPairs(k, pointer, 0, 0);
}

/// A gate or given vector of 16 tokens and 16 channels, in f32.
Matrix ColumnScores::loadGate(Place place, Type element, Value block,
                              Value step) {
  return element.isF32()
             ? loadWide(place, block, step)
             : linattn::join(k, element, {loadFragment(place, block, step)});
}

Matrix ColumnScores::loadDecays(Value block, Value step) {
  Matrix decays = loadGate(arrived.decay, decayType(), block, step);
  if (hasBinaryDecays())
    for (Value &c : decays)
      c = k.mulf(c, k.f32(log2e));
  return decays;
}

/// 16 tokens and 16 channels, converted and feature-mapped. Absent tokens and
/// channels, and tokens that are not written, are 0 after the map, which may
/// not keep 0 itself.
Matrix ColumnScores::loadTokens(Place place, Value block, Value step,
                                bool areWritten) {
  Matrix matrix = isWide() ? loadWide(place, block, step)
                           : join({loadFragment(place, block, step)});
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

/// A barrier of the warp before summands overwrite the tokens that it has read.
void ColumnScores::awaitReads() {
  bool takesAll = takesTokens() && !makesReaders();
  if (readsStages() && !takesAll)
    k.warpBarrier();
}

void ColumnScores::storeSummands(Place tiles, Value block, Value step,
                                 const Summands &summands) {
  SharedTile tile = tokenTile();
  Value place = k.add(tile.place(k, row, k.mul(step, 2)), k.mul(pair, 4));
  Value start = k.mul(block, blockSize * tile.pitch());
  for (auto [s, fragment] : llvm::enumerate(summands)) {
    Value base = at(tiles + int64_t(s) * tile.bytes());
    LanePointer pointer(k, tile, k.offset(base, start), place);
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
  int64_t sums = 8 * scoreMatrices() + 2 * diagonals();
  if (!hasScores())
    sums = 0;
  bool allWork = blocks() * sharers() == scoreWarps();
  k.ifThen(allWork ? Value() : k.less(sharer, sharers()), [&] {
    Value count =
        k.div(k.sub(k.i32(steps() + sharers() - 1), sharer), sharers());
    Values shares = k.loop(
        count, Values(sums, k.f32(0)), [&](Value number, ValueRange carried) {
          Value step = k.add(k.mul(number, sharers()), sharer);
          return scoreStep(block, step, carried);
        });
    if (hasScores())
      storeScores(block, sharer, shares);
  });
}

/// Adds the contributions of 16 channels: to the scores, then to the diagonals
/// of those of queries.
ColumnScores::Values ColumnScores::scoreStep(Value block, Value step,
                                             ValueRange carried) {
  Values sums(carried);
  if (!hasScores()) {
    writeTokens(block, step);
    return sums;
  }
  MutableArrayRef<Value> all(sums);
  MutableArrayRef<Value> scores = all.take_front(8 * scoreMatrices());
  Sides sides;
  Tokens tokens = loadSides(block, step, sides);
  addDiagonals(step, tokens, all.drop_front(scores.size()));
  if (hasChannelDecay()) {
    scoreLevels(block, step, tokens, scores);
    return sums;
  }
  makeSides(block, step, tokens, sides);
  forEachScore(sides, scores,
               [&](MutableArrayRef<Value> c, const Summands &left,
                   const Summands &right,
                   int64_t terms) { multiply(c, left, right, terms); });
  if (normalizes())
    sumKeys(block, step, tokens.key);
  return sums;
}

/// The rows of both sides of the scores in f32. `taken` holds those that
/// products take as they arrive.
ColumnScores::Tokens ColumnScores::loadSides(Value block, Value step,
                                             Sides &taken) {
  auto take = [&](Place place) {
    return Summands{loadFragment(place, block, step)};
  };
  Tokens tokens;
  if (reads() && takesTokens()) {
    taken.query = take(arrived.query);
    tokens.query = join(taken.query);
  } else if (reads()) {
    tokens.query = loadTokens(arrived.query, block, step, /*areWritten=*/false);
  }
  if (takesTokens()) {
    taken.key = take(arrived.key);
    tokens.key = join(taken.key);
  } else {
    tokens.key = loadTokens(arrived.key, block, step, /*areWritten=*/true);
  }
  if (takesVectors()) {
    taken.reader = take(arrived.reader);
    taken.push = take(arrived.push);
    return tokens;
  }
  if (Value operand = readerOperand())
    tokens.reader = loadGate(arrived.reader, typeOf(operand), block, step);
  if (isGiven())
    tokens.push = loadGate(arrived.push, typeOf(op.getB()), block, step);
  if (op.getErase())
    for (auto [x, key] : llvm::zip(tokens.reader, tokens.key))
      x = k.mulf(x, key);
  return tokens;
}

/// Splits what products do not take as it arrives, and stores it for the state.
void ColumnScores::makeSides(Value block, Value step, const Tokens &tokens,
                             Sides &sides) {
  awaitReads();
  auto make = [&](Summands &side, ValueRange matrix, int64_t count,
                  Place place) {
    if (!side.empty() || matrix.empty())
      return;
    side = split(matrix, count);
    storeSummands(place, block, step, side);
  };
  make(sides.query, tokens.query, querySummands(), layout.tiles.query);
  make(sides.key, tokens.key, stateSummands(), layout.tiles.write);
  make(sides.reader, tokens.reader, stateSummands(), layout.tiles.read);
  make(sides.push, tokens.push, stateSummands(), layout.tiles.push);
  if (isDelta() && !op.getErase())
    sides.reader = sides.key;
}

/// Every matrix of scores with its operands, and the products of summands that
/// it needs.
void ColumnScores::forEachScore(
    const Sides &sides, MutableArrayRef<Value> scores,
    function_ref<void(MutableArrayRef<Value>, const Summands &,
                      const Summands &, int64_t)>
        body) {
  for (int64_t i = 0; i < scoreMatrices(); ++i) {
    if (!makes(i))
      continue;
    bool isReader = i % 2;
    const Summands &left = isReader ? sides.reader : sides.query;
    const Summands &right = i < QueryPush ? sides.key : sides.push;
    bool isExact = left.size() == 1 && right.size() == 1;
    body(scores.slice(8 * i, 8), left, right,
         isExact    ? 1
         : isReader ? stateSummands()
                    : readSummands());
  }
}

/// Makes the keys that are written and their sums, where nothing is read.
void ColumnScores::writeTokens(Value block, Value step) {
  Matrix key = loadTokens(arrived.key, block, step,
                          /*areWritten=*/true);
  if (hasChannelDecay()) {
    Matrix decays = loadDecays(block, step);
    DecaySums sums(k, decays, /*exclusive=*/false);
    for (int64_t rows : {1, 2, 4})
      sums.grow(k, k.i32(rows), k.equal(k.band(row, rows), rows));
    sums.growToAll(k);
    for (size_t i = 0; i < key.size(); ++i)
      key[i] = k.mulf(key[i], decayFactor(sums.after[i]));
    storeTotals(sums, block, step);
  }
  if (!takesTokens()) {
    awaitReads();
    storeSummands(layout.tiles.write, block, step, split(key, stateSummands()));
  }
  // Keys with decays per channel are decayed already.
  if (normalizes())
    sumKeys(block, step, key);
}

/// Stores the tokens as the state takes them: those that read decayed from the
/// start of the block, those that are written to its end.
void ColumnScores::decayTokens(Value block, Value step, const DecaySums &sums,
                               const Tokens &tokens) {
  Matrix queries, reads, writes, pushes;
  const Matrix &readers = tokens.reader.empty() ? tokens.key : tokens.reader;
  for (size_t i = 0; i < tokens.key.size(); ++i) {
    if (!tokens.query.empty()) {
      Value c = isExclusive() ? sums.before[i] : sums.upTo[i];
      queries.push_back(k.mulf(tokens.query[i], outputFactor(c)));
    }
    if (hasTransition()) {
      Value read = readsBefore() ? sums.before[i] : sums.upTo[i];
      reads.push_back(k.mulf(readers[i], decayFactor(read)));
    }
    Value written = decayFactor(sums.after[i]);
    writes.push_back(k.mulf(tokens.key[i], written));
    if (isGiven())
      pushes.push_back(k.mulf(tokens.push[i], written));
  }
  awaitReads();
  auto store = [&](Place place, ValueRange matrix, int64_t count) {
    if (!matrix.empty())
      storeSummands(place, block, step, split(matrix, count));
  };
  store(layout.tiles.query, queries, querySummands());
  store(layout.tiles.write, writes, stateSummands());
  store(layout.tiles.read, reads, stateSummands());
  store(layout.tiles.push, pushes, stateSummands());

  storeTotals(sums, block, step);
  if (normalizes())
    storeKeySums(block, step, writes);
}

/// One number for each of this lane's channels, of a block.
void ColumnScores::storeChannels(Place place, Value block, Value step,
                                 ValueRange x) {
  Value channel = k.add(k.mul(step, blockSize), k.mul(pair, 2));
  Value index = k.add(k.mul(block, paddedKey()), channel);
  k.ifThen(k.equal(row, 0), [&] {
    k.store(k.vectorOf({x[0], x[1]}), at(place, index), 8);
    k.store(k.vectorOf({x[2], x[3]}), at(place, k.add(index, 8)), 8);
  });
}

/// Stores the total decay of a block per channel.
void ColumnScores::storeTotals(const DecaySums &sums, Value block, Value step) {
  Values factors;
  for (int64_t i : {0, 1, 4, 5}) {
    Value c = sums.total[i];
    factors.push_back(
        k.exp(hasBinaryDecays() ? k.mulf(c, k.f32(1 / log2e)) : c));
  }
  storeChannels(layout.totals, block, step, factors);
}

/// Adds q_i · k_i, or q_i · (u ⊙ k_i) for an exclusive read; of an inclusive
/// one q_i · b_i too.
void ColumnScores::addDiagonals(Value step, const Tokens &tokens,
                                MutableArrayRef<Value> sums) {
  if (sums.empty() || (isExclusive() && !bonus))
    return;
  Values weights(tokens.query.size());
  for (size_t i = 0; bonus && i < weights.size(); ++i) {
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
  auto add = [&](Value &sum, size_t i, Value x) {
    sum = k.fma(tokens.query[i], x, sum);
  };
  for (size_t i = 0; i < weights.size(); ++i) {
    Value key = tokens.key[i];
    add(sums[i / 2 % 2], i, weights[i] ? k.mulf(key, weights[i]) : key);
    if (diagonals() > 1)
      add(sums[2 + i / 2 % 2], i, tokens.push[i]);
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
    DecaySums sums(k, decays, /*exclusive=*/false);
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
    for (int64_t i = 0; i < 4 && makes(matrix); ++i) {
      ValueRange two = sums.slice(8 * matrix + 2 * i, 2);
      k.store(k.vectorOf(two),
              k.offset(first, matrix * scoreBytes + i % 2 * 8 * scorePitch +
                                  i / 2 * 32),
              8);
    }
  for (int64_t i = 0; i < 2 * diagonals(); ++i) {
    Value sum = sums[8 * scoreMatrices() + i];
    for (int64_t mask : {1, 2})
      sum = k.addf(sum, k.shuffleXor(sum, mask));
    Value place = diagonalAt(i / 2, block, sharer, k.add(row, i % 2 * 8));
    k.ifThen(k.equal(pair, 0), [&] { k.store(sum, place, 4); });
  }
}

/// Where the sum of a share of a diagonal is, in front of the other diagonal.
Value ColumnScores::diagonalAt(int64_t which, Value block, Value sharer,
                               Value token) {
  Value number = k.add(k.mul(block, sharers()), sharer);
  return at(layout.diagonals + which * blocks() * sharers() * blockSize * 4,
            k.add(k.mul(number, blockSize), token));
}

/// The warps that make scores.
void ColumnScores::meet() {
  if (isAhead())
    k.barrier(k.i32(1), warpSize * scoreWarps());
  else
    k.barrier();
}

void ColumnScores::run() {
  if (hasScores() || !takesTokens() || normalizes()) {
    shareScores();
    meet();
  }
  if (hasScores() || hasScalarDecay()) {
    finishScores();
    // Ahead, the state's warps are met where the next chunk has arrived.
    if (!isAhead())
      meet();
  }
  if (normalizes()) {
    sumNormalizer();
    meet();
  }
}
