//===- StateTilePack.cpp - Packing tokens for the state tile --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateTile.h"

using namespace mlir;
using namespace mlir::linattn;

/// The token behind position t of the block.
Value StateTile::tokenAtPosition(Value position) {
  if (!reverse)
    return position;
  return sub(sub(add(begin, end), index(1)), position);
}

/// A block's operands but its queries; `lowest` is its first token in memory.
void StateTile::packKeys(Value lowest, Value count) {
  auto stage = [&](StagedRows &staged, Value operand) {
    if (staged)
      stageRows(staged, operand, batch, headOf(operand, head, heads), lowest,
                count);
  };
  stage(stagedKeys, key);
  stage(stagedValues, value);
  stage(stagedDecays, decay);
  stage(stagedValueDecays, valueDecay);
  forEach(count, [&](Value t) { packKey(t); });
}

void StateTile::packQueries(Value lowest, Value count) {
  if (!stagedQueries)
    return forEach(count, [&](Value t) {
      forEachMember([&](Value member) { packQuery(member, t); });
    });
  forEachMember([&](Value member) {
    Value rowHead = headOf(query, outputHead(member), dim(output, 1));
    stageRows(stagedQueries, query, batch, rowHead, lowest, count);
    forEach(count, [&](Value t) { packQuery(member, t); });
  });
}

/// Raises the running maximum; returns e^(old − new), the factor of the past.
Value StateTile::raiseRunningMax(Value keyRowMax, Value keep) {
  Value old = load(state.runningMax, {slot, head});
  Value best = maxf(old, keyRowMax);
  if (keep)
    best = select(keep, best, old);
  store(best, state.runningMax, {slot, head});
  // −∞ − −∞, before the first key, is NaN.
  return exp(subf(maxf(old, lowest(type)), maxf(best, lowest(type))));
}

/// m_t = max(decay_t + m_{t-1}, input_gate_t). Returns the factor of the past,
/// e^(decay_t + m_{t-1} − m_t), and sets that of the key, e^(input_gate_t −
/// m_t).
Value StateTile::openInputGate(Value token, Row &row) {
  Value old = load(state.runningMax, {slot, head});
  Value log = constant(type, 0.0);
  if (decay)
    log = convert(rankOf(decay) == 1 ? load(decay, {head})
                                     : load(decay, {batch, head, token}),
                  type);
  Value opened = convert(load(inputGate, {batch, head, token}), type);
  Value faded = addf(old, log), best = maxf(faded, opened);
  if (row.keep)
    best = select(row.keep, best, faded);
  store(best, state.runningMax, {slot, head});
  Value to = maxf(best, lowest(type));
  row.gain = exp(subf(opened, to));
  // In this order the rounding of m_t is made up for.
  return exp(addf(subf(maxf(old, lowest(type)), to), log));
}

void StateTile::packKey(Value t) {
  Value token = tokenAt(t);
  Row row;
  row.from(placeOf(key, stagedKeys, headOf(key, head, heads), token));
  if (mask)
    row.keep = load(mask, {batch, token});
  Value rescale;
  if (needsRowMax(op.getFeatureMapKind(), stabilised)) {
    row.shift = rowMaximum(row.source, row.index);
    if (state.runningMax && !inputGate) {
      rescale = raiseRunningMax(row.shift, row.keep);
      row.shift = maxf(load(state.runningMax, {slot, head}), lowest(type));
    }
  }
  if (inputGate)
    rescale = openInputGate(token, row);
  if (maxima)
    store(load(state.runningMax, {slot, head}), maxima, {t});
  packRow(row, keys, t);

  Row valueRow;
  valueRow.from(
      placeOf(value, stagedValues, headOf(value, head, heads), token));
  valueRow.mapped = false;
  // A masked token writes nothing, not even 0 · NaN.
  valueRow.keep = row.keep;
  packRow(valueRow, values, t);
  packGates(t, rescale);
}

void StateTile::packGates(Value t, Value rescale) {
  Value token = tokenAt(t);
  if (hasScalarGate()) {
    Value gate = rescale;
    if (decay && rankOf(decay) != 4 && !inputGate) {
      Value log = rankOf(decay) == 1 ? load(decay, {head})
                                     : load(decay, {batch, head, token});
      Value factor = exp(convert(log, type));
      gate = gate ? mulf(gate, factor) : factor;
    }
    store(gate, scalarGates, {t});
  }
  // To the padded size: a zero of the state times unwritten memory may be NaN.
  // The padding may be several vectors: of these nothing may be read.
  auto packVector = [&](Value gate, const StagedRows &staged, Value size,
                        Value target) {
    Place place = placeOf(gate, staged, head, token);
    Value end = roundUp(dim(gate, 3), shape.lanes);
    forEach(index(0), end, shape.lanes, [&](Value d) {
      SmallVector<Value> at(place.index);
      at.push_back(d);
      Value log = readOperand(place.source, at, shape.lanes);
      storeVector(exp(log), target, {t, d});
    });
    Value one = constant(vectorType(shape.lanes), 1.0);
    forEach(end, size, shape.lanes,
            [&](Value d) { storeVector(one, target, {t, d}); });
  };
  if (hasChannelGate())
    packVector(decay, stagedDecays, keySize, channelGates);
  if (valueDecay)
    packVector(valueDecay, stagedValueDecays, valueSize, valueGates);
}

void StateTile::packQuery(Value member, Value t) {
  Value token = tokenAt(t);
  Row row;
  row.from(placeOf(query, stagedQueries,
                   headOf(query, outputHead(member), dim(output, 1)), token));
  if (needsRowMax(op.getFeatureMapKind(), stabilised))
    row.shift = rowMaximum(row.source, row.index);
  row.scale = scale;
  packRow(row, queries, {member, t});
  if (denominators)
    storeVector(zeros(shape.lanes), denominators, {member, t, index(0)});
  if (!bonus)
    return;
  // q·(u ⊙ k), the weight of the token's own value.
  Value end = roundUp(dim(bonus, 1), shape.lanes);
  Value sum = reduce(index(0), end, shape.lanes, zeros(shape.lanes),
                     [&](Value d, ValueRange carried) -> SmallVector<Value> {
                       Value q =
                           loadVector(queries, {member, t, d}, shape.lanes);
                       Value k = loadVector(keys, {t, d}, shape.lanes);
                       Value u = readOperand(bonus, {head, d}, shape.lanes);
                       return {fmaVector(q, mulf(u, k), carried.front())};
                     })
                  .front();
  store(reduceVector(vector::CombiningKind::ADD, sum), ownWeights, {member, t});
}
