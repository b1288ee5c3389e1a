//===- ChunkTilePack.cpp - Packing the tokens of a chunk ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkTile.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

void ChunkPack::emit() {
  if (scores.residual && hasChannelDecay())
    fillRow(scores.residual, {}, 0.0);
  stageTokens();
  if (numbers.keyShifts)
    findShifts();
  packTokens();
  // Padding of the chunk writes and decays nothing. Reads end at the next
  // vector, or two blocks of rows.
  int64_t height = plan.rowsAtOnce;
  int64_t most =
      std::max(shape.lanes, height * (plan.padded % (2 * height) ? 1 : 2));
  forEach(count, roundUp(count, most), 1, [&](Value t) { clearToken(t); });
}

/// The largest elements of the rows of a vector of tokens from `t` on, the
/// chunk's last one again past it. A token that is not written has none.
Value ChunkPack::rowMaxima(Value operand, Value rowHead, Value t,
                           bool written) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  int64_t lanes = shape.lanes;
  Value least = constant(vectorType(lanes), none);
  Rows lines;
  for (int64_t i = 0; i < lanes; ++i) {
    Value last = sub(count, index(1));
    Value token = tokenAt(add(first, min(add(t, index(i)), last)));
    Place place = written ? placeOf(operand, rowHead, token)
                          : queryPlaceOf(rowHead, token);
    Value row = reduceRow(wholeVectors(dim(operand, 3)), least,
                          [&](Value d, ValueRange carried) -> Rows {
                            SmallVector<Value> at(place.index);
                            at.push_back(d);
                            Value line =
                                readOperand(place.source, at, lanes, none);
                            return {larger(carried.front(), line)};
                          })
                    .front();
    Value keep = written ? keepOf(token) : Value();
    lines.push_back(keep ? select(keep, row, least) : row);
  }
  return maxVectors(lines);
}

/// The shifts of keys and queries before their exponentials: their largest
/// elements; for keys the running maximum of these.
void ChunkPack::findShifts() {
  int64_t lanes = shape.lanes;
  forEach(index(0), count, lanes, [&](Value t) {
    Value shifts = rowMaxima(r.key, task.keyHead, t, /*written=*/true);
    if (numbers.rescales && !r.inputGate)
      shifts = carryMaximum(t, shifts);
    storeVector(shifts, numbers.keyShifts, {t});
  });
  forEachMember([&](Value member) {
    Value rowHead = queryHead(member);
    stageQueries(rowHead);
    forEach(index(0), count, lanes, [&](Value t) {
      storeVector(rowMaxima(r.query, rowHead, t, /*written=*/false),
                  numbers.queryShifts, {member, t});
    });
  });
}

/// Carries the running maximum past a vector of tokens, and keeps the factors
/// of the past, e^(m_(t−1) − m_t). Returns what the keys are shifted by.
Value ChunkPack::carryMaximum(Value t, Value keyMaxima) {
  int64_t lanes = shape.lanes;
  Value maximum = r.state.runningMax;
  SmallVector<Value> place{task.slot, task.head};
  Value old = splat(load(maximum, place), lanes);
  Value best = larger(old, keyMaxima);
  for (int64_t step = 1; step < lanes; step *= 2)
    best = larger(best, delayed(best, old, step));
  store(lastLane(best), maximum, place);
  // −∞ − −∞, before the first key, is NaN.
  Value least = lowest(vectorType(lanes));
  Value shifts = maxf(best, least);
  Value past = delayed(shifts, maxf(old, least), 1);
  storeVector(exp(subf(past, shifts)), numbers.rescales, {t});
  return shifts;
}

/// Packs one operand after the other, so that a loop over tokens has few
/// addresses to keep.
void ChunkPack::packTokens() {
  forEach(count, [&](Value t) { packKeysOf(t); });
  forEach(count, [&](Value t) { packValuesOf(t); });
  if (plan.valueRead)
    forEach(count, [&](Value t) { packValueQuery(t); });
  if (packed.channelGates)
    forEach(count, [&](Value t) { packChannelGate(t); });
  if (plan.valueRead.decayWrites)
    decayWrites();
  if (!packed.queries)
    return;
  forEachMember([&](Value member) {
    Value queryHeadOf = queryHead(member);
    stageQueries(queryHeadOf);
    forEach(count, [&](Value t) {
      packQuery(tokenAt(add(first, t)), queryHeadOf, packed.queries,
                {member, t},
                numbers.queryShifts ? load(numbers.queryShifts, {member, t})
                                    : Value());
      if (numbers.own)
        store(ownWeight(packed.queries, {member, t}, packed.keys, {t}),
              numbers.own, {member, t});
    });
  });
}

/// Packs a token's operands of the size of keys, except its query and its
/// decays, and its scalars.
void ChunkPack::packKeysOf(Value t) {
  Value token = tokenAt(add(first, t));
  Value rescale =
      packKey(token, packed.keys, {t},
              numbers.keyShifts ? load(numbers.keyShifts, {t}) : Value());
  // An input gate carries the maximum token by token.
  if (rescale)
    store(rescale, numbers.rescales, {t});
  if (numbers.maxima)
    store(load(r.state.runningMax, {task.slot, task.head}), numbers.maxima,
          {t});
  Value beta;
  if (numbers.betas) {
    beta = written(convert(load(r.beta, {task.batch, task.head, token}), type),
                   token);
    store(beta, numbers.betas, {t});
  }
  if (packed.b)
    packGate(r.b, token, packed.b, {t});
  if (packed.transition)
    packTransition(token, packed.keys, {t}, packed.transition, {t}, beta);
  // Logarithms for now; a rescaling is a factor and goes beside them.
  if (numbers.gates)
    store(logarithmOfDecay(token), numbers.gates, {t});
}

void ChunkPack::packValuesOf(Value t) {
  Value token = tokenAt(add(first, t));
  packValue(token, packed.values, {t},
            numbers.betas ? load(numbers.betas, {t}) : Value());
  if (packed.columnBetas)
    packGate(r.beta, token, packed.columnBetas, {t});
  if (packed.writeGates)
    packGate(r.write, token, packed.writeGates, {t});
}

void ChunkPack::packValueQuery(Value t) {
  Row row;
  row.from(placeOf(plan.valueRead.query, task.head, tokenAt(add(first, t))));
  row.mapped = false;
  row.scale = r.scale;
  packRow(row, along.queries, {t});
}

/// The factors of a token's channels, with that of a running maximum.
void ChunkPack::packChannelGate(Value t) {
  packGate(r.decay, tokenAt(add(first, t)), packed.channelGates, {t},
           /*exponential=*/true, scores.residual);
  if (!numbers.rescales)
    return;
  Value rescale = splat(load(numbers.rescales, {t}), shape.lanes);
  reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value gate = loadVector(packed.channelGates, {t, d}, shape.lanes);
    storeVector(mulf(gate, rescale), packed.channelGates, {t, d});
    return {};
  });
}

/// Multiplies keys with the decay of their token.
void ChunkPack::decayWrites() {
  int64_t lanes = shape.lanes;
  if (along.writeFactors)
    forEach(index(0), count, lanes, [&](Value t) {
      storeVector(exp(loadVector(numbers.gates, {t}, lanes)),
                  along.writeFactors, {t});
    });
  forEach(count, [&](Value t) {
    Value factor = along.writeFactors
                       ? splat(load(along.writeFactors, {t}), lanes)
                       : Value();
    reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
      Value k = loadVector(packed.keys, {t, d}, lanes);
      Value decay =
          factor ? factor : loadVector(packed.channelGates, {t, d}, lanes);
      storeVector(mulf(k, decay), packed.keys, {t, d});
      return {};
    });
  });
}

/// A token that pads the chunk: zero rows, gates of one.
void ChunkPack::clearToken(Value t) {
  fillRow(packed.keys, {t}, 0.0);
  fillRow(packed.values, {t}, 0.0);
  if (along.queries)
    fillRow(along.queries, {t}, 0.0);
  if (packed.b)
    fillRow(packed.b, {t}, 0.0);
  if (packed.transition)
    fillRow(packed.transition, {t}, 0.0);
  if (packed.columnBetas)
    fillRow(packed.columnBetas, {t}, 0.0);
  if (packed.writeGates)
    fillRow(packed.writeGates, {t}, 0.0);
  if (packed.channelGates)
    fillRow(packed.channelGates, {t}, 1.0);
  auto clear = [&](Value numbers, double value) {
    if (numbers)
      store(constant(type, value), numbers, {t});
  };
  clear(numbers.betas, 0.0);
  clear(numbers.gates, 0.0);
  clear(numbers.rescales, 1.0);
  if (!packed.queries)
    return;
  forEachMember([&](Value member) {
    fillRow(packed.queries, {member, t}, 0.0);
    if (numbers.own)
      store(constant(type, 0.0), numbers.own, {member, t});
  });
}
