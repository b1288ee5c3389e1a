//===- ChunkTileSweep.cpp - The products of a chunk -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One panel of the state at a time: solve for δ or R, read, write. Every
// product keeps MR rows of sums in registers.
//
//===----------------------------------------------------------------------===//

#include "ChunkTile.h"

using namespace mlir;
using namespace mlir::linattn;

void ChunkSweep::emit() {
  if (hasTransition())
    solve();
  if (packed.queries)
    forEachMember([&](Value member) { readOut(member); });
  if (plan.valueRead)
    ChunkValueRead(*this).readPanel(number, column);
  auto update = [&] {
    if (decaysSolved())
      decayWritten();
    updateState();
  };
  if (!writes)
    return update();
  auto branch = scf::IfOp::create(b, loc, writes, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  update();
  b.setInsertionPointToStart(branch.elseBlock());
  ahead.prefetchInsteadOfUpdating();
}

Value ChunkSweep::writtenRow(int64_t writer, Value j) {
  bool isSolved = solvesWritten() || writer == 1;
  if (isSolved)
    return loadVector(panel.solved, {j, index(0)}, shape.cols);
  return loadVector(packed.values, {j, column}, shape.cols);
}

ChunkBlock::Rows ChunkBlock::addScores(Rows sums, Value scores, Value member,
                                       int64_t writer, Value row,
                                       function_ref<Value(Value)> written,
                                       bool diagonal, bool strict) {
  auto score = [&](int64_t r, Value j) {
    return load(scores, {member, index(writer), add(row, index(r)), j});
  };
  int64_t width = cast<VectorType>(sums.front().getType()).getNumElements();
  sums = accumulate(sums, index(0), row, score, written);
  if (!diagonal)
    return sums;
  for (int64_t x = 0; x < plan.rowsAtOnce; ++x) {
    Value j = add(row, index(x));
    Value line = written(j);
    for (int64_t r = strict ? x + 1 : x; r < plan.rowsAtOnce; ++r)
      sums[r] = fmaVector(splat(score(r, j), width), line, sums[r]);
  }
  return sums;
}

/// R = (I − P^ab)⁻¹ (Ad S + P^ak V), or δ, or V + R where b = k, by forward
/// substitution: the rows of earlier blocks from memory, those of this one from
/// registers.
void ChunkSweep::solve() {
  int64_t cols = shape.cols;
  bool addsValues = solvesWritten();
  int64_t writer = addsValues ? 0 : 1;
  Value none = index(0);
  forEach(index(0), rows, plan.rowsAtOnce, [&](Value row) {
    Rows sums = accumulateState(
        [&](int64_t r, Value d) {
          return load(transitionRows(), {add(row, index(r)), d});
        },
        [&](Value x) {
          ahead.prefetchKeys(add(row, x));
          if (!packed.queries)
            ahead.prefetchRowOf(r.output, none, add(row, x),
                                /*isWritten=*/true);
        });
    for (int64_t r = 0; r < plan.rowsAtOnce; ++r) {
      Value t = add(row, index(r)), v;
      // An output is the row without its value, which comes last.
      if (addsValues && packed.queries)
        v = loadVector(packed.values, {t, column}, cols);
      if (v && packed.writeGates)
        v = mulf(v, loadVector(packed.writeGates, {t, column}, cols));
      Value factor;
      if (numbers.readFactors)
        factor = load(numbers.readFactors, {t});
      else if (hasScalarGate())
        factor = cumulatedAt(t, before);
      if (factor && v)
        sums[r] = fmaVector(sums[r], splat(factor, cols), v);
      else if (factor)
        sums[r] = mulf(sums[r], splat(factor, cols));
      else if (v)
        sums[r] = addf(sums[r], v);
    }
    if (!addsValues)
      sums = addScores(
          sums, scores.transition, none, 0, row,
          [&](Value j) { return writtenRow(0, j); }, /*diagonal=*/true,
          /*strict=*/true);
    sums = addScores(
        sums, scores.transition, none, writer, row,
        [&](Value j) { return writtenRow(writer, j); }, /*diagonal=*/false,
        /*strict=*/true);
    substitute(sums, writer, row);
    if (!packed.queries)
      writeRows(sums, none, row);
  });
}

/// Solves for MR rows, of which `sums` holds all but what they are to each
/// other. Leaves the rows that are written in memory, and R in `sums`.
void ChunkSweep::substitute(Rows &sums, int64_t writer, Value row) {
  int64_t cols = shape.cols;
  Value none = index(0);
  Rows written;
  for (int64_t r = 0; r < plan.rowsAtOnce; ++r) {
    Value t = add(row, index(r));
    for (int64_t x = 0; x < r; ++x) {
      Value score =
          load(scores.transition, {none, index(writer), t, add(row, index(x))});
      sums[r] = fmaVector(splat(score, cols), written[x], sums[r]);
    }
    if (packed.columnBetas)
      sums[r] =
          mulf(sums[r], loadVector(packed.columnBetas, {t, column}, cols));
    written.push_back(sums[r]);
    if (!packed.queries && solvesWritten())
      written[r] = addf(sums[r], loadVector(packed.values, {t, column}, cols));
    storeVector(written[r], panel.solved, {t, none});
  }
}

/// O = Qd S + P^qk V + P^qb R for one output head.
void ChunkSweep::readOut(Value member) {
  int64_t cols = shape.cols;
  forEach(index(0), rows, plan.rowsAtOnce, [&](Value row) {
    Rows sums = accumulateState(
        [&](int64_t r, Value d) {
          return load(packed.queries, {member, add(row, index(r)), d});
        },
        [&](Value x) {
          ahead.prefetchRowOf(r.query, member, add(row, x));
          ahead.prefetchRowOf(r.output, member, add(row, x),
                              /*isWritten=*/true);
        });
    for (int64_t r = 0; r < plan.rowsAtOnce; ++r) {
      Value t = add(row, index(r));
      if (hasScalarGate())
        sums[r] = mulf(sums[r], splat(cumulatedAt(t, exclusive), cols));
      if (numbers.own)
        sums[r] =
            fmaVector(splat(load(numbers.own, {member, t}), cols),
                      loadVector(packed.values, {t, column}, cols), sums[r]);
    }
    for (int64_t writer = 0; writer < writers(); ++writer)
      sums = addScores(
          sums, scores.queries, member, writer, row,
          [&](Value j) { return writtenRow(writer, j); }, /*diagonal=*/true,
          exclusive);
    writeRows(sums, member, row);
  });
}

/// Decays what is written to the end of the chunk.
void ChunkSweep::decayWritten() {
  forEach(rows, [&](Value j) {
    SmallVector<Value> at{j, index(0)};
    Value factor = splat(load(scores.decays, {rows, j}), shape.cols);
    storeVector(mulf(loadVector(panel.solved, at, shape.cols), factor),
                panel.solved, at);
  });
}

void ChunkSweep::writeRows(Rows o, Value member, Value row) {
  auto write = [&](Value line, Value t) {
    Value inverse =
        numbers.inverses ? load(numbers.inverses, {member, t}) : Value();
    writeRow(line, inverse, member, t, column, panel.normRows);
  };
  Value left = sub(count, row);
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, left,
                                        index(plan.rowsAtOnce));
  auto branch = scf::IfOp::create(b, loc, isWhole, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (auto [r, line] : llvm::enumerate(o))
    write(line, add(row, index(r)));
  b.setInsertionPointToStart(branch.elseBlock());
  for (auto [r, line] : llvm::enumerate(o))
    storeVector(line, panel.outputRows, {index(r), index(0)});
  forEach(left, [&](Value r) {
    write(loadVector(panel.outputRows, {r, index(0)}, shape.cols), add(row, r));
  });
}

/// S ← Γ S + (ρ S + Keᵀ V + Beᵀ R). A chunk's writes are summed from
/// zero: S is rounded once per chunk, not once per token. ρ is the rounding
/// residual of Γ.
void ChunkSweep::updateState() {
  int64_t cols = shape.cols;
  auto factorAt = [&](Value memref, Value at) {
    return memref ? splat(load(memref, {at}), cols) : Value();
  };
  Value factor = factorAt(numbers.cumulated, rows);
  Value rest =
      factorAt(hasChannelDecay() ? Value() : scores.residual, index(0));
  forEach(index(0), keySize, plan.rowsAtOnce, [&](Value d) {
    ahead.prefetchWhileUpdating(d);
    Rows sums = zeroRows();
    for (int64_t writer = 0; writer < writers(); ++writer)
      sums = accumulate(
          sums, index(0), rows,
          [&](int64_t r, Value j) {
            return load(keyRows(writer), {j, add(d, index(r))});
          },
          [&](Value j) { return writtenRow(writer, j); });
    for (int64_t r = 0; r < plan.rowsAtOnce; ++r) {
      SmallVector<Value> at{number, add(d, index(r)), index(0)};
      Value s = loadVector(panel.state, at, cols), sum = sums[r];
      Value gate = scores.total ? factorAt(scores.total, at[1]) : factor;
      Value left = scores.total ? factorAt(scores.residual, at[1]) : rest;
      if (left)
        sum = fmaVector(s, left, sum);
      s = gate ? fmaVector(s, gate, sum) : addf(s, sum);
      storeVector(s, panel.state, at);
    }
  });
}

/// The product of MR rows with the panel; `between` is told of the rows.
ChunkSweep::Rows
ChunkSweep::accumulateState(function_ref<Value(int64_t, Value)> left,
                            function_ref<void(Value)> between) {
  Rows sums = zeroRows();
  auto right = [&](Value d) {
    return loadVector(panel.state, {number, d, index(0)}, shape.cols);
  };
  auto read = [&]() -> Rows {
    if (!ahead.prefetches())
      return accumulate(sums, index(0), keySize, left, right);
    return accumulateInParts(sums, keySize, left, right, between);
  };
  if (!reads)
    return read();
  // A state of zeros is not read; its product is what the sums start from.
  auto branch = scf::IfOp::create(b, loc, ValueRange(sums).getTypes(), reads,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, read());
  b.setInsertionPointToStart(branch.elseBlock());
  if (ahead.prefetches())
    forEach(index(plan.rowsAtOnce), between);
  scf::YieldOp::create(b, loc, sums);
  return Rows(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Prefetching
//===----------------------------------------------------------------------===//

bool ChunkPrefetch::prefetches() {
  std::optional<int64_t> tokens = getConstantIntValue(dim(r.key, 2));
  return getConstantIntValue(keySize) && getConstantIntValue(valueSize) &&
         !(tokens && *tokens <= plan.chunk);
}

ChunkPrefetch::Next ChunkPrefetch::findNext(ChunkBlock &c) {
  const Task &task = c.task;
  auto isPast = [&](Value x, Value limit) -> Value {
    return arith::CmpIOp::create(c.b, c.loc, arith::CmpIPredicate::sge, x,
                                 limit);
  };
  Value follow = c.add(c.first, c.length), other = c.add(task.head, c.index(1));
  Value isLast = isPast(follow, task.to), isLastHead = isPast(other, c.heads);
  Value head =
      c.select(isLast, c.select(isLastHead, c.index(0), other), task.head);
  return {c.select(isLast, c.select(isLastHead, task.to, task.from), follow),
          head};
}

void ChunkPrefetch::prefetchRowOf(Value operand, Value member, Value row,
                                  bool isWritten) {
  Value rowHead = next.head, total = heads;
  // Queries and outputs may have several heads per state.
  if (member) {
    rowHead = add(mul(next.head, group), member);
    total = dim(r.output, 1);
  }
  if (operand != r.output)
    rowHead = headOf(operand, rowHead, total);
  for (Value source : rowSources(operand))
    prefetchSource(source, rowHead, row, isWritten);
}

void ChunkPrefetch::prefetchSource(Value operand, Value rowHead, Value row,
                                   bool isWritten) {
  if (isTransposed(operand)) {
    Value panel = div(column, index(shape.cols));
    return prefetchColumns(operand, {task.batch, rowHead},
                           nextToken(index(r.reverse ? plan.chunk - 1 : 0)),
                           plan.chunk, add(mul(row, panels()), panel),
                           mul(index(plan.chunk), panels()));
  }
  // Types may leave the size of one operand open that others know.
  std::optional<int64_t> width = getConstantIntValue(dim(operand, 3));
  if (!width)
    return;
  int64_t line = elementsPerLine(operand);
  // Panels divide the columns of the values; of other rows each gets a part.
  int64_t count = *getConstantIntValue(panels());
  int64_t share = llvm::alignTo(llvm::divideCeil(*width, count), line);
  Value start = mul(div(column, index(shape.cols)), index(share));
  prefetchRow(operand, {task.batch, rowHead, nextToken(row)}, start,
              index(share), isWritten);
}

/// A token's numbers. Where those of its heads are neighbours, each token's are
/// of another line.
void ChunkPrefetch::prefetchNumbers(Value row) {
  for (Value operand : {r.decay, r.beta, r.inputGate})
    if (operand && rankOf(operand) == 3)
      prefetchLine(operand, {task.batch, next.head, nextToken(row)});
}

void ChunkPrefetch::prefetchKeys(Value row) {
  prefetchNumbers(row);
  Value decay = hasChannelDecay() ? r.decay : Value();
  for (Value operand : {r.key, decay, r.erase, r.a, r.b})
    if (operand)
      prefetchRowOf(operand, /*member=*/{}, row);
}

void ChunkPrefetch::prefetchValues(Value row) {
  Value beta = packed.columnBetas ? r.beta : Value();
  for (Value operand : {r.value, beta, r.write})
    if (operand)
      prefetchRowOf(operand, /*member=*/{}, row);
  if (!plan.valueRead)
    return;
  prefetchRowOf(plan.valueRead.query, /*member=*/{}, row);
  prefetchRowOf(plan.valueRead.output, /*member=*/{}, row, /*isWritten=*/true);
}

void ChunkPrefetch::prefetchInsteadOfUpdating() {
  if (!prefetches())
    return;
  forEach(count, [&](Value row) {
    if (!hasTransition())
      prefetchKeys(row);
    prefetchValues(row);
  });
}

/// Tokens are divided among the blocks of rows of the state.
void ChunkPrefetch::prefetchWhileUpdating(Value d) {
  if (!prefetches())
    return;
  int64_t blocks = *getConstantIntValue(keySize) / plan.rowsAtOnce;
  int64_t each = llvm::divideCeil(plan.chunk, blocks);
  Value start = mul(div(d, index(plan.rowsAtOnce)), index(each));
  for (int64_t i = 0; i < each; ++i) {
    Value row = min(add(start, index(i)), index(plan.chunk - 1));
    if (!hasTransition())
      prefetchKeys(row);
    prefetchValues(row);
  }
}
