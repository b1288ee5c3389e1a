//===- ChunkSteps.cpp - The chunk form: what a chunk computes -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkKernel.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Decays
//===----------------------------------------------------------------------===//

Value ChunkKernel::decayOf(Value stage, Value left, Value token) {
  if (decays.head)
    return k.select(k.less(token, left), decays.head, k.f32(0));
  Value index = k.add(k.mul(stage, chunkTokens), token);
  return k.load(
      k.b.getF32Type(),
      k.offset(k.offset(block.shared, k.mul(index, 4)), decayOffset()), 4);
}

/// A warp sums the decays of a chunk, two tokens per lane: up to each token in
/// base 2, and as factors from each token to the end, summed from there so that
/// no large sums cancel.
void ChunkKernel::sumDecaysOfWarp(const Lane &lane, Value left, Value stage,
                                  bool toToken, bool toEnd) {
  Value token = k.mul(lane.number, 2);
  Value x = decayOf(stage, left, token);
  Value y = decayOf(stage, left, k.add(token, 1));
  Value both = k.addf(x, y), zero = k.f32(0);
  auto above = [&](int64_t d) { return k.less(k.i32(d - 1), lane.number); };
  auto below = [&](int64_t d) { return k.less(lane.number, 32 - d); };
  Value upTo = both, from = both;
  for (int64_t d = 1; d < 32; d *= 2) {
    if (toToken)
      upTo = k.addf(upTo, k.select(above(d), k.shuffleUp(upTo, d), zero));
    if (toEnd)
      from = k.addf(from, k.select(below(d), k.shuffleDown(from, d), zero));
  }
  Value earlier, later, log2e = k.f32(1.44269504088896341);
  if (toToken)
    earlier = k.select(above(1), k.shuffleUp(upTo, 1), zero);
  if (toEnd)
    later = k.select(below(1), k.shuffleDown(from, 1), zero);
  if (toToken)
    k.store(k.vectorOf({k.mulf(k.addf(earlier, x), log2e),
                        k.mulf(k.addf(earlier, both), log2e)}),
            sumAt(lane, sumsOffset(), token), 8);
  if (!toEnd)
    return;
  // A decayed key of one summand has no use for more than 22 bits.
  auto weight = [&](Value c) {
    return keySummands() == 1 ? k.exp2Approximate(k.mulf(c, log2e)) : k.exp(c);
  };
  k.store(k.vectorOf({weight(k.addf(y, later)), weight(later)}),
          sumAt(lane, weightsOffset(), token), 8);
  k.ifThen(k.equal(lane.number, 0), [&] {
    k.store(k.exp(from), k.offset(lane.sums, totalOffset()), 4);
  });
}

/// The first warp sums them for the block.
void ChunkKernel::sumDecays(const Lane &lane, Value left, Value stage) {
  k.ifThen(k.less(lane.thread, 32), [&] {
    sumDecaysOfWarp(lane, left, stage, /*toToken=*/true, /*toEnd=*/true);
  });
}

/// The address of the sum of a token, of those at `offset`.
Value ChunkKernel::sumAt(const Lane &lane, int64_t offset, Value token) {
  return k.offset(k.offset(lane.sums, k.mul(token, 4)), offset);
}

std::pair<Value, Value> ChunkKernel::sharedPair(const Lane &lane,
                                                int64_t offset, Value token) {
  Value pair = k.load(VectorType::get({2}, k.b.getF32Type()),
                      sumAt(lane, offset, token), 8);
  return {k.element(pair, 0), k.element(pair, 1)};
}

//===----------------------------------------------------------------------===//
// One chunk
//===----------------------------------------------------------------------===//

void ChunkKernel::multiplyInto(MutableArrayRef<Value> c, ValueRange a,
                               ValueRange b) {
  SmallVector<Value, 4> product = k.multiply(type(), a, b, ValueRange(c));
  llvm::copy(product, c.begin());
}

/// c += 16 rows of Q times a sum of matrices whose 16×16 blocks `load` brings.
/// Scores and reads take their turns: beside the state not both fit the
/// registers.
void ChunkKernel::multiplyQueries(
    const Lane &lane, Value base, Values &c, int64_t summands,
    function_ref<SmallVector<Value, 4>(int64_t step, int64_t n, int64_t s)>
        load) {
  LanePointer queries(k, keyTile(), base, lane.read.query);
  for (int64_t step = 0; step < paddedKey() / 16; ++step) {
    auto a = k.loadMatrices(queries.at(0, 2 * step), /*transposed=*/false);
    for (size_t n = 0; n < c.size() / 8; ++n)
      for (int64_t s = 0; s < summands; ++s) {
        auto b = load(step, n, s);
        for (int64_t half = 0; half < 2; ++half)
          multiplyInto(MutableArrayRef(c).slice((2 * n + half) * 4, 4), a,
                       ValueRange(b).slice(2 * half, 2));
      }
  }
}

/// 16 rows of Q Kᵀ.
ChunkKernel::Values ChunkKernel::scores(const Lane &lane, Value base) {
  LanePointer keys(k, keyTile(), k.offset(base, keyOffset()), lane.read.key);
  Values p(chunkTokens / 2, k.f32(0));
  multiplyQueries(lane, base, p, /*summands=*/1,
                  [&](int64_t step, int64_t n, int64_t) {
                    return k.loadMatrices(keys.at(16 * n, 2 * step), false);
                  });
  return p;
}

/// 16 rows of Q S.
ChunkKernel::Values ChunkKernel::readState(const Lane &lane, Value number,
                                           Value base) {
  LanePointer states(k, stateTile(), sharedState(number), lane.read.value);
  Values o(groupColumns() / 2, k.f32(0));
  multiplyQueries(
      lane, base, o, readSummands(), [&](int64_t step, int64_t n, int64_t s) {
        Value hi = states.at(16 * step, 2 * n);
        return k.loadMatrices(k.offset(hi, s * stateTile().bytes()), true);
      });
  return o;
}

/// Later keys have no weight, earlier ones the decay in between. Where the mask
/// is false the exponent would be positive: it is cut off, then selected away.
void ChunkKernel::maskScores(const Lane &lane, Values &p) {
  Value row = k.add(k.mul(lane.strip, 16), lane.row);
  Value zero = k.f32(0);
  // Column minus row of this lane's first element.
  Value distance = k.sub(k.mul(lane.pair, 2), row);
  std::array<Value, 2> rowSums;
  if (hasDecay())
    for (int64_t half = 0; half < 2; ++half) {
      Value at = sumAt(lane, sumsOffset(), k.add(row, 8 * half));
      rowSums[half] = k.load(k.b.getF32Type(), at, 4);
    }
  for (int64_t n = 0; n < chunkTokens / 8; ++n) {
    Value column = k.add(k.mul(lane.pair, 2), 8 * n);
    std::pair<Value, Value> sums;
    if (hasDecay())
      sums = sharedPair(lane, sumsOffset(), column);
    for (int64_t i = 0; i < 4; ++i) {
      Value &x = p[4 * n + i];
      if (hasDecay()) {
        Value between =
            k.subf(rowSums[i / 2], i % 2 ? sums.second : sums.first);
        x = k.mulf(x, k.exp2Approximate(k.minf(between, zero)));
      }
      Value later = k.greaterSigned(distance, 8 * (i / 2) - 8 * n - i % 2);
      x = k.select(later, zero, x);
    }
  }
}

/// Scores as sums of fragments of 16 bits: an accumulator is an operand's
/// fragment, but for its width.
SmallVector<ChunkKernel::Values> ChunkKernel::splitScores(ValueRange p) {
  SmallVector<Values> summands(readSummands());
  for (size_t i = 0; i < p.size(); i += 2)
    for (auto [s, pair] :
         llvm::enumerate(splitPair(k, type(), p[i], p[i + 1], readSummands())))
      summands[s].push_back(pair);
  return summands;
}

/// o = e^c ⊙ o.
void ChunkKernel::decayOutputs(const Lane &lane, Values &o) {
  if (!hasDecay())
    return;
  Value row = k.add(k.mul(lane.strip, 16), lane.row);
  for (int64_t half = 0; half < 2; ++half) {
    Value at = sumAt(lane, sumsOffset(), k.add(row, 8 * half));
    Value factor = k.exp2Approximate(k.load(k.b.getF32Type(), at, 4));
    for (size_t i = 2 * half; i < o.size(); i += 4)
      for (size_t j : {i, i + 1})
        o[j] = k.mulf(o[j], factor);
  }
}

/// o += p V.
void ChunkKernel::readValues(const Lane &lane, Value base,
                             ArrayRef<Values> weights, Values &o) {
  LanePointer values(k, valueTile(), k.offset(base, valueOffset()),
                     lane.read.value);
  for (int64_t step = 0; step < chunkTokens / 16; ++step)
    for (int64_t n = 0; n < groupColumns() / 16; ++n) {
      auto b = k.loadMatrices(values.at(16 * step, 2 * n), true);
      for (const Values &summand : weights)
        for (int64_t half = 0; half < 2; ++half)
          multiplyInto(MutableArrayRef(o).slice((2 * n + half) * 4, 4),
                       ValueRange(summand).slice(4 * step, 4),
                       ValueRange(b).slice(2 * half, 2));
    }
}

/// Keys times their weights as a sum of fragments of 16 bits.
SmallVector<ChunkKernel::Values>
ChunkKernel::splitKeys(const Lane &lane, ValueRange keys, Value tokens) {
  if (!hasDecay())
    return {Values(keys)};
  SmallVector<Values> summands(keySummands());
  for (int64_t i = 0; i < 4; ++i) {
    Value token = k.add(k.add(tokens, k.mul(lane.pair, 2)), 8 * (i / 2));
    auto [w0, w1] = sharedPair(lane, weightsOffset(), token);
    auto [x0, x1] = k.unpack(type(), keys[i]);
    for (auto [s, pair] : llvm::enumerate(splitPair(
             k, type(), k.mulf(x0, w0), k.mulf(x1, w1), keySummands())))
      summands[s].push_back(pair);
  }
  return summands;
}

/// S = e^(c_64) S + Keysᵀ V. A loop, or the assembler would have the products
/// of many steps in registers.
ChunkKernel::Values ChunkKernel::updateState(const Lane &lane, Value base,
                                             ValueRange state) {
  Value total, one = k.f32(1);
  if (hasDecay())
    total = k.load(k.b.getF32Type(), k.offset(block.shared, totalOffset()), 4);
  LanePointer keys(k, keyTile(), k.offset(base, keyOffset()), lane.state.key);
  LanePointer values(k, valueTile(), k.offset(base, valueOffset()),
                     lane.state.value);
  Values updated = k.loop(
      k.i32(chunkTokens / 16), state, [&](Value step, ValueRange carried) {
        Values next(carried);
        Value tokens = k.mul(step, 16), factor;
        if (hasDecay())
          factor = k.select(k.equal(step, 0), total, one);
        for (int64_t i = 0; i < stateRows(); ++i) {
          auto a = k.loadMatrices(k.offset(keys.at(0, 2 * i * rowWarps()),
                                           k.mul(tokens, keyTile().pitch())),
                                  true);
          SmallVector<Values> summands = splitKeys(lane, a, tokens);
          for (int64_t n = 0; n < stateColumns() / 2; ++n) {
            auto b =
                k.loadMatrices(k.offset(values.at(0, 2 * n),
                                        k.mul(tokens, valueTile().pitch())),
                               true);
            for (int64_t half = 0; half < 2; ++half)
              addProducts(
                  MutableArrayRef(next).slice(stateAt(i, 2 * n + half), 4),
                  factor, summands, ValueRange(b).slice(2 * half, 2));
          }
        }
        return next;
      });
  // Behind the state lies the product of the decays, if a segment needs it.
  if (hasDecay())
    for (Value &x :
         MutableArrayRef(updated).drop_front(stateAt(stateRows(), 0)))
      x = k.mulf(x, total);
  return updated;
}

/// s = factor s + Σ summands · b: summed by itself, the smallest first, and
/// added by instructions that round, as tensor cores do not.
void ChunkKernel::addProducts(MutableArrayRef<Value> s, Value factor,
                              ArrayRef<Values> summands, ValueRange b) {
  Values written(4, k.f32(0));
  for (const Values &summand : llvm::reverse(summands))
    multiplyInto(written, summand, b);
  for (auto [x, y] : llvm::zip(s, written))
    x = factor ? k.fma(x, factor, y) : k.addf(x, y);
}

/// Goes through shared memory, so that a lane writes 16 bytes of a row.
void ChunkKernel::writeOutput(const Lane &lane, Value number, Value base,
                              ValueRange o) {
  SharedTile tile = outputTile();
  if (!replacesQueries())
    base = k.offset(block.shared, outputOffset());
  else if (usesWarpgroups())
    groupBarrier(lane);
  else if (groups() > 1)
    k.barrier(); // All groups have read the queries.
  else
    k.warpBarrier();
  LanePointer pointer(k, tile, base, lane.read.output);
  Value scale = k.f32(scaleOr1(op.getScale()));
  for (int64_t n = 0; n < groupColumns() / 8; ++n)
    for (int64_t half = 0; half < 2; ++half) {
      Value x = o[4 * n + 2 * half], y = o[4 * n + 2 * half + 1];
      k.store(k.pack(type(), k.mulf(x, scale), k.mulf(y, scale)),
              pointer.at(8 * half, n), 4);
    }
  k.warpBarrier();
  Value first = k.mul(number, chunkTokens);
  TileTarget target{tokens.output.base,
                    tokens.output.stride,
                    valueSize(),
                    k.sub(block.here.count, first),
                    granuleOf(valueSize(), type()),
                    isRagged() ? block.firstColumn : Value(),
                    first};
  storeTileRows(k, tile, base, lane.number, k.mul(lane.strip, 16), 16, target,
                k.div(lane.groupColumn, 8), groupColumns() / 8, slice() / 8);
}

void ChunkKernel::readChunk(const Lane &lane, Value number, Value base) {
  Values p = scores(lane, base);
  maskScores(lane, p);
  SmallVector<Values> weights = splitScores(p);
  Values o = readState(lane, number, base);
  decayOutputs(lane, o);
  readValues(lane, base, weights, o);
  writeOutput(lane, number, base, o);
}

ChunkKernel::Values ChunkKernel::chunk(TilePipeline &tiles, Value number,
                                       ValueRange state) {
  auto placeAnew = [&] { return placeThread(k.keepInLoop(block.thread)); };
  Value stage = tiles.stageOf(number);
  Lane lane = placeAnew();
  Value left = k.sub(block.here.count, k.mul(number, chunkTokens));
  auto share = [&] {
    if (reads())
      spillState(lane, state, number);
  };
  tiles.arrive(number, share, lane.thread);
  if (hasDecay())
    sumDecays(lane, left, stage);
  // With one stage a barrier has followed the copy of the state.
  if (hasDecay() || stages() > 1)
    k.barrier();
  Value base = tiles.baseOf(stage);
  if (reads()) {
    readChunk(lane, number, base);
    lane = placeAnew();
  }
  return updateState(lane, base, state);
}
