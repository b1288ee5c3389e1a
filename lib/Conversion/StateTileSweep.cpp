//===- StateTileSweep.cpp - Tokens past a tile of the state ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateTile.h"

using namespace mlir;
using namespace mlir::linattn;

void StateSweep::emit() {
  owner.forEachPanel([&](Value panel) { sweepPanel(panel); });
}

/// γ_t ⊙ s for one row of the state, columns [column, column + cols).
Value StateSweep::decayed(Value s, Value t, Value row, Value column) {
  if (rescales && owner.hasAnyScalarGate())
    s = mulf(s, splat(load(packed.scalarGates, {t}), shape.cols));
  if (hasChannelDecay())
    s = mulf(s, splat(load(packed.channelGates, {t, row}), shape.cols));
  if (r.valueDecay)
    s = mulf(s, loadVector(packed.valueGates, {t, column}, shape.cols));
  return s;
}

Value StateSweep::initialOutput(Value member, Value t, Value column) {
  if (!r.bonus)
    return zeros(shape.cols);
  Value weight = splat(load(packed.ownWeights, {member, t}), shape.cols);
  return mulf(weight, loadVector(packed.values, {t, column}, shape.cols));
}

void StateSweep::writeRow(Value o, Value member, Value t, Value column) {
  Value inverse = r.normalize ? load(buffers.inverses, {member, t}) : Value();
  ScanBlock::writeRow(o, inverse, member, t, column, buffers.normRows);
}

void StateSweep::sweepPanel(Value panel) {
  if (owner.tokenForm)
    return streamPanel(panel);
  int64_t rows = shape.rows;
  std::optional<int64_t> size = getConstantIntValue(owner.tileRows);
  // The first tile starts the sums and the last one writes them out: they are
  // neither cleared nor copied.
  if (r.query && size && *size > 0) {
    if (*size == rows)
      return sweepTile(panel, index(0), {true, true});
    sweepTile(panel, index(0), {true, false});
    forEach(index(rows), index(*size - rows), rows,
            [&](Value row) { sweepTile(panel, row, {false, false}); });
    return sweepTile(panel, index(*size - rows), {false, true});
  }
  // How many tiles there are is only known when they run.
  Value column = mul(panel, index(shape.cols));
  auto forEachOutput = [&](function_ref<void(Value, Value)> body) {
    if (r.query)
      forEachMember([&](Value member) {
        forEach(count, [&](Value t) { body(member, t); });
      });
  };
  forEachOutput([&](Value member, Value t) {
    storeVector(initialOutput(member, t, column), buffers.outputs,
                {member, t, index(0)});
  });
  forEach(index(0), owner.tileRows, rows,
          [&](Value row) { sweepTile(panel, row, {false, false}); });
  forEachOutput([&](Value member, Value t) {
    writeRow(loadVector(buffers.outputs, {member, t, index(0)}, shape.cols),
             member, t, column);
  });
}

/// One tile over the tokens of a block: the loop everything else serves.
void StateSweep::sweepTile(Value panel, Value row, Ends ends) {
  int64_t cols = shape.cols;
  Value column = mul(panel, index(cols));
  SmallVector<Value> rows, s;
  for (int64_t i = 0; i < shape.rows; ++i) {
    rows.push_back(add(row, index(i)));
    s.push_back(loadVector(buffers.tile,
                           {owner.own(panel), rows.back(), index(0)}, cols));
  }

  auto update = [&](Value t, SmallVector<Value> &carried) {
    Value v = loadVector(packed.values, {t, column}, cols);
    for (int64_t i = 0; i < shape.rows; ++i) {
      Value k = splat(load(packed.keys, {t, rows[i]}), cols);
      carried[i] = fmaVector(k, v, decayed(carried[i], t, rows[i], column));
    }
  };
  auto readOut = [&](Value t, ArrayRef<Value> carried) {
    if (!r.query)
      return;
    forEachMember([&](Value member) {
      SmallVector<Value> at{member, t, index(0)};
      Value o = ends.first ? initialOutput(member, t, column)
                           : loadVector(buffers.outputs, at, cols);
      for (int64_t i = 0; i < shape.rows; ++i)
        o = fmaVector(splat(load(packed.queries, {member, t, rows[i]}), cols),
                      carried[i], o);
      if (ends.last)
        writeRow(o, member, t, column);
      else
        storeVector(o, buffers.outputs, at);
    });
  };
  auto sweep = [&](Value from, Value to, ValueRange carriedIn) {
    return reduce(from, to, 1, carriedIn,
                  [&](Value t, ValueRange carriedIn) -> SmallVector<Value> {
                    SmallVector<Value> carried(carriedIn);
                    if (r.exclusive)
                      readOut(t, carried);
                    if (r.key)
                      update(t, carried);
                    if (!r.exclusive)
                      readOut(t, carried);
                    return carried;
                  });
  };
  // Tiles divide the tokens of the next block. Each prefetches one, and goes on
  // for a while: too many requests at once would have to wait for one another.
  Value tiles = div(owner.tileRows, index(shape.rows));
  Value each = ceilDiv(index(shape.block), tiles);
  Value step = ceilDiv(index(shape.block), each);
  Value begin = mul(div(row, index(shape.rows)), each);
  SmallVector<Value> last =
      hasNext()
          ? reduce(index(0), each, 1, s,
                   [&](Value i, ValueRange carried) -> SmallVector<Value> {
                     prefetchNext(panel, add(begin, i));
                     Value from = mul(i, step);
                     Value to = min(add(from, step), count);
                     return sweep(from, to, carried);
                   })
          : sweep(index(0), count, s);
  if (r.key)
    for (int64_t i = 0; i < shape.rows; ++i)
      storeVector(last[i], buffers.tile, {owner.own(panel), rows[i], index(0)});
}

//===----------------------------------------------------------------------===//
// Prefetching
//===----------------------------------------------------------------------===//

/// Where one block may not be all.
bool StateSweep::hasNext() {
  std::optional<int64_t> tokens = getConstantIntValue(dim(r.rows(), 2));
  return !tokens || *tokens > shape.block;
}

/// The block of the same head, or after the last one of the task's tokens the
/// first one of the next head.
StateSweep::Next StateSweep::findNext() {
  Value follow = add(first, index(shape.block));
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, follow, task.to);
  Value other = min(add(task.head, index(1)), sub(heads, index(1)));
  return {select(isLast, task.from, follow), select(isLast, other, task.head)};
}

/// Prefetches the panel's share of the columns of token `t` of the next block
/// while this one is computed. Past the last token it is the last one
/// again.
void StateSweep::prefetchNext(Value panel, Value t) {
  Value cols = index(shape.cols), column = mul(panel, cols);
  // A line at least: narrower rows are prefetched more than once.
  Value share = roundUp(
      div(sub(add(keySize, task.mostPanels), index(1)), task.mostPanels),
      shape.cols);
  Value keyColumn = mul(owner.own(panel), share);
  auto nextToken = [&](Value t) {
    return tokenAt(min(add(next.first, t), sub(task.end, index(1))));
  };
  Value token = nextToken(t);
  auto prefetchOf = [&](Value operand, Value rowHead, Value from, Value width) {
    for (Value source : rowSources(operand)) {
      if (isTransposed(source))
        prefetchColumns(source, {task.batch, rowHead},
                        nextToken(index(r.reverse ? shape.block - 1 : 0)),
                        shape.block,
                        add(mul(t, task.mostPanels), owner.own(panel)),
                        mul(index(shape.block), task.mostPanels));
      else
        prefetchRow(source, {task.batch, rowHead, token}, from, width);
    }
  };
  auto prefetch = [&](Value operand, Value from, Value width) {
    prefetchOf(operand, headOf(operand, next.head, heads), from, width);
  };
  if (r.key) {
    prefetch(r.key, keyColumn, share);
    prefetch(r.value, column, cols);
  }
  if (hasChannelDecay())
    prefetch(r.decay, keyColumn, share);
  if (r.valueDecay)
    prefetch(r.valueDecay, column, cols);
  if (!r.query)
    return;
  forEachMember([&](Value member) {
    Value out = add(mul(next.head, group), member);
    prefetchOf(r.query, headOf(r.query, out, dim(r.output, 1)), keyColumn,
               share);
    prefetchRow(r.output, {task.batch, out, token}, column, cols,
                /*isWritten=*/true);
  });
}

//===----------------------------------------------------------------------===//
// Token by token
//===----------------------------------------------------------------------===//

/// A panel of the state in memory, for tokens one by one, or for several at
/// once where their number is known.
void StateSweep::streamPanel(Value panel) {
  std::optional<int64_t> known = getConstantIntValue(count);
  if (!known)
    return forEach(count, [&](Value t) { sweepTokens(panel, t, 1); });
  for (int64_t t = 0; t < *known; t += shape.tokensAtOnce)
    sweepTokens(panel, index(t), std::min(shape.tokensAtOnce, *known - t));
}

/// `number` tokens from `t` on over one panel of the state in memory, in the
/// tile's order of operations: read, decay, write, read out. A row is loaded
/// and stored once, and sees the tokens in their order: the same bits however
/// many there are.
void StateSweep::sweepTokens(Value panel, Value t, int64_t number) {
  int64_t cols = shape.cols;
  Value column = mul(panel, index(cols));
  // The selection of this form has checked that the group is static.
  int64_t groupSize = r.query ? *getConstantIntValue(group) : 0;
  SmallVector<Value> tokens, o;
  for (int64_t i = 0; i < number; ++i) {
    tokens.push_back(add(t, index(i)));
    for (int64_t member = 0; member < groupSize; ++member)
      o.push_back(initialOutput(index(member), tokens.back(), column));
  }
  // A single value stays in registers; several come from the nearest cache.
  Value only = r.key && number == 1
                   ? loadVector(packed.values, {t, column}, cols)
                   : Value();

  // Takes a row of the state past these tokens.
  auto sweepRow = [&](Value s, Value d, SmallVector<Value> &carried) {
    for (int64_t i = 0; i < number; ++i) {
      Value token = tokens[i];
      auto readOut = [&] {
        for (int64_t member = 0; member < groupSize; ++member) {
          Value &sum = carried[i * groupSize + member];
          Value q = load(packed.queries, {index(member), token, d});
          sum = fmaVector(splat(q, cols), s, sum);
        }
      };
      if (r.exclusive)
        readOut();
      if (r.key) {
        Value k = splat(load(packed.keys, {token, d}), cols);
        Value v =
            only ? only : loadVector(packed.values, {token, column}, cols);
        s = fmaVector(k, v, decayed(s, token, d, column));
      }
      if (!r.exclusive)
        readOut();
    }
    return s;
  };
  Value before = stateBefore(add(first, t));
  auto sweepInPlace = [&](Value d, ValueRange carriedIn) {
    SmallVector<Value> carried(carriedIn);
    SmallVector<Value> at{task.slot, task.head, d, column};
    SmallVector<Value> ahead{task.slot, task.head, add(d, index(rowsAhead)),
                             column};
    if (r.key)
      prefetchState(before, ahead, cols);
    if (r.key && before != r.state.state)
      prefetchState(r.state.state, ahead, cols);
    Value s = sweepRow(readOperand(before, at, cols), d, carried);
    if (r.key)
      writeOperand(s, r.state.state, at);
    return carried;
  };
  // As many rows at once as there are columns.
  auto sweepBlock = [&](Value d, ValueRange carriedIn) {
    SmallVector<Value> carried(carriedIn);
    BlockPlace place{{task.slot, task.head}, d, column, cols};
    Rows lines = readTransposed(before, place, cols);
    for (auto [i, line] : llvm::enumerate(lines))
      line = sweepRow(line, add(d, index(i)), carried);
    if (r.key) {
      prefetchBlock(r.state.state, {task.slot, task.head}, d,
                    add(column, index(cols)));
      writeTransposed(lines, r.state.state, place);
    }
    return carried;
  };
  Value size = dim(r.state.state, 2);
  SmallVector<Value> total = isTransposed(r.state.state)
                                 ? reduce(index(0), size, cols, o, sweepBlock)
                                 : reduce(index(0), size, 1, o, sweepInPlace);
  for (int64_t i = 0; i < number; ++i)
    for (int64_t member = 0; member < groupSize; ++member)
      writeRow(total[i * groupSize + member], index(member), tokens[i], column);
}
