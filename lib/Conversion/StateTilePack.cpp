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
  if (!r.reverse)
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
  stage(stagedKeys, r.key);
  stage(stagedValues, r.value);
  stage(stagedDecays, r.decay);
  stage(stagedValueDecays, r.valueDecay);
  forEach(count, [&](Value t) { packKey(t); });
}

void StateTile::packQueries(Value lowest, Value count) {
  if (!stagedQueries)
    return forEach(count, [&](Value t) {
      forEachMember([&](Value member) { packQuery(member, t); });
    });
  forEachMember([&](Value member) {
    Value rowHead = headOf(r.query, outputHead(member), dim(r.output, 1));
    stageRows(stagedQueries, r.query, batch, rowHead, lowest, count);
    forEach(count, [&](Value t) { packQuery(member, t); });
  });
}

void StateTile::packKey(Value t) {
  Value token = tokenAt(t);
  Row row;
  row.from(placeOf(r.key, stagedKeys, headOf(r.key, head, heads), token));
  if (r.mask)
    row.keep = load(r.mask, {batch, token});
  Value rescale;
  if (needsRowMax(op.getFeatureMapKind(), isStabilised())) {
    row.shift = rowMaximum(row.source, row.index);
    if (r.state.runningMax && !r.inputGate) {
      rescale = raiseRunningMax(r.state.runningMax, {slot, head}, row.shift,
                                row.keep);
      row.shift = maxf(load(r.state.runningMax, {slot, head}), lowest(type));
    }
  }
  if (r.inputGate)
    rescale = openInputGate(r.state.runningMax, {slot, head}, r.decay,
                            r.inputGate, {batch, head, token}, row);
  if (maxima)
    store(load(r.state.runningMax, {slot, head}), maxima, {t});
  packRow(row, keys, t);

  Row valueRow;
  valueRow.from(
      placeOf(r.value, stagedValues, headOf(r.value, head, heads), token));
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
    if (r.decay && rankOf(r.decay) != 4 && !r.inputGate) {
      Value factor = exp(loadGate(r.decay, {batch, head, token}));
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
    packVector(r.decay, stagedDecays, keySize, channelGates);
  if (r.valueDecay)
    packVector(r.valueDecay, stagedValueDecays, valueSize, valueGates);
}

void StateTile::packQuery(Value member, Value t) {
  Value token = tokenAt(t);
  Row row;
  row.from(placeOf(r.query, stagedQueries,
                   headOf(r.query, outputHead(member), dim(r.output, 1)),
                   token));
  if (needsRowMax(op.getFeatureMapKind(), isStabilised()))
    row.shift = rowMaximum(row.source, row.index);
  row.scale = r.scale;
  packRow(row, queries, {member, t});
  if (denominators)
    storeVector(zeros(shape.lanes), denominators, {member, t, index(0)});
  if (!r.bonus)
    return;
  // q·(u ⊙ k), the weight of the token's own value.
  Value end = roundUp(dim(r.bonus, 1), shape.lanes);
  Value sum = reduce(index(0), end, shape.lanes, zeros(shape.lanes),
                     [&](Value d, ValueRange carried) -> SmallVector<Value> {
                       Value q =
                           loadVector(queries, {member, t, d}, shape.lanes);
                       Value k = loadVector(keys, {t, d}, shape.lanes);
                       Value u = readOperand(r.bonus, {head, d}, shape.lanes);
                       return {fmaVector(q, mulf(u, k), carried.front())};
                     })
                  .front();
  store(reduceVector(vector::CombiningKind::ADD, sum), ownWeights, {member, t});
}
