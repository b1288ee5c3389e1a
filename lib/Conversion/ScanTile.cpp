//===- ScanTile.cpp - Base of a scan's schedules --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanTile.h"

#include "linattn/Transforms/Forms.h"

using namespace mlir;
using namespace mlir::linattn;

static SmallVector<Value> append(ArrayRef<Value> indices, Value last) {
  SmallVector<Value> result(indices);
  result.push_back(last);
  return result;
}

ScanTile::ScanTile(OpBuilder &b, const Recurrence &recurrence, TileShape shape,
                   int64_t rowMultiple, LengthRange range)
    : TileBuilder(b, recurrence.op,
                  getElementTypeOrSelf(recurrence.query ? recurrence.query
                                                        : recurrence.key),
                  shape),
      r(recurrence), update(r.update), exclusive(r.exclusive), before(r.before),
      heads(dim(r.state.state, 1)),
      // No heads, no tasks; but the division is made before any.
      group(r.query ? div(dim(r.output, 1), max(heads, index(1))) : index(1)),
      keySize(
          roundUp(dim(r.state.state, 2), std::max(shape.lanes, rowMultiple))),
      valueSize(roundUp(dim(r.state.state, 3), shape.cols)) {
  lengths = range;
}

Value ScanTile::countStates() {
  return mul(dim(r.indices ? r.indices : r.state.state, 0), heads);
}

Value ScanTile::countColumnTasks(Value count) {
  if (r.state.normalizer || r.state.runningMax || isInTask(r.op) ||
      getConstantIntValue(panels()) == 1)
    return index(1);
  return max(min(count, panels()), index(1));
}

void ScanTile::forEachTask(Value columnTasks, int64_t spanMultiple,
                           function_ref<void(const Task &)> body) {
  Value states = countStates(), tokens = dim(r.rows(), 2), span;
  Value mostPanels =
      div(add(panels(), sub(columnTasks, index(1))), columnTasks);
  if (spanMultiple && !r.offsets)
    span =
        chooseSpan(rowSources(r.rows()).front(), r.state.state, spanMultiple);
  auto runTask = [&](Value number, Value from, Value to) {
    Task task;
    task.mostPanels = mostPanels;
    task.firstPanel = mul(rem(number, columnTasks), mostPanels);
    task.panelCount = min(sub(panels(), task.firstPanel), mostPanels);
    Value state = div(number, columnTasks);
    Value sequence = task.batch = div(state, heads);
    task.head = rem(state, heads);
    if (r.key) {
      task.keyHead = headOf(r.key, task.head, heads);
      task.valueHead = headOf(r.value, task.head, heads);
    }
    task.begin = index(0);
    task.end = dim(r.rows(), 2);
    task.from = from;
    task.to = to;
    if (r.offsets) {
      auto offset = [&](Value position) -> Value {
        return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                          load(r.offsets, {position}));
      };
      task.from = task.begin = offset(sequence);
      task.to = task.end = offset(add(sequence, index(1)));
      task.batch = index(0);
    }
    auto run = [&](Value row) {
      task.slot = row;
      body(task);
    };
    auto runSequence = [&] {
      withState(r.indices, sequence, run, [&] { clearOutput(task); });
    };
    if (!r.offsets)
      return runSequence();
    ifInRange(sub(task.end, task.begin), runSequence);
  };
  auto runAll = [&] {
    forEachSpan(span, tokens, [&](Value from, Value to) {
      parallel(mul(states, columnTasks),
               [&](Value number) { runTask(number, from, to); });
    });
  };
  // Sequences of a batch are all of one length.
  if (r.offsets)
    return runAll();
  ifInRange(tokens, runAll);
}

/// The outputs of the task's tokens where their sequence has no state.
void ScanTile::clearOutput(const Task &task) {
  forEachMember([&](Value member) {
    forEach(task.from, task.to, 1, [&](Value token) {
      forEach(task.panelCount, [&](Value panel) {
        Value column = mul(add(task.firstPanel, panel), index(shape.cols));
        writeOperand(
            zeros(shape.cols), r.output,
            {task.batch, add(mul(task.head, group), member), token, column});
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// Scopes
//===----------------------------------------------------------------------===//

ScanTask::ScanTask(const ScanTile &tile, const Task &task, int64_t tokens,
                   ArrayRef<Value> others)
    : ScanTile(tile), task(task), staged(allocateStaged(tokens, others)),
      stagedQueries(allocateRows(r.query, tokens)) {}

llvm::SmallMapVector<Value, TileBuilder::StagedRows, 8>
ScanTask::allocateStaged(int64_t tokens, ArrayRef<Value> others) {
  SmallVector<Value> operands{r.key,  r.value, r.decay, r.valueDecay, r.erase,
                              r.beta, r.write, r.a,     r.b};
  llvm::append_range(operands, others);
  llvm::SmallMapVector<Value, StagedRows, 8> staged;
  for (Value operand : operands)
    if (operand && rankOf(operand) == 4 && !staged.contains(operand))
      if (StagedRows rows = allocateRows(operand, tokens))
        staged[operand] = rows;
  return staged;
}

Value ScanTask::stateBefore(Value position) {
  Value updated = r.state.state;
  if (!r.initial)
    return updated;
  if (lengths.to <= 1 || getConstantIntValue(dim(r.rows(), 2)) == 1)
    return r.initial;
  Value isFirst = compare(arith::CmpIPredicate::eq, position, task.from);
  return b.createOrFold<arith::SelectOp>(loc, isFirst, r.initial, updated);
}

void ScanTask::loadNormalizer(Value z) {
  Value whole = wholeVectors(dim(r.state.state, 2));
  forEach(index(0), whole, shape.lanes, [&](Value d) {
    storeVector(
        readOperand(r.state.normalizer, {task.slot, task.head, d}, shape.lanes),
        z, {d});
  });
  fillRow(z, {}, 0.0, whole);
}

void ScanTask::storeNormalizer(Value z) {
  forEach(index(0), dim(r.state.state, 2), shape.lanes, [&](Value d) {
    writeOperand(loadVector(z, {d}, shape.lanes), r.state.normalizer,
                 {task.slot, task.head, d});
  });
}

ScanBlock::ScanBlock(const ScanTask &task, Value first, Value count)
    : ScanTask(task), first(first), count(count),
      lowestToken(
          tokenAt(r.reverse ? sub(add(first, count), index(1)) : first)) {}

Value ScanBlock::written(Value x, Value token) {
  Value keep = keepOf(token);
  return keep ? select(keep, x, constant(x.getType(), 0.0)) : x;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

Value ScanBlock::headOfRows(Value operand) {
  return operand == r.key     ? task.keyHead
         : operand == r.value ? task.valueHead
                              : task.head;
}

void ScanBlock::stageTokens() {
  for (const auto &[operand, rows] : staged)
    stageRows(rows, operand, task.batch, headOfRows(operand), lowestToken,
              count);
}

void ScanBlock::stageQueries(Value rowHead) {
  if (stagedQueries)
    stageRows(stagedQueries, r.query, task.batch, rowHead, lowestToken, count);
}

ScanBlock::Place ScanBlock::placeOf(Value operand, Value rowHead, Value token) {
  if (const auto *it = staged.find(operand); it != staged.end())
    return it->second.at(*this, token, lowestToken);
  return {operand, {task.batch, rowHead, token}};
}

ScanBlock::Place ScanBlock::queryPlaceOf(Value rowHead, Value token) {
  if (stagedQueries)
    return stagedQueries.at(*this, token, lowestToken);
  return {r.query, {task.batch, rowHead, token}};
}

std::pair<ScanBlock::Row, Value> ScanBlock::keyRow(Value token, Value shift) {
  Row row;
  row.from(placeOf(r.key, task.keyHead, token));
  row.keep = keepOf(token);
  row.shift = shift;
  Value rescale;
  if (!shift && needsRowMax(op.getFeatureMapKind(), isStabilised())) {
    row.shift = rowMaximum(row.source, row.index);
    if (r.state.runningMax && !r.inputGate) {
      rescale = raiseRunningMax(r.state.runningMax, {task.slot, task.head},
                                row.shift, row.keep);
      row.shift =
          maxf(load(r.state.runningMax, {task.slot, task.head}), lowest(type));
    }
  }
  if (r.inputGate)
    rescale = openInputGate(r.state.runningMax, {task.slot, task.head}, r.decay,
                            r.inputGate, {task.batch, task.head, token}, row);
  return {row, rescale};
}

Value ScanBlock::packKey(Value token, Value target, ArrayRef<Value> at,
                         Value shift) {
  auto [row, rescale] = keyRow(token, shift);
  packRow(row, target, at);
  return rescale;
}

void ScanBlock::packValue(Value token, Value target, ArrayRef<Value> at,
                          Value gain) {
  Row row;
  row.from(placeOf(r.value, task.valueHead, token));
  row.mapped = false;
  row.gain = gain;
  // A masked token writes nothing, not even 0 · NaN.
  row.keep = keepOf(token);
  packRow(row, target, at);
}

void ScanBlock::packQuery(Value token, Value rowHead, Value target,
                          ArrayRef<Value> at, Value shift) {
  Row row;
  row.from(queryPlaceOf(rowHead, token));
  row.shift = shift;
  if (!shift && needsRowMax(op.getFeatureMapKind(), isStabilised()))
    row.shift = rowMaximum(row.source, row.index);
  row.scale = r.scale;
  packRow(row, target, at);
}

void ScanBlock::packTransition(Value token, Value keys, ArrayRef<Value> keyAt,
                               Value target, ArrayRef<Value> at, Value gain) {
  if (getRule(update).isGiven)
    return packGate(r.a, token, target, at);
  Value width = wholeVectors(dim(r.key, 3));
  Value factor = gain ? splat(negate(gain), shape.lanes) : Value();
  Place eraseAt;
  if (r.erase)
    eraseAt = placeOf(r.erase, task.head, token);
  reduceRow(width, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value k = loadVector(keys, append(keyAt, d), shape.lanes);
    if (eraseAt.source)
      k = mulf(k, readOperand(eraseAt.source, append(eraseAt.index, d),
                              shape.lanes));
    k = factor ? mulf(k, factor) : negate(k);
    storeVector(written(k, token), target, append(at, d));
    return {};
  });
  fillRow(target, at, 0.0, width);
}

void ScanBlock::packGate(Value gate, Value token, Value target,
                         ArrayRef<Value> at, bool exponential, Value total) {
  Value width = wholeVectors(dim(gate, 3));
  Place place = placeOf(gate, task.head, token);
  reduceRow(width, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value x = readOperand(place.source, append(place.index, d), shape.lanes);
    if (total)
      storeVector(addf(loadVector(total, {d}, shape.lanes), x), total, {d});
    // A token that is not written has no gates but decays.
    storeVector(exponential ? exp(x) : written(x, token), target,
                append(at, d));
    return {};
  });
  fillRow(target, at, exponential ? 1.0 : 0.0, width);
}

Value ScanBlock::ownWeight(Value queries, ArrayRef<Value> queryAt, Value keys,
                           ArrayRef<Value> keyAt) {
  Value sum =
      reduceRow(wholeVectors(dim(r.key, 3)), zeros(shape.lanes),
                [&](Value d, ValueRange carried) -> SmallVector<Value> {
                  Value q =
                      loadVector(queries, append(queryAt, d), shape.lanes);
                  Value k = loadVector(keys, append(keyAt, d), shape.lanes);
                  Value u = readOperand(r.bonus, {task.head, d}, shape.lanes);
                  return {fmaVector(q, mulf(u, k), carried.front())};
                })
          .front();
  return sumVector(sum);
}

void ScanTile::ifTrue(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  if (std::optional<int64_t> known = getConstantIntValue(condition))
    return *known ? body() : void();
  ifThen(condition, body);
}

void ScanTile::fillRow(Value target, ArrayRef<Value> at, double value,
                       Value from) {
  Value width = dim(target, rankOf(target) - 1);
  if (from && getConstantIntValue(from) &&
      getConstantIntValue(from) == getConstantIntValue(width))
    return;
  Value filled = constant(vectorType(shape.lanes), value);
  forEach(from ? from : index(0), width, shape.lanes,
          [&](Value d) { storeVector(filled, target, append(at, d)); });
}

//===----------------------------------------------------------------------===//
// Output and reductions
//===----------------------------------------------------------------------===//

void ScanBlock::writeRow(Value o, Value inverse, Value member, Value t,
                         Value column, Value normRows) {
  if (inverse)
    o = emitClamp(b, loc, *r.normalize, mulf(o, splat(inverse, shape.cols)));
  if (normRows)
    return storeVector(o, normRows, {member, t, column});
  writeOperand(
      o, r.output,
      {task.batch, outputHead(member), tokenAt(add(first, t)), column});
}

void ScanBlock::emitNorm(NormRow &norm, Value normRows) {
  forEachMember([&](Value member) {
    forEach(count, [&](Value t) {
      norm.emit({task.batch,
                 outputHead(member),
                 tokenAt(add(first, t)),
                 normRows,
                 {member, t}});
    });
  });
}

SmallVector<Value>
ScanTile::reduceRow(Value size, ValueRange initial,
                    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  constexpr int64_t longest = 8;
  std::optional<int64_t> known = getConstantIntValue(size);
  if (!known || *known > longest * shape.lanes)
    return reduce(index(0), size, shape.lanes, initial, body);
  SmallVector<Value> carried(initial);
  for (int64_t d = 0; d < *known; d += shape.lanes)
    carried = body(index(d), carried);
  return carried;
}
