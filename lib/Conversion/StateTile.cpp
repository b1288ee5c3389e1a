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
// Every element sees the same operations in the same order whatever the block,
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

void StateTile::emit() {
  heads = dim(r.state.state, 1);
  // No heads, no tasks; but the division is made before any.
  group = r.query ? div(dim(r.output, 1), max(heads, index(1))) : index(1);
  keySize = roundUp(dim(r.state.state, 2), std::max(shape.lanes, shape.rows));
  // A transposed state comes in whole blocks.
  tileRows = roundUp(
      dim(r.state.state, 2),
      std::max(shape.rows, isTransposed(r.state.state) ? shape.lanes : 1));
  valueSize = roundUp(dim(r.state.state, 3), shape.cols);
  Value states = mul(dim(r.indices ? r.indices : r.state.state, 0), heads);
  columnTasks = countColumnTasks(states);
  Value span;
  if (!r.offsets && !tokenForm)
    span =
        chooseSpan(rowSources(r.key ? r.key : r.query).front(), r.state.state,
                   /*multiple=*/1);
  Value tokens = dim(r.key ? r.key : r.query, 2);
  auto runAll = [&] {
    forEachSpan(span, tokens, [&](Value from, Value to) {
      parallel(mul(states, columnTasks),
               [&](Value task) { emitTask(task, from, to); });
    });
  };
  // Sequences of a batch are all of one length.
  if (r.offsets)
    return runAll();
  ifInRange(tokens, runAll);
}

/// Tasks per state head. Columns are independent, and see the same operations
/// whatever the tasks. Few states are divided, for the sake of threads; many
/// are not, since every task packs the keys anew. The normalizer and the
/// running maximum belong to all columns.
Value StateTile::countColumnTasks(Value states) {
  if (r.state.normalizer || r.state.runningMax ||
      getConstantIntValue(panels()) == 1)
    return index(1);
  Value each = div(add(index(enoughTasks - 1), states), max(states, index(1)));
  return max(min(each, panels()), index(1));
}

/// One task, for the positions [from, to) of its sequence.
void StateTile::emitTask(Value task, Value from, Value to) {
  Value part = rem(task, columnTasks);
  task = div(task, columnTasks);
  panelCount = div(add(panels(), sub(columnTasks, index(1))), columnTasks);
  firstPanel = mul(part, panelCount);
  endPanel = min(add(firstPanel, panelCount), panels());
  Value sequence = div(task, heads);
  head = rem(task, heads);
  batch = sequence;
  begin = index(0);
  end = dim(r.key ? r.key : r.query, 2);
  if (r.offsets) {
    auto offset = [&](Value position) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                        load(r.offsets, {position}));
    };
    begin = offset(sequence);
    end = offset(add(sequence, index(1)));
    batch = index(0);
    from = begin;
    to = end;
  }
  auto run = [&](Value row) {
    slot = row;
    emitTokens(from, to);
  };
  auto runSequence = [&] {
    withState(r.indices, sequence, run, [&] { clearOutput(from, to); });
  };
  if (!r.offsets)
    return runSequence();
  ifInRange(sub(end, begin), runSequence);
}

/// The outputs of the task's tokens where their sequence has no state.
void StateTile::clearOutput(Value from, Value to) {
  forEachMember([&](Value member) {
    forEach(from, to, 1, [&](Value token) {
      forEachPanel([&](Value panel) {
        Value column = mul(panel, index(shape.cols));
        writeOperand(zeros(shape.cols), r.output,
                     {batch, outputHead(member), token, column});
      });
    });
  });
}

void StateTile::emitTokens(Value from, Value to) {
  allocateScratch();
  loadState();
  // A few tokens whose number is known.
  std::optional<int64_t> tokens =
      getConstantIntValue(dim(r.key ? r.key : r.query, 2));
  if (tokenForm && !r.offsets && tokens && *tokens <= shape.block)
    emitBlock(from, index(*tokens));
  else
    forEach(from, to, shape.block, [&](Value blockStart) {
      first = blockStart;
      findNext(from, to);
      emitBlock(blockStart, min(sub(to, blockStart), index(shape.block)));
    });
  if (r.key)
    storeState();
  if (epilogue)
    epilogue->freeScratch();
  freeScratch();
}

void StateTile::emitBlock(Value blockStart, Value count) {
  first = blockStart;
  Value lowest = r.reverse ? tokenAt(sub(count, index(1))) : tokenAt(index(0));
  if (r.key)
    packKeys(lowest, count);
  if (r.query)
    packQueries(lowest, count);
  if (r.state.normalizer)
    updateNormalizer(count);
  sweepPanels(count);
  if (epilogue)
    emitEpilogue(count);
}

/// The norm of the block's rows, which are whole now.
void StateTile::emitEpilogue(Value count) {
  forEachMember([&](Value member) {
    forEach(count, [&](Value t) {
      epilogue->emit({batch, outputHead(member), tokenAt(t)}, normRows,
                     {member, t});
    });
  });
}

void StateTile::sweepPanels(Value count) {
  auto sweep = [&] {
    forEachPanel([&](Value panel) { sweepPanel(panel, count); });
  };
  // The factors of a running maximum alone are 1 in most blocks: it seldom
  // rises. A product with 1 changes no bit, so leave it out.
  if (!r.key || !r.state.runningMax || r.decay || r.inputGate || tokenForm)
    return sweep();
  auto branch = scf::IfOp::create(b, loc, emitAnyRescaling(count),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  sweep();
  b.setInsertionPointToStart(branch.elseBlock());
  scalarGatesAreOne = true;
  sweep();
  scalarGatesAreOne = false;
}

/// Whether a scalar gate of the block is not 1.
Value StateTile::emitAnyRescaling(Value count) {
  Value none = arith::ConstantIntOp::create(b, loc, 0, 1);
  return reduce(count, none, [&](Value t, Value any) -> Value {
    Value differs =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE,
                              load(scalarGates, {t}), constant(type, 1.0));
    return arith::OrIOp::create(b, loc, any, differs);
  });
}

void StateTile::allocateScratch() {
  OpFoldResult block = b.getIndexAttr(shape.block);
  OpFoldResult columns = getAsOpFoldResult(valueSize);
  OpFoldResult rows = getAsOpFoldResult(keySize);
  OpFoldResult members = getAsOpFoldResult(group);
  stagedKeys = allocateRows(r.key, shape.block);
  stagedValues = allocateRows(r.value, shape.block);
  stagedDecays =
      allocateRows(hasChannelGate() ? r.decay : Value(), shape.block);
  stagedValueDecays = allocateRows(r.valueDecay, shape.block);
  stagedQueries = allocateRows(r.query, shape.block);
  if (r.key) {
    keys = scratch({block, rows});
    values = scratch({block, columns});
    if (hasScalarGate())
      scalarGates = scratch({block});
    if (hasChannelGate())
      channelGates = scratch({block, rows});
    if (r.valueDecay)
      valueGates = scratch({block, columns});
    if (hasMovingFloor())
      maxima = scratch({block});
  }
  if (r.query) {
    queries = scratch({members, block, rows});
    if (!tokenForm)
      outputs = scratch({members, block, b.getIndexAttr(shape.cols)});
    if (r.bonus)
      ownWeights = scratch({members, block});
    if (epilogue) {
      epilogue->allocate();
      normRows = scratch({members, block, columns});
    }
  }
  if (!tokenForm)
    tile = scratch({getAsOpFoldResult(panelCount), getAsOpFoldResult(tileRows),
                    b.getIndexAttr(shape.cols)});
  if (r.state.normalizer) {
    z = scratch({rows});
    if (r.query) {
      denominators = scratch({members, block, b.getIndexAttr(shape.lanes)});
      inverses = scratch({members, block});
    }
  }
}

/// Copies the state into panels, rows and columns past the end zero.
void StateTile::loadState() {
  Value rows = dim(r.state.state, 2);
  if (!tokenForm)
    forEachPanel([&](Value panel) {
      Value column = mul(panel, index(shape.cols));
      loadPanel(r.state.state, {slot, head}, column, tile, {own(panel)});
      forEach(rows, tileRows, 1, [&](Value d) {
        storeVector(zeros(shape.cols), tile, {own(panel), d, index(0)});
      });
    });
  if (!r.state.normalizer)
    return;
  // The padding may be several vectors: of these nothing may be read.
  Value size = dim(r.state.state, 2);
  forEach(index(0), size, shape.lanes, [&](Value d) {
    storeVector(readOperand(r.state.normalizer, {slot, head, d}, shape.lanes),
                z, {d});
  });
  forEach(roundUp(size, shape.lanes), keySize, shape.lanes,
          [&](Value d) { storeVector(zeros(shape.lanes), z, {d}); });
}

void StateTile::storeState() {
  if (!tokenForm)
    forEachPanel([&](Value panel) {
      storePanel(r.state.state, {slot, head}, mul(panel, index(shape.cols)),
                 tile, {own(panel)});
    });
  if (r.state.normalizer)
    forEach(index(0), dim(r.state.state, 2), shape.lanes, [&](Value d) {
      writeOperand(loadVector(z, {d}, shape.lanes), r.state.normalizer,
                   {slot, head, d});
    });
}

//===----------------------------------------------------------------------===//
// Normaliser
//===----------------------------------------------------------------------===//

/// z ← γ z + k token by token, den += q ⊙ z, one vector of features at a time.
void StateTile::updateNormalizer(Value count) {
  int64_t lanes = shape.lanes;
  forEach(index(0), keySize, lanes, [&](Value d) {
    Value total =
        reduce(index(0), count, 1, loadVector(z, {d}, lanes),
               [&](Value t, ValueRange carried) -> SmallVector<Value> {
                 Value sum = carried.front();
                 if (r.key) {
                   if (hasScalarGate())
                     sum = mulf(sum, splat(load(scalarGates, {t}), lanes));
                   if (hasChannelGate())
                     sum = mulf(sum, loadVector(channelGates, {t, d}, lanes));
                   sum = addf(sum, loadVector(keys, {t, d}, lanes));
                 }
                 if (r.query)
                   forEachMember([&](Value member) {
                     Value q = loadVector(queries, {member, t, d}, lanes);
                     SmallVector<Value> at{member, t, index(0)};
                     Value den = loadVector(denominators, at, lanes);
                     storeVector(fmaVector(q, sum, den), denominators, at);
                   });
                 return {sum};
               })
            .front();
    storeVector(total, z, {d});
  });
  if (!r.query)
    return;
  forEach(count, [&](Value t) {
    forEachMember([&](Value member) {
      Value den =
          reduceVector(vector::CombiningKind::ADD,
                       loadVector(denominators, {member, t, index(0)}, lanes));
      Value runningMax;
      if (hasMovingFloor())
        runningMax =
            maxima ? load(maxima, {t}) : load(r.state.runningMax, {slot, head});
      store(emitInverseDenominator(b, loc, *r.normalize, tokenType, den,
                                   runningMax),
            inverses, {member, t});
    });
  });
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

void mlir::linattn::lowerToStateTile(OpBuilder &b, ScanOp op, TileShape shape,
                                     bool tokenForm, LengthRange range) {
  StateTile tile(b, Recurrence(op), shape, tokenForm);
  tile.lengths = range;
  if (OutputNormOp norm = findEpilogue(op)) {
    tile.epilogue.emplace(b, norm, shape.lanes, /*isEpilogue=*/true);
    tile.r.output = norm.getOutput();
  }
  tile.emit();
}

void mlir::linattn::lowerToStateTile(OpBuilder &b, StateOp op, TileShape shape,
                                     bool tokenForm) {
  StateTile(b, Recurrence(op), shape, tokenForm).emit();
}

void mlir::linattn::lowerToStateTile(OpBuilder &b, ReadOp op, TileShape shape,
                                     bool tokenForm) {
  StateTile(b, Recurrence(op), shape, tokenForm).emit();
}
