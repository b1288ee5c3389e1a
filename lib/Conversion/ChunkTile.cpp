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

ChunkTile::ChunkTile(OpBuilder &b, ScanOp scan, TileShape shape,
                     ChunkSizes sizes, ValueRead valueRead)
    : ScanTile(b, scan, shape), chunk(sizes.chunk), whole(sizes.whole),
      startsAtZero(sizes.startsAtZero), endsUnused(sizes.endsUnused),
      valueRead(valueRead) {
  if (OutputNormOp norm = findEpilogue(scan))
    epilogue.emplace(b, norm, shape.lanes, /*isEpilogue=*/true);
  // Rows come in fours, so that loops over them can be unrolled by four.
  rowsAtOnce = std::clamp<int64_t>(shape.rows, 4, 16);
  // Fewer tokens than a chunk need no more scratch than they are.
  int64_t tokens = cast<ShapedType>(scan.getKey().getType()).getDimSize(2);
  if (!ShapedType::isDynamic(tokens)) {
    if (tokens > whole && !scan.getCuSeqlens())
      whole = 0;
    chunk = std::clamp<int64_t>(tokens, 1, chunk);
    whole = std::min(whole, tokens);
  }
  // One chunk of that size is nothing else.
  if (whole <= chunk)
    whole = 0;
  padded =
      llvm::alignTo(std::max(chunk, whole), std::max(rowsAtOnce, shape.lanes));
}

void ChunkTile::emit() {
  // Each task of a state packs the keys anew and makes the scores, a fifth of
  // the work: one state alone is halved, for the sake of threads.
  // A read along the values sums over all panels.
  int64_t enoughTasks = valueRead ? 1 : 2;
  forEachTask(rowsAtOnce, [&] { emitTask(); }, enoughTasks, chunk);
}

void ChunkTile::emitTask() {
  length = chooseLength();
  allocateScratch();
  loadState();
  auto loop = scf::ForOp::create(b, loc, from, to, length);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    emitChunk(loop.getInductionVar());
  }
  storeState();
  if (epilogue)
    epilogue->freeScratch();
}

/// The norm of the chunk's rows, which are whole now.
void ChunkTile::emitEpilogue() {
  forEachMember([&](Value member) {
    forEach(count, [&](Value t) {
      epilogue->emit({batch, outputHead(member), tokenAt(add(first, t))},
                     normRows, {member, t});
    });
  });
}

/// The tokens of a chunk follow from the length of the task's own sequence.
Value ChunkTile::chooseLength() {
  if (!whole)
    return index(chunk);
  Value tokens = sub(end, begin);
  if (std::optional<int64_t> known = getConstantIntValue(tokens))
    return index(*known <= whole ? std::max<int64_t>(*known, 1) : chunk);
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                        tokens, index(whole));
  return select(isWhole, index(whole), index(chunk));
}

void ChunkTile::emitChunk(Value position) {
  first = position;
  count = min(sub(to, first), length);
  rows = roundUp(count, rowsAtOnce);
  if (startsAtZero)
    reads = compare(arith::CmpIPredicate::ne, first, begin);
  if (endsUnused)
    writes = compare(arith::CmpIPredicate::slt, add(first, length), end);
  if (prefetches())
    findNext();
  if (residual && hasChannelDecay())
    fillRow(residual, {}, 0.0);
  stageTokens(first, count);
  if (keyShifts)
    findShifts();
  packTokens();
  // Padding of the chunk writes and decays nothing. Reads end at the next
  // vector, or two blocks of rows.
  int64_t most =
      std::max(shape.lanes, rowsAtOnce * (padded % (2 * rowsAtOnce) ? 1 : 2));
  forEach(count, roundUp(count, most), 1, [&](Value t) { clearToken(t); });
  emitScores();
  if (z)
    updateNormalizer();
  forEach(panelCount, [&](Value panel) { sweepPanel(panel); });
  if (valueRead)
    writeValueReads();
  if (epilogue)
    emitEpilogue();
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
  allocateStaged(padded, valueRead.query);
  keys = scratch({tokens, features});
  values = scratch({tokens, columns});
  if (!readsTransition()) {
    queries = scratch({members, tokens, features});
    queryScores = scratch({members, pairs, tokens, tokens});
  }
  // All panels where that is a number: what is not used is not touched.
  bool isKnown = getConstantIntValue(panelsPerTask).has_value();
  OpFoldResult mostPanels =
      getAsOpFoldResult(isKnown ? panelsPerTask : panels());
  tile = scratch({mostPanels, features, width});
  outputRows = scratch({b.getIndexAttr(rowsAtOnce), width});
  if (epilogue) {
    epilogue->allocate();
    normRows = scratch({members, tokens, columns});
  }
  if (hasTransition()) {
    if (readsKeys())
      readFactors = scratch({tokens});
    else
      transition = scratch({tokens, features});
    transitionScores = scratch({one, pairs, tokens, tokens});
    solved = scratch({tokens, width});
  }
  if (writers() > 1)
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
    // A vector of tokens after the other: a short chunk fills its lines.
    OpFoldResult vectors = b.getIndexAttr(padded / shape.lanes),
                 lanes = b.getIndexAttr(shape.lanes);
    keysT = scratch({vectors, features, lanes});
    if (bRows)
      bT = scratch({vectors, features, lanes});
  }
  if (valueRead)
    allocateValueRead();
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
  // Only f32 states need the residual.
  if (scan.getDecay() && !scan.getRunningMax() && type.isF32())
    residual = scratch({hasChannelDecay() ? features : one});
  if (scan.getNormalizer()) {
    z = scratch({features});
    inverses = scratch({members, tokens});
    if (hasMovingFloor())
      maxima = scratch({tokens});
  }
}

/// Runs `body` where the condition holds, which is always so without one.
void ChunkTile::ifTrue(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  if (std::optional<int64_t> known = getConstantIntValue(condition))
    return *known ? body() : void();
  ifThen(condition, body);
}

/// The state comes from memory, or is zero where a sequence begins. A sequence
/// of one chunk whose state is not used either has none.
void ChunkTile::loadState() {
  if (!startsAtZero) {
    readPanels();
  } else {
    Value starts = compare(arith::CmpIPredicate::eq, from, begin);
    auto branch = scf::IfOp::create(b, loc, starts, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value isUsed;
    if (endsUnused)
      isUsed = compare(arith::CmpIPredicate::slt, length, sub(end, begin));
    ifTrue(isUsed, [&] { clearPanels(); });
    b.setInsertionPointToStart(branch.elseBlock());
    readPanels();
  }
  if (!z)
    return;
  Value normalizer = scan.getNormalizer(), size = dim(scan.getState(), 2);
  Value whole = wholeVectors(size);
  forEach(index(0), whole, shape.lanes, [&](Value d) {
    storeVector(readOperand(normalizer, {slot, head, d}, shape.lanes), z, {d});
  });
  fillRow(z, {}, 0.0, whole);
}

void ChunkTile::clearPanels() {
  forEach(panelCount, [&](Value panel) {
    forEach(keySize, [&](Value d) {
      storeVector(zeros(shape.cols), tile, {panel, d, index(0)});
    });
  });
}

/// Copies the state into panels, rows and columns past the end zero.
void ChunkTile::readPanels() {
  Value state = scan.getState(), size = dim(state, 2);
  forEach(panelCount, [&](Value panel) {
    Value start = columnOf(panel);
    loadPanel(state, {slot, head}, start, tile, {panel});
    forEach(size, keySize, 1, [&](Value d) {
      storeVector(zeros(shape.cols), tile, {panel, d, index(0)});
    });
  });
}

void ChunkTile::storeState() {
  Value isUsed;
  if (endsUnused)
    isUsed = compare(arith::CmpIPredicate::ne, to, end);
  ifTrue(isUsed, [&] { writePanels(); });
  Value size = dim(scan.getState(), 2);
  if (z)
    forEach(index(0), size, shape.lanes, [&](Value d) {
      writeOperand(loadVector(z, {d}, shape.lanes), scan.getNormalizer(),
                   {slot, head, d});
    });
}

void ChunkTile::writePanels() {
  forEach(panelCount, [&](Value panel) {
    storePanel(scan.getState(), {slot, head}, columnOf(panel), tile, {panel});
  });
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void mlir::linattn::lowerToChunkTile(OpBuilder &b, ScanOp op, TileShape shape,
                                     ChunkSizes sizes, LengthRange range,
                                     ValueRead valueRead) {
  ChunkTile tile(b, op, shape, sizes, valueRead);
  tile.lengths = range;
  tile.emit();
}
