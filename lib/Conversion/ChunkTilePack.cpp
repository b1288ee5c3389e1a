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

/// The largest elements of the rows of a vector of tokens from `t` on, the
/// chunk's last one again past it. A token that is not written has none.
Value ChunkTile::rowMaxima(Value operand, Value rowHead, Value t,
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
void ChunkTile::findShifts() {
  int64_t lanes = shape.lanes;
  forEach(index(0), count, lanes, [&](Value t) {
    Value shifts = rowMaxima(scan.getKey(), keyHead, t, /*written=*/true);
    if (rescales && !scan.getInputGate())
      shifts = carryMaximum(t, shifts);
    storeVector(shifts, keyShifts, {t});
  });
  forEachMember([&](Value member) {
    Value rowHead = queryHead(member);
    stageQueries(rowHead, first, count);
    forEach(index(0), count, lanes, [&](Value t) {
      storeVector(rowMaxima(scan.getQuery(), rowHead, t, /*written=*/false),
                  queryShifts, {member, t});
    });
  });
}

/// Carries the running maximum past a vector of tokens, and keeps the factors
/// of the past, e^(m_(t−1) − m_t). Returns what the keys are shifted by.
Value ChunkTile::carryMaximum(Value t, Value keyMaxima) {
  int64_t lanes = shape.lanes;
  Value maximum = scan.getRunningMax();
  SmallVector<Value> place{slot, head};
  Value old = splat(load(maximum, place), lanes);
  Value best = larger(old, keyMaxima);
  for (int64_t step = 1; step < lanes; step *= 2)
    best = larger(best, delayed(best, old, step));
  store(vector::ExtractOp::create(b, loc, best, ArrayRef<int64_t>{lanes - 1}),
        maximum, place);
  // −∞ − −∞, before the first key, is NaN.
  Value least = lowest(vectorType(lanes));
  Value shifts = maxf(best, least);
  Value past = delayed(shifts, maxf(old, least), 1);
  storeVector(exp(subf(past, shifts)), rescales, {t});
  return shifts;
}

/// Packs one operand after the other, so that a loop over tokens has few
/// addresses to keep.
void ChunkTile::packTokens() {
  forEach(count, [&](Value t) { packKeysOf(t); });
  forEach(count, [&](Value t) { packValuesOf(t); });
  if (valueRead)
    forEach(count, [&](Value t) { packValueQuery(t); });
  if (channelGates)
    forEach(count, [&](Value t) { packChannelGate(t); });
  if (valueRead.decayWrites)
    decayWrites();
  if (!queries)
    return;
  forEachMember([&](Value member) {
    Value queryHeadOf = queryHead(member);
    stageQueries(queryHeadOf, first, count);
    forEach(count, [&](Value t) {
      packQuery(tokenAt(add(first, t)), queryHeadOf, queries, {member, t},
                queryShifts ? load(queryShifts, {member, t}) : Value());
      if (own)
        store(ownWeight(queries, {member, t}, keys, {t}), own, {member, t});
    });
  });
}

/// Packs a token's operands of the size of keys, except its query and its
/// decays, and its scalars.
void ChunkTile::packKeysOf(Value t) {
  Value token = tokenAt(add(first, t));
  Value rescale =
      packKey(token, keys, {t}, keyShifts ? load(keyShifts, {t}) : Value());
  // An input gate carries the maximum token by token.
  if (rescale)
    store(rescale, rescales, {t});
  if (maxima)
    store(load(scan.getRunningMax(), {slot, head}), maxima, {t});
  Value beta;
  if (betas) {
    beta = written(convert(load(scan.getBeta(), {batch, head, token}), type),
                   token);
    store(beta, betas, {t});
  }
  if (bRows)
    packGate(scan.getB(), token, bRows, {t});
  if (transition)
    packTransition(token, keys, {t}, transition, {t}, beta);
  // Logarithms for now; a rescaling is a factor and goes beside them.
  if (gates)
    store(logarithmOfDecay(token), gates, {t});
}

void ChunkTile::packValuesOf(Value t) {
  Value token = tokenAt(add(first, t));
  packValue(token, values, {t}, betas ? load(betas, {t}) : Value());
  if (columnBetas)
    packGate(scan.getBeta(), token, columnBetas, {t});
  if (writeGates)
    packGate(scan.getWrite(), token, writeGates, {t});
}

/// The factors of a token's channels, with that of a running maximum.
void ChunkTile::packChannelGate(Value t) {
  packGate(scan.getDecay(), tokenAt(add(first, t)), channelGates, {t},
           /*exponential=*/true, residual);
  if (!rescales)
    return;
  Value rescale = splat(load(rescales, {t}), shape.lanes);
  reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value gate = loadVector(channelGates, {t, d}, shape.lanes);
    storeVector(mulf(gate, rescale), channelGates, {t, d});
    return {};
  });
}

/// Multiplies keys with the decay of their token.
void ChunkTile::decayWrites() {
  int64_t lanes = shape.lanes;
  if (writeFactors)
    forEach(index(0), count, lanes, [&](Value t) {
      storeVector(exp(loadVector(gates, {t}, lanes)), writeFactors, {t});
    });
  forEach(count, [&](Value t) {
    Value factor =
        writeFactors ? splat(load(writeFactors, {t}), lanes) : Value();
    reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
      Value k = loadVector(keys, {t, d}, lanes);
      Value decay = factor ? factor : loadVector(channelGates, {t, d}, lanes);
      storeVector(mulf(k, decay), keys, {t, d});
      return {};
    });
  });
}

/// A token that pads the chunk: zero rows, gates of one.
void ChunkTile::clearToken(Value t) {
  fillRow(keys, {t}, 0.0);
  fillRow(values, {t}, 0.0);
  if (valueQueries)
    fillRow(valueQueries, {t}, 0.0);
  if (bRows)
    fillRow(bRows, {t}, 0.0);
  if (transition)
    fillRow(transition, {t}, 0.0);
  if (columnBetas)
    fillRow(columnBetas, {t}, 0.0);
  if (writeGates)
    fillRow(writeGates, {t}, 0.0);
  if (channelGates)
    fillRow(channelGates, {t}, 1.0);
  auto clear = [&](Value numbers, double value) {
    if (numbers)
      store(constant(type, value), numbers, {t});
  };
  clear(betas, 0.0);
  clear(gates, 0.0);
  clear(rescales, 1.0);
  if (!queries)
    return;
  forEachMember([&](Value member) {
    fillRow(queries, {member, t}, 0.0);
    if (own)
      store(constant(type, 0.0), own, {member, t});
  });
}
