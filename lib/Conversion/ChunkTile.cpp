//===- ChunkTile.cpp - The chunk schedule of a scan -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkTile.h"

using namespace mlir;
using namespace mlir::linattn;

ChunkTile::ChunkTile(OpBuilder &b, ScanOp scan, TileShape shape, int64_t size)
    : ScanTile(b, scan, shape), chunk(size) {
  // Rows come in fours, so that loops over them can be unrolled by four.
  rowsAtOnce = std::clamp<int64_t>(shape.rows, 4, 16);
  // Fewer tokens than a chunk need no more scratch than they are.
  int64_t tokens = cast<ShapedType>(scan.getKey().getType()).getDimSize(2);
  if (!ShapedType::isDynamic(tokens))
    chunk = std::clamp<int64_t>(tokens, 1, chunk);
  padded = llvm::alignTo(chunk, std::max(rowsAtOnce, shape.lanes));
}

void ChunkTile::emit() {
  // Each task of a state packs the keys anew and makes the scores, a fifth of
  // the work: one state alone is halved, for the sake of threads.
  constexpr int64_t enoughTasks = 2;
  forEachTask(rowsAtOnce, [&] { emitTask(); }, enoughTasks, chunk);
}

void ChunkTile::emitTask() {
  allocateScratch();
  loadState();
  forEach(from, to, chunk, [&](Value position) { emitChunk(position); });
  storeState();
}

void ChunkTile::emitChunk(Value position) {
  first = position;
  count = min(sub(to, first), index(chunk));
  rows = roundUp(count, rowsAtOnce);
  if (prefetches())
    findNext();
  if (residual && hasChannelDecay())
    fillRow(residual, {}, 0.0);
  if (keyShifts)
    findShifts();
  packTokens();
  // What pads the chunk writes nothing and decays nothing.
  forEach(count, index(padded), 1, [&](Value t) { clearToken(t); });
  emitScores();
  if (z)
    updateNormalizer();
  forEach(panelCount, [&](Value panel) { sweepPanel(panel); });
}

void ChunkTile::allocateScratch() {
  OpFoldResult tokens = b.getIndexAttr(padded);
  OpFoldResult columns = getAsOpFoldResult(valueSize);
  OpFoldResult features = getAsOpFoldResult(keySize);
  // Without members the first one is read all the same, to no end.
  OpFoldResult members = getAsOpFoldResult(max(group, index(1)));
  OpFoldResult one = b.getIndexAttr(1);
  OpFoldResult width = b.getIndexAttr(shape.cols);
  OpFoldResult pairs = b.getIndexAttr(writers());
  keys = scratch({tokens, features});
  values = scratch({tokens, columns});
  queries = scratch({members, tokens, features});
  queryScores = scratch({members, pairs, tokens, tokens});
  tile = scratch({getAsOpFoldResult(panelsPerTask), features, width});
  outputRows = scratch({b.getIndexAttr(rowsAtOnce), width});
  if (hasTransition()) {
    if (readsKeys())
      readFactors = scratch({tokens});
    else
      transition = scratch({tokens, features});
    transitionScores = scratch({one, pairs, tokens, tokens});
    solved = scratch({tokens, width});
  }
  if (update == Update::Dplr)
    bRows = scratch({tokens, features});
  if (Value beta = scan.getBeta())
    (rankOf(beta) == 4 ? columnBetas : betas) =
        scratch(rankOf(beta) == 4 ? SmallVector<OpFoldResult>{tokens, columns}
                                  : SmallVector<OpFoldResult>{tokens});
  if (scan.getWrite())
    writeGates = scratch({tokens, columns});
  if (scan.getBonus())
    own = scratch({members, tokens});
  if (hasChannelDecay()) {
    channelGates = scratch({tokens, features});
    total = scratch({features});
  } else {
    keysT = scratch({features, tokens});
    if (bRows)
      bT = scratch({features, tokens});
  }
  if (scan.getRunningMax())
    rescales = scratch({tokens});
  if (needsRowMax(op.getFeatureMapKind(), isStabilised())) {
    keyShifts = scratch({tokens});
    queryShifts = scratch({members, tokens});
  }
  if (hasScalarGate()) {
    OpFoldResult oneMore = b.getIndexAttr(padded + 1);
    if (hasScalarDecay())
      gates = scratch({tokens});
    cumulated = scratch({oneMore});
    decays = scratch({oneMore, tokens});
  }
  // What is computed in f64 can afford to round.
  if (scan.getDecay() && !scan.getRunningMax() && type.isF32())
    residual = scratch({hasChannelDecay() ? features : one});
  if (scan.getNormalizer()) {
    z = scratch({features});
    inverses = scratch({members, tokens});
    if (hasMovingFloor())
      maxima = scratch({tokens});
  }
}

/// Copies the state into panels, rows and columns past the end zero.
void ChunkTile::loadState() {
  Value state = scan.getState(), size = dim(state, 2);
  forEach(panelCount, [&](Value panel) {
    Value start = columnOf(panel);
    forEach(index(0), size, 1, [&](Value d) {
      storeVector(readOperand(state, {slot, head, d, start}, shape.cols), tile,
                  {panel, d, index(0)});
    });
    forEach(size, keySize, 1, [&](Value d) {
      storeVector(zeros(shape.cols), tile, {panel, d, index(0)});
    });
  });
  if (!z)
    return;
  Value normalizer = scan.getNormalizer(), whole = wholeVectors(size);
  forEach(index(0), whole, shape.lanes, [&](Value d) {
    storeVector(readOperand(normalizer, {slot, head, d}, shape.lanes), z, {d});
  });
  fillRow(z, {}, 0.0, whole);
}

void ChunkTile::storeState() {
  Value state = scan.getState(), size = dim(state, 2);
  forEach(panelCount, [&](Value panel) {
    Value start = columnOf(panel);
    forEach(size, [&](Value d) {
      writeOperand(loadVector(tile, {panel, d, index(0)}, shape.cols), state,
                   {slot, head, d, start});
    });
  });
  if (z)
    forEach(index(0), size, shape.lanes, [&](Value d) {
      writeOperand(loadVector(z, {d}, shape.lanes), scan.getNormalizer(),
                   {slot, head, d});
    });
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void mlir::linattn::lowerToChunkTile(OpBuilder &b, ScanOp op, TileShape shape,
                                     int64_t chunk) {
  ChunkTile(b, op, shape, chunk).emit();
}
