//===- ChunkTilePack.cpp - Packing the tokens of a chunk ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkTile.h"

using namespace mlir;
using namespace mlir::linattn;

void ChunkTile::packToken(Value t) {
  Value token = tokenAt(add(first, t));
  Value rescale = packKey(token, keys, {t});
  if (maxima)
    store(load(scan.getRunningMax(), {slot, head}), maxima, {t});
  packValue(token, values, {t});
  if (update == Update::Dplr)
    packGate(scan.getB(), token, bRows, {t});
  if (hasTransition())
    packTransition(token, keys, {t}, transition, {index(0), t});
  if (columnBetas)
    packGate(scan.getBeta(), token, columnBetas, {t});
  if (betas)
    store(written(convert(load(scan.getBeta(), {batch, head, token}), type),
                  token),
          betas, {t});
  if (writeGates)
    packGate(scan.getWrite(), token, writeGates, {t});
  if (channelGates) {
    packGate(scan.getDecay(), token, channelGates, {t}, /*exponential=*/true,
             residual);
    if (rescale)
      reduceRow(keySize, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
        Value gate = loadVector(channelGates, {t, d}, shape.lanes);
        storeVector(mulf(gate, splat(rescale, shape.lanes)), channelGates,
                    {t, d});
        return {};
      });
  } else if (hasScalarGate()) {
    // Logarithms for now; a rescaling is no logarithm and goes beside them.
    if (hasScalarDecay())
      store(logarithmOfDecay(token), gates, {t});
    if (rescale)
      store(rescale, rescales, {t});
  }
  forEachMember([&](Value member) {
    packQuery(token, member, queries, {member, t});
    if (own)
      store(ownWeight(queries, {member, t}, keys, {t}), own, {member, t});
  });
}

/// A token that pads the chunk: zero rows, gates of one.
void ChunkTile::clearToken(Value t) {
  fillRow(keys, {t}, 0.0);
  fillRow(values, {t}, 0.0);
  if (bRows)
    fillRow(bRows, {t}, 0.0);
  if (transition)
    fillRow(transition, {index(0), t}, 0.0);
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
  forEachMember([&](Value member) {
    fillRow(queries, {member, t}, 0.0);
    if (own)
      store(constant(type, 0.0), own, {member, t});
  });
}
