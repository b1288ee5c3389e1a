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

/// A block's operands but its queries, one operand after the other: rows of
/// several may fall into the same sets of a cache. Without queries the first
/// cache holds the block's keys and values, and those of a token are packed
/// together.
void StatePack::packKeys() {
  stageTokens();
  forEach(count, [&](Value t) {
    packKeyOf(t);
    if (!r.query)
      packValueOf(t);
  });
  if (r.query)
    forEach(count, [&](Value t) { packValueOf(t); });
  if (hasChannelDecay())
    forEach(count, [&](Value t) {
      packGatesOf(r.decay, t, keySize, packed.channelGates);
    });
  if (r.valueDecay)
    forEach(count, [&](Value t) {
      packGatesOf(r.valueDecay, t, valueSize, packed.valueGates);
    });
}

void StatePack::packQueries() {
  if (!stagedQueries)
    return forEach(count, [&](Value t) {
      forEachMember([&](Value member) { packQueryOf(member, t); });
    });
  forEachMember([&](Value member) {
    stageQueries(queryHead(member));
    forEach(count, [&](Value t) { packQueryOf(member, t); });
  });
}

void StatePack::packKeyOf(Value t) {
  Value token = tokenAt(add(first, t));
  auto [row, rescale] = keyRow(token);
  if (packed.maxima)
    store(load(r.state.runningMax, {task.slot, task.head}), packed.maxima, {t});
  packRow(row, packed.keys, t);
  if (!owner.hasAnyScalarGate())
    return;
  Value gate = rescale;
  if (hasScalarDecay()) {
    Value factor = exp(loadGate(r.decay, {task.batch, task.head, token}));
    gate = gate ? mulf(gate, factor) : factor;
  }
  store(gate, packed.scalarGates, {t});
}

void StatePack::packValueOf(Value t) {
  packValue(tokenAt(add(first, t)), packed.values, {t});
}

/// To the padded size: a zero of the state times unwritten memory may be NaN.
/// The padding may be several vectors: of these nothing may be read.
void StatePack::packGatesOf(Value gate, Value t, Value size, Value target) {
  Place place = placeOf(gate, task.head, tokenAt(add(first, t)));
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
}

void StatePack::packQueryOf(Value member, Value t) {
  packQuery(tokenAt(add(first, t)), queryHead(member), packed.queries,
            {member, t});
  if (buffers.denominators)
    storeVector(zeros(shape.lanes), buffers.denominators,
                {member, t, index(0)});
  if (!r.bonus)
    return;
  // q·(u ⊙ k), the weight of the token's own value.
  Value end = roundUp(dim(r.bonus, 1), shape.lanes);
  Value sum =
      reduce(index(0), end, shape.lanes, zeros(shape.lanes),
             [&](Value d, ValueRange carried) -> SmallVector<Value> {
               Value q =
                   loadVector(packed.queries, {member, t, d}, shape.lanes);
               Value k = loadVector(packed.keys, {t, d}, shape.lanes);
               Value u = readOperand(r.bonus, {task.head, d}, shape.lanes);
               return {fmaVector(q, mulf(u, k), carried.front())};
             })
          .front();
  store(reduceVector(vector::CombiningKind::ADD, sum), packed.ownWeights,
        {member, t});
}

Value StatePack::emitAnyRescaling() {
  Value none = arith::ConstantIntOp::create(b, loc, 0, 1);
  return reduce(count, none, [&](Value t, Value any) -> Value {
    Value differs = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE,
                                          load(packed.scalarGates, {t}),
                                          constant(type, 1.0));
    return arith::OrIOp::create(b, loc, any, differs);
  });
}

//===----------------------------------------------------------------------===//
// Normaliser
//===----------------------------------------------------------------------===//

/// z ← γ z + k token by token, den += q ⊙ z, one vector of features at a time.
void StatePack::updateNormalizer() {
  int64_t lanes = shape.lanes;
  forEach(index(0), keySize, lanes, [&](Value d) {
    Value total =
        reduce(
            index(0), count, 1, loadVector(buffers.z, {d}, lanes),
            [&](Value t, ValueRange carried) -> SmallVector<Value> {
              Value sum = carried.front();
              if (r.key) {
                if (owner.hasAnyScalarGate())
                  sum = mulf(sum, splat(load(packed.scalarGates, {t}), lanes));
                if (hasChannelDecay())
                  sum =
                      mulf(sum, loadVector(packed.channelGates, {t, d}, lanes));
                sum = addf(sum, loadVector(packed.keys, {t, d}, lanes));
              }
              if (r.query)
                forEachMember([&](Value member) {
                  Value q = loadVector(packed.queries, {member, t, d}, lanes);
                  SmallVector<Value> at{member, t, index(0)};
                  Value den = loadVector(buffers.denominators, at, lanes);
                  storeVector(fmaVector(q, sum, den), buffers.denominators, at);
                });
              return {sum};
            })
            .front();
    storeVector(total, buffers.z, {d});
  });
  if (!r.query)
    return;
  forEach(count, [&](Value t) {
    forEachMember([&](Value member) {
      Value den = reduceVector(
          vector::CombiningKind::ADD,
          loadVector(buffers.denominators, {member, t, index(0)}, lanes));
      Value runningMax;
      if (hasMovingFloor())
        runningMax = packed.maxima
                         ? load(packed.maxima, {t})
                         : load(r.state.runningMax, {task.slot, task.head});
      store(emitInverseDenominator(b, loc, *r.normalize, tokenType, den,
                                   runningMax),
            buffers.inverses, {member, t});
    });
  });
}
