//===- ScanTile.cpp - Base of a scan's schedules --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanTile.h"

using namespace mlir;
using namespace mlir::linattn;

static SmallVector<Value> append(ArrayRef<Value> indices, Value last) {
  SmallVector<Value> result(indices);
  result.push_back(last);
  return result;
}

/// Tasks per state head. Columns are independent, and see the same operations
/// whatever the tasks. The normalizer and the running maximum belong to all of
/// them.
Value ScanTile::countColumnTasks(Value states, int64_t enoughTasks) {
  if (enoughTasks == 1 || scan.getNormalizer() || scan.getRunningMax() ||
      getConstantIntValue(panels()) == 1)
    return index(1);
  Value each = div(index(enoughTasks), max(states, index(1)));
  return max(min(each, panels()), index(1));
}

void ScanTile::forEachTask(int64_t rowMultiple, function_ref<void()> body,
                           int64_t enoughTasks, int64_t spanMultiple) {
  Value state = scan.getState();
  heads = dim(state, 1);
  // No heads, no tasks; but the division is made before any.
  group = div(dim(scan.getOutput(), 1), max(heads, index(1)));
  keySize = roundUp(dim(state, 2), std::max(shape.lanes, rowMultiple));
  valueSize = roundUp(dim(state, 3), shape.cols);
  Value indices = scan.getStateIndices();
  Value states = mul(dim(indices ? indices : state, 0), heads);
  Value columnTasks = countColumnTasks(states, enoughTasks);
  panelsPerTask = div(add(panels(), sub(columnTasks, index(1))), columnTasks);
  Value span;
  if (spanMultiple && !scan.getCuSeqlens())
    span = chooseSpan(rowSources(scan.getKey()).front(), state, spanMultiple);
  auto runTask = [&](Value task) {
    firstPanel = mul(rem(task, columnTasks), panelsPerTask);
    panelCount = min(sub(panels(), firstPanel), panelsPerTask);
    Value sequence = locate(div(task, columnTasks));
    auto run = [&](Value row) {
      slot = row;
      body();
      freeScratch();
    };
    auto runSequence = [&] {
      withState(indices, sequence, run, [&] { clearOutput(); });
    };
    if (!scan.getCuSeqlens())
      return runSequence();
    ifInRange(sub(end, begin), runSequence);
  };
  Value tokens = dim(scan.getKey(), 2);
  auto runAll = [&] {
    forEachSpan(span, tokens, [&](Value first, Value last) {
      parallel(mul(states, columnTasks), [&](Value task) {
        from = first;
        to = last;
        runTask(task);
      });
    });
  };
  // Sequences of a batch are all of one length.
  if (scan.getCuSeqlens())
    return runAll();
  ifInRange(tokens, runAll);
}

/// Finds the heads of a state and the tokens of its sequence, which it returns.
Value ScanTile::locate(Value state) {
  Value sequence = div(state, heads);
  head = rem(state, heads);
  keyHead = headOf(scan.getKey(), head, heads);
  valueHead = headOf(scan.getValue(), head, heads);
  batch = sequence;
  begin = index(0);
  end = dim(scan.getKey(), 2);
  if (Value offsets = scan.getCuSeqlens()) {
    auto offset = [&](Value position) -> Value {
      return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                        load(offsets, {position}));
    };
    from = begin = offset(sequence);
    to = end = offset(add(sequence, index(1)));
    batch = index(0);
  }
  return sequence;
}

/// The outputs of the task's tokens where their sequence has no state.
void ScanTile::clearOutput() {
  forEachMember([&](Value member) {
    forEach(from, to, 1, [&](Value token) {
      forEach(panelCount, [&](Value panel) {
        writeOperand(zeros(shape.cols), scan.getOutput(),
                     {batch, outputHead(member), token, columnOf(panel)});
      });
    });
  });
}

Value ScanTile::written(Value x, Value token) {
  Value keep = keepOf(token);
  return keep ? select(keep, x, constant(x.getType(), 0.0)) : x;
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void ScanTile::allocateStaged(int64_t tokens, ArrayRef<Value> others) {
  SmallVector<Value> operands{scan.getKey(),   scan.getValue(), scan.getDecay(),
                              scan.getErase(), scan.getBeta(),  scan.getWrite(),
                              scan.getA(),     scan.getB()};
  llvm::append_range(operands, others);
  staged.clear();
  for (Value operand : operands)
    if (operand && rankOf(operand) == 4 && !staged.contains(operand))
      if (StagedRows rows = allocateRows(operand, tokens))
        staged[operand] = rows;
  stagedQueries = allocateRows(scan.getQuery(), tokens);
}

Value ScanTile::headOfRows(Value operand) {
  return operand == scan.getKey()     ? keyHead
         : operand == scan.getValue() ? valueHead
                                      : head;
}

/// The first one in memory.
Value ScanTile::lowestToken(Value first, Value count) {
  return scan.getReverse() ? tokenAt(sub(add(first, count), index(1)))
                           : tokenAt(first);
}

void ScanTile::stageTokens(Value first, Value count) {
  for (auto &[operand, rows] : staged)
    stageRows(rows, operand, batch, headOfRows(operand),
              lowestToken(first, count), count);
}

void ScanTile::stageQueries(Value rowHead, Value first, Value count) {
  if (stagedQueries)
    stageRows(stagedQueries, scan.getQuery(), batch, rowHead,
              lowestToken(first, count), count);
}

ScanTile::Place ScanTile::placeOf(Value operand, Value rowHead, Value token) {
  if (auto it = staged.find(operand); it != staged.end())
    return it->second.at(*this, token);
  return {operand, {batch, rowHead, token}};
}

ScanTile::Place ScanTile::queryPlaceOf(Value rowHead, Value token) {
  if (stagedQueries)
    return stagedQueries.at(*this, token);
  return {scan.getQuery(), {batch, rowHead, token}};
}

Value ScanTile::packKey(Value token, Value target, ArrayRef<Value> at,
                        Value shift) {
  Row row;
  row.from(placeOf(scan.getKey(), keyHead, token));
  row.keep = keepOf(token);
  row.shift = shift;
  Value rescale;
  if (!shift && needsRowMax(op.getFeatureMapKind(), isStabilised())) {
    row.shift = rowMaximum(row.source, row.index);
    if (scan.getRunningMax() && !scan.getInputGate()) {
      rescale = raiseRunningMax(scan.getRunningMax(), {slot, head}, row.shift,
                                row.keep);
      row.shift = maxf(load(scan.getRunningMax(), {slot, head}), lowest(type));
    }
  }
  if (scan.getInputGate())
    rescale = openInputGate(scan.getRunningMax(), {slot, head}, scan.getDecay(),
                            scan.getInputGate(), {batch, head, token}, row);
  packRow(row, target, at);
  return rescale;
}

void ScanTile::packValue(Value token, Value target, ArrayRef<Value> at,
                         Value gain) {
  Row row;
  row.from(placeOf(scan.getValue(), valueHead, token));
  row.mapped = false;
  row.gain = gain;
  // A masked token writes nothing, not even 0 · NaN.
  row.keep = keepOf(token);
  packRow(row, target, at);
}

void ScanTile::packQuery(Value token, Value rowHead, Value target,
                         ArrayRef<Value> at, Value shift) {
  Row row;
  row.from(queryPlaceOf(rowHead, token));
  row.shift = shift;
  if (!shift && needsRowMax(op.getFeatureMapKind(), isStabilised()))
    row.shift = rowMaximum(row.source, row.index);
  row.scale = Scale::of(scan);
  packRow(row, target, at);
}

void ScanTile::packTransition(Value token, Value keys, ArrayRef<Value> keyAt,
                              Value target, ArrayRef<Value> at, Value gain) {
  if (getRule(update).isGiven)
    return packGate(scan.getA(), token, target, at);
  Value width = wholeVectors(dim(scan.getKey(), 3));
  Value factor = gain ? splat(negate(gain), shape.lanes) : Value();
  Place eraseAt;
  if (scan.getErase())
    eraseAt = placeOf(scan.getErase(), head, token);
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

void ScanTile::packGate(Value gate, Value token, Value target,
                        ArrayRef<Value> at, bool exponential, Value total) {
  Value width = wholeVectors(dim(gate, 3));
  Place place = placeOf(gate, head, token);
  reduceRow(width, {}, [&](Value d, ValueRange) -> SmallVector<Value> {
    Value x = readOperand(place.source, append(place.index, d), shape.lanes);
    if (total)
      storeVector(addf(loadVector(total, {d}, shape.lanes), x), total, {d});
    // Decays are the only gates of a token that is not written.
    storeVector(exponential ? exp(x) : written(x, token), target,
                append(at, d));
    return {};
  });
  fillRow(target, at, exponential ? 1.0 : 0.0, width);
}

Value ScanTile::ownWeight(Value queries, ArrayRef<Value> queryAt, Value keys,
                          ArrayRef<Value> keyAt) {
  Value sum =
      reduceRow(wholeVectors(dim(scan.getKey(), 3)), zeros(shape.lanes),
                [&](Value d, ValueRange carried) -> SmallVector<Value> {
                  Value q =
                      loadVector(queries, append(queryAt, d), shape.lanes);
                  Value k = loadVector(keys, append(keyAt, d), shape.lanes);
                  Value u =
                      readOperand(scan.getBonus(), {head, d}, shape.lanes);
                  return {fmaVector(q, mulf(u, k), carried.front())};
                })
          .front();
  return sumVector(sum);
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

Value ScanTile::normalized(Value o, Value inverse) {
  if (!inverse)
    return o;
  return emitClamp(b, loc, *scan.getNormalize(),
                   mulf(o, splat(inverse, shape.cols)));
}

void ScanTile::writeOutput(Value o, Value inverse, Value member, Value token,
                           Value column) {
  writeOperand(normalized(o, inverse), scan.getOutput(),
               {batch, outputHead(member), token, column});
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

Value ScanTile::combineVectors(SmallVector<Value> vectors,
                               function_ref<Value(Value, Value)> combine) {
  // The halves of all groups of `size` elements of two vectors, or of one.
  auto halves = [&](Value x, Value y, int64_t size) -> Value {
    int64_t length = cast<VectorType>(x.getType()).getNumElements();
    SmallVector<int64_t> low, high;
    for (int64_t group = 0; group < (x == y ? 1 : 2) * length; group += size)
      for (int64_t i = 0; i < size / 2; ++i) {
        low.push_back(group + i);
        high.push_back(group + size / 2 + i);
      }
    return combine(vector::ShuffleOp::create(b, loc, x, y, low),
                   vector::ShuffleOp::create(b, loc, x, y, high));
  };
  int64_t size = shape.lanes;
  for (; vectors.size() > 1; size /= 2) {
    for (size_t i = 0; i < vectors.size() / 2; ++i)
      vectors[i] = halves(vectors[2 * i], vectors[2 * i + 1], size);
    vectors.truncate(vectors.size() / 2);
  }
  Value sums = vectors.front();
  for (; size > 1; size /= 2)
    sums = halves(sums, sums, size);
  return sums;
}
