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

ChunkPlan::ChunkPlan(ScanOp scan, TileShape shape, ChunkSizes sizes,
                     ValueRead valueRead)
    : chunk(sizes.chunk), whole(sizes.whole),
      // Rows come in fours, so that loops over them can be unrolled by four.
      rowsAtOnce(std::clamp<int64_t>(shape.rows, 4, 16)),
      startsAtZero(sizes.startsAtZero), endsUnused(sizes.endsUnused),
      valueRead(valueRead), norm(findEpilogue(scan)) {
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

//===----------------------------------------------------------------------===//
// Tasks and chunks
//===----------------------------------------------------------------------===//

ChunkTask::ChunkTask(const ScanTile &tile, const Task &task,
                     const ChunkPlan &plan)
    : ScanTask(tile, task, plan.padded, plan.valueRead.query), plan(plan),
      length(chooseLength()) {
  allocate();
}

void ChunkTask::emit() {
  loadState();
  auto loop = scf::ForOp::create(b, loc, task.from, task.to, length);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    emitChunk(loop.getInductionVar());
  }
  storeState();
  if (epilogue)
    epilogue->freeScratch();
  freeScratch();
}

/// The tokens of a chunk follow from the length of the task's own sequence.
Value ChunkTask::chooseLength() {
  if (!plan.whole)
    return index(plan.chunk);
  Value tokens = sub(task.end, task.begin);
  if (std::optional<int64_t> known = getConstantIntValue(tokens))
    return index(*known <= plan.whole ? std::max<int64_t>(*known, 1)
                                      : plan.chunk);
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                        tokens, index(plan.whole));
  return select(isWhole, index(plan.whole), index(plan.chunk));
}

ChunkBlock::ChunkBlock(ChunkTask &task, Value first)
    : ScanBlock(task, first, task.countTokens(first)), plan(task.plan),
      packed(task.packed), numbers(task.numbers), scores(task.scores),
      panel(task.panel), along(task.along), length(task.length),
      rows(roundUp(count, plan.rowsAtOnce)),
      reads(plan.startsAtZero
                ? compare(arith::CmpIPredicate::ne, first, this->task.begin)
                : Value()),
      writes(plan.endsUnused ? compare(arith::CmpIPredicate::slt,
                                       add(first, length), this->task.end)
                             : Value()) {}

void ChunkTask::emitChunk(Value first) {
  ChunkBlock chunk(*this, first);
  ChunkPack(chunk).emit();
  ChunkScores(chunk).emit();
  ChunkPrefetch::Next next = ChunkPrefetch::findNext(chunk);
  forEach(task.panelCount,
          [&](Value number) { ChunkSweep(chunk, next, number).emit(); });
  if (plan.valueRead)
    ChunkValueRead(chunk).write();
  if (epilogue)
    chunk.emitNorm(*epilogue, panel.normRows);
}

void ChunkTask::allocate() {
  OpFoldResult tokens = b.getIndexAttr(plan.padded);
  OpFoldResult columns = getAsOpFoldResult(valueSize);
  OpFoldResult features = getAsOpFoldResult(keySize);
  // Without a group the first one is read all the same, to no end.
  OpFoldResult groupSize = getAsOpFoldResult(max(group, index(1)));
  OpFoldResult one = b.getIndexAttr(1);
  OpFoldResult width = b.getIndexAttr(shape.cols);
  OpFoldResult pairs = b.getIndexAttr(writers());
  packed.keys = scratch({tokens, features});
  packed.values = scratch({tokens, columns});
  if (!readsTransition()) {
    packed.queries = scratch({groupSize, tokens, features});
    scores.queries = scratch({groupSize, pairs, tokens, tokens});
  }
  // All panels where that is a number: what is not used is not touched.
  bool isKnown = getConstantIntValue(task.mostPanels).has_value();
  OpFoldResult mostPanels =
      getAsOpFoldResult(isKnown ? task.mostPanels : panels());
  panel.state = scratch({mostPanels, features, width});
  panel.outputRows = scratch({b.getIndexAttr(plan.rowsAtOnce), width});
  if (plan.norm) {
    epilogue.emplace(b, plan.norm, shape.lanes, /*isEpilogue=*/true);
    panel.normRows = scratch({groupSize, tokens, columns});
  }
  if (hasTransition()) {
    if (readsKeys())
      numbers.readFactors = scratch({tokens});
    else
      packed.transition = scratch({tokens, features});
    scores.transition = scratch({one, pairs, tokens, tokens});
    panel.solved = scratch({tokens, width});
  }
  if (writers() > 1)
    packed.b = scratch({tokens, features});
  if (Value beta = r.beta)
    (rankOf(beta) == 4 ? packed.columnBetas : numbers.betas) =
        scratch(rankOf(beta) == 4 ? SmallVector<OpFoldResult>{tokens, columns}
                                  : SmallVector<OpFoldResult>{tokens});
  if (r.write)
    packed.writeGates = scratch({tokens, columns});
  if (r.bonus)
    numbers.own = scratch({groupSize, tokens});
  allocateNumbers();
}

/// The buffers of decays, shifts and the normaliser.
void ChunkTask::allocateNumbers() {
  OpFoldResult tokens = b.getIndexAttr(plan.padded), one = b.getIndexAttr(1);
  OpFoldResult features = getAsOpFoldResult(keySize);
  OpFoldResult groupSize = getAsOpFoldResult(max(group, index(1)));
  if (hasChannelDecay()) {
    packed.channelGates = scratch({tokens, features});
    scores.total = scratch({features});
  } else {
    // A vector of tokens after the other: a short chunk fills its lines.
    OpFoldResult vectors = b.getIndexAttr(plan.padded / shape.lanes),
                 lanes = b.getIndexAttr(shape.lanes);
    scores.keysT = scratch({vectors, features, lanes});
    if (packed.b)
      scores.bT = scratch({vectors, features, lanes});
  }
  if (plan.valueRead)
    allocateValueRead();
  if (r.state.runningMax)
    numbers.rescales = scratch({tokens});
  if (needsRowMax(op.getFeatureMapKind(), isStabilised())) {
    numbers.keyShifts = scratch({tokens});
    numbers.queryShifts = scratch({groupSize, tokens});
  }
  if (hasScalarGate()) {
    OpFoldResult oneMore = b.getIndexAttr(plan.padded + 1);
    if (hasScalarDecay())
      numbers.gates = scratch({tokens});
    numbers.cumulated = scratch({oneMore});
    scores.decays = scratch({oneMore, tokens});
  }
  // Only f32 states need the residual.
  if (r.decay && !r.state.runningMax && type.isF32())
    scores.residual = scratch({hasChannelDecay() ? features : one});
  if (r.state.normalizer) {
    panel.z = scratch({features});
    numbers.inverses = scratch({groupSize, tokens});
    if (hasMovingFloor())
      numbers.maxima = scratch({tokens});
  }
}

void ChunkTask::allocateValueRead() {
  if (plan.valueRead.decayWrites && !hasChannelDecay())
    along.writeFactors = scratch({b.getIndexAttr(plan.padded)});
  OpFoldResult tokens = b.getIndexAttr(plan.padded), one = b.getIndexAttr(1),
               columns = getAsOpFoldResult(valueSize),
               features = getAsOpFoldResult(keySize),
               lanes = b.getIndexAttr(shape.lanes),
               vectors = b.getIndexAttr(plan.padded / shape.lanes);
  along.queries = scratch({tokens, columns});
  along.queriesT = scratch({vectors, columns, lanes});
  if (!solvesWritten())
    along.valuesT = scratch({vectors, columns, lanes});
  along.scores = scratch({one, b.getIndexAttr(writers()), tokens, tokens});
  along.products = scratch({vectors, features, lanes});
  along.rows = scratch({tokens, features});
  if (hasChannelDecay())
    along.factors = scratch({tokens, features});
  if (!hasTransition())
    return;
  along.solved = scratch({vectors, tokens, lanes});
  if (hasChannelDecay())
    along.laterKeys = scratch({tokens, features});
}

/// The state comes from memory, or is zero where a sequence begins. A sequence
/// of one chunk whose state is not used either has none.
void ChunkTask::loadState() {
  if (!plan.startsAtZero) {
    readPanels();
  } else {
    Value starts = compare(arith::CmpIPredicate::eq, task.from, task.begin);
    auto branch = scf::IfOp::create(b, loc, starts, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value isUsed;
    if (plan.endsUnused)
      isUsed =
          compare(arith::CmpIPredicate::slt, length, sub(task.end, task.begin));
    ifTrue(isUsed, [&] { clearPanels(); });
    b.setInsertionPointToStart(branch.elseBlock());
    readPanels();
  }
  if (panel.z)
    loadNormalizer(panel.z);
}

void ChunkTask::clearPanels() {
  forEach(task.panelCount, [&](Value number) {
    forEach(keySize, [&](Value d) {
      storeVector(zeros(shape.cols), panel.state, {number, d, index(0)});
    });
  });
}

/// Copies the state into panels, rows and columns past the end zero.
void ChunkTask::readPanels() {
  Value state = r.state.state, size = dim(state, 2);
  forEach(task.panelCount, [&](Value number) {
    Value start = columnOf(number);
    loadPanel(state, {task.slot, task.head}, start, panel.state, {number});
    forEach(size, keySize, 1, [&](Value d) {
      storeVector(zeros(shape.cols), panel.state, {number, d, index(0)});
    });
  });
}

void ChunkTask::storeState() {
  Value isUsed;
  if (plan.endsUnused)
    isUsed = compare(arith::CmpIPredicate::ne, task.to, task.end);
  ifTrue(isUsed, [&] {
    forEach(task.panelCount, [&](Value number) {
      storePanel(r.state.state, {task.slot, task.head}, columnOf(number),
                 panel.state, {number});
    });
  });
  if (panel.z)
    storeNormalizer(panel.z);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void mlir::linattn::lowerToChunkTile(OpBuilder &b, ScanOp op, TileShape shape,
                                     ChunkSizes sizes, LengthRange range,
                                     ValueRead valueRead) {
  ChunkPlan plan(op, shape, sizes, valueRead);
  Recurrence recurrence(op);
  if (plan.norm)
    recurrence.output = plan.norm.getOutput();
  ScanTile tile(b, recurrence, shape, plan.rowsAtOnce, range);
  // Each task of a state packs the keys anew and makes the scores, a fifth of
  // the work: one state alone is halved, for the sake of threads. A read along
  // the values sums over all panels.
  Value tasks = tile.index(1);
  if (!valueRead)
    tasks = tile.countColumnTasks(
        tile.div(tile.index(2), tile.max(tile.countStates(), tasks)));
  tile.forEachTask(
      tasks, /*spanMultiple=*/plan.chunk,
      [&](const ScanTile::Task &task) { ChunkTask(tile, task, plan).emit(); });
}
