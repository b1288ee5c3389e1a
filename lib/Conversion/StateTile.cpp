//===- StateTile.cpp - The state-tile schedule ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tile of S, rows × cols, stays in vector registers while a block of tokens
// streams past it: no QKᵀ, no exponential of a cumulated decay, exact for any
// gate. Columns are cut into panels; S is kept panel by panel so that a tile is
// contiguous. Per block:
//
//   pack    φ(q), φ(k), v and the gates, zero-padded to whole vectors
//   z       the normaliser's row and the denominators
//   sweep   for each panel, for each tile: S_i ← γ S_i + k_i v,
//           o ← o + q_i S_i; the last tile writes o · 1/den to the output
//
// While a block is swept, the rows of the next one are prefetched.
//
// Every element sees the same operations in the same order in any block,
// the panel or the number of threads: results are bitwise reproducible, and a
// sequence split anywhere gives the same bits.
//
//===----------------------------------------------------------------------===//

#include "StateTile.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Tasks and blocks
//===----------------------------------------------------------------------===//

StateTask::StateTask(const ScanTile &tile, const Task &task, bool tokenForm,
                     OutputNormOp norm)
    : ScanTask(tile, task, tile.shape.block), tokenForm(tokenForm),
      // A transposed state comes in whole blocks.
      tileRows(roundUp(
          dim(r.state.state, 2),
          std::max(shape.rows, isTransposed(r.state.state) ? shape.lanes : 1))),
      endPanel(min(add(task.firstPanel, task.mostPanels), panels())) {
  // The first cache has room for the blocks of two operands.
  if (!r.query)
    scatteredRows = firstCache;
  allocate(norm);
}

void StateTask::emit() {
  loadState();
  // A few tokens whose number is known.
  std::optional<int64_t> tokens = getConstantIntValue(dim(r.rows(), 2));
  if (tokenForm && !r.offsets && tokens && *tokens <= shape.block)
    emitBlock(task.from, index(*tokens));
  else
    forEach(task.from, task.to, shape.block, [&](Value first) {
      emitBlock(first, min(sub(task.to, first), index(shape.block)));
    });
  if (r.key)
    storeState();
  if (epilogue)
    epilogue->freeScratch();
  freeScratch();
}

void StateTask::emitBlock(Value first, Value count) {
  StatePack pack(*this, first, count);
  if (r.key)
    pack.packKeys();
  if (r.query)
    pack.packQueries();
  if (r.state.normalizer)
    pack.updateNormalizer();
  auto sweep = [&](bool rescales) {
    StateSweep(*this, first, count, rescales).emit();
  };
  // The factors of a running maximum alone are 1 in most blocks: it seldom
  // rises. A product with 1 changes no bit, so leave it out.
  if (!r.key || !r.state.runningMax || r.decay || r.inputGate || tokenForm) {
    sweep(/*rescales=*/true);
  } else {
    auto branch = scf::IfOp::create(b, loc, pack.emitAnyRescaling(),
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    sweep(/*rescales=*/true);
    b.setInsertionPointToStart(branch.elseBlock());
    sweep(/*rescales=*/false);
  }
  // The rows are whole now.
  if (epilogue)
    pack.emitNorm(*epilogue, buffers.normRows);
}

void StateTask::allocate(OutputNormOp norm) {
  OpFoldResult block = b.getIndexAttr(shape.block);
  OpFoldResult columns = getAsOpFoldResult(valueSize);
  OpFoldResult rows = getAsOpFoldResult(keySize);
  OpFoldResult groupSize = getAsOpFoldResult(group);
  if (r.key) {
    packed.keys = scratch({block, rows});
    packed.values = scratch({block, columns});
    if (hasAnyScalarGate())
      packed.scalarGates = scratch({block});
    if (hasChannelDecay())
      packed.channelGates = scratch({block, rows});
    if (r.valueDecay)
      packed.valueGates = scratch({block, columns});
    if (hasMovingFloor())
      packed.maxima = scratch({block});
  }
  if (r.query) {
    packed.queries = scratch({groupSize, block, rows});
    if (!tokenForm)
      buffers.outputs = scratch({groupSize, block, b.getIndexAttr(shape.cols)});
    if (r.bonus)
      packed.ownWeights = scratch({groupSize, block});
    if (norm) {
      epilogue.emplace(b, norm, shape.lanes, /*isEpilogue=*/true);
      buffers.normRows = scratch({groupSize, block, columns});
    }
  }
  if (!tokenForm)
    buffers.tile =
        scratch({getAsOpFoldResult(task.mostPanels),
                 getAsOpFoldResult(tileRows), b.getIndexAttr(shape.cols)});
  if (r.state.normalizer) {
    buffers.z = scratch({rows});
    if (r.query) {
      buffers.denominators =
          scratch({groupSize, block, b.getIndexAttr(shape.lanes)});
      buffers.inverses = scratch({groupSize, block});
    }
  }
}

/// The state comes from memory, or is zero where a sequence begins.
void StateTask::loadState() {
  if (!tokenForm && r.startsAtZero)
    ifThenElse(
        compare(arith::CmpIPredicate::eq, task.from, task.begin),
        [&] { forEachPanel([&](Value panel) { clearRows(panel, index(0)); }); },
        [&] { readPanels(); });
  else if (!tokenForm)
    readPanels();
  if (!r.state.normalizer)
    return;
  // The padding may be several vectors: of these nothing may be read.
  Value size = dim(r.state.state, 2);
  forEach(index(0), size, shape.lanes, [&](Value d) {
    storeVector(
        readOperand(r.state.normalizer, {task.slot, task.head, d}, shape.lanes),
        buffers.z, {d});
  });
  forEach(roundUp(size, shape.lanes), keySize, shape.lanes,
          [&](Value d) { storeVector(zeros(shape.lanes), buffers.z, {d}); });
}

/// Copies the state into panels, rows and columns past the end zero.
void StateTask::readPanels() {
  forEachPanel([&](Value panel) {
    loadPanel(r.state.state, {task.slot, task.head},
              mul(panel, index(shape.cols)), buffers.tile, {own(panel)});
    clearRows(panel, dim(r.state.state, 2));
  });
}

void StateTask::clearRows(Value panel, Value first) {
  forEach(first, tileRows, 1, [&](Value d) {
    storeVector(zeros(shape.cols), buffers.tile, {own(panel), d, index(0)});
  });
}

void StateTask::storeState() {
  if (!tokenForm)
    forEachPanel([&](Value panel) {
      storePanel(r.state.state, {task.slot, task.head},
                 mul(panel, index(shape.cols)), buffers.tile, {own(panel)});
    });
  if (r.state.normalizer)
    storeNormalizer(buffers.z);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

static void lowerToStateTile(OpBuilder &b, const Recurrence &r, TileShape shape,
                             bool tokenForm, LengthRange range = {},
                             OutputNormOp norm = {}) {
  // With fewer tasks than this, states are divided for the sake of threads.
  // Many are not, since every task packs the keys anew.
  constexpr int64_t enoughTasks = 4;
  ScanTile tile(b, r, shape, shape.rows, range);
  Value states = tile.countStates();
  Value tasks = tile.countColumnTasks(
      tile.div(tile.add(tile.index(enoughTasks - 1), states),
               tile.max(states, tile.index(1))));
  tile.forEachTask(tasks, /*spanMultiple=*/tokenForm ? 0 : 1,
                   [&](const ScanTile::Task &task) {
                     StateTask(tile, task, tokenForm, norm).emit();
                   });
}

void mlir::linattn::lowerToStateTile(OpBuilder &b, ScanOp op, TileShape shape,
                                     bool tokenForm, LengthRange range,
                                     Value initial) {
  Recurrence r(op);
  r.initial = initial;
  OutputNormOp norm = findEpilogue(op);
  if (norm)
    r.output = norm.getOutput();
  ::lowerToStateTile(b, r, shape, tokenForm, range, norm);
}

void mlir::linattn::lowerToStateTile(OpBuilder &b, StateOp op, TileShape shape,
                                     bool tokenForm, bool startsAtZero) {
  Recurrence r(op);
  r.startsAtZero = startsAtZero;
  ::lowerToStateTile(b, r, shape, tokenForm);
}

void mlir::linattn::lowerToStateTile(OpBuilder &b, ReadOp op, TileShape shape,
                                     bool tokenForm) {
  ::lowerToStateTile(b, Recurrence(op), shape, tokenForm);
}
