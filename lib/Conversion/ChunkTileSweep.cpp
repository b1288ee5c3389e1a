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

void ChunkTile::sweepPanel(Value panel) {
  column = columnOf(panel);
  if (hasTransition())
    solve(panel);
  if (queries)
    forEachMember([&](Value member) { readOut(panel, member); });
  if (valueRead)
    readValues(panel);
  auto update = [&] {
    if (decaysSolved())
      decayWritten();
    updateState(panel);
  };
  if (!writes)
    return update();
  auto branch = scf::IfOp::create(b, loc, writes, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  update();
  b.setInsertionPointToStart(branch.elseBlock());
  prefetchInsteadOfUpdating();
}

Value ChunkTile::writtenRow(int64_t writer, Value j) {
  bool isSolved = solvesWritten() || writer == 1;
  if (isSolved)
    return loadVector(solved, {j, index(0)}, shape.cols);
  return loadVector(values, {j, column}, shape.cols);
}

/// sums_t += Σ_j P_tj · written_j for the MR tokens from `row` on. The square
/// on the diagonal, under `diagonal`, stops at j = t, or before it
/// if `strict`: what a later token wrote is not even multiplied by 0.
ChunkTile::Rows ChunkTile::addScores(Rows sums, Value scores, Value member,
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
  for (int64_t x = 0; x < rowsAtOnce; ++x) {
    Value j = add(row, index(x));
    Value line = written(j);
    for (int64_t r = strict ? x + 1 : x; r < rowsAtOnce; ++r)
      sums[r] = fmaVector(splat(score(r, j), width), line, sums[r]);
  }
  return sums;
}

/// R = (I − P^ab)⁻¹ (Ad S + P^ak V), or δ, or V + R where b = k, by forward
/// substitution: the rows of earlier blocks from memory, those of this one from
/// registers.
void ChunkTile::solve(Value panel) {
  int64_t cols = shape.cols;
  bool addsValues = solvesWritten();
  int64_t writer = addsValues ? 0 : 1;
  Value none = index(0);
  forEach(index(0), rows, rowsAtOnce, [&](Value row) {
    Rows sums = accumulateState(
        panel,
        [&](int64_t r, Value d) {
          return load(transitionRows(), {add(row, index(r)), d});
        },
        [&](Value r) {
          prefetchKeys(add(row, r));
          if (!queries)
            prefetchNext(destination(), none, add(row, r), /*isWritten=*/true);
        });
    for (int64_t r = 0; r < rowsAtOnce; ++r) {
      Value t = add(row, index(r)), v;
      // An output is the row without its value, which comes last.
      if (addsValues && queries)
        v = loadVector(values, {t, column}, cols);
      if (v && writeGates)
        v = mulf(v, loadVector(writeGates, {t, column}, cols));
      Value factor;
      if (readFactors)
        factor = load(readFactors, {t});
      else if (hasScalarGate())
        factor = load(cumulated, {before ? t : add(t, index(1))});
      if (factor && v)
        sums[r] = fmaVector(sums[r], splat(factor, cols), v);
      else if (factor)
        sums[r] = mulf(sums[r], splat(factor, cols));
      else if (v)
        sums[r] = addf(sums[r], v);
    }
    if (!addsValues)
      sums = addScores(
          sums, transitionScores, none, 0, row,
          [&](Value j) { return writtenRow(0, j); }, /*diagonal=*/true,
          /*strict=*/true);
    sums = addScores(
        sums, transitionScores, none, writer, row,
        [&](Value j) { return writtenRow(writer, j); }, /*diagonal=*/false,
        /*strict=*/true);
    substitute(sums, writer, row);
    if (!queries)
      writeRows(sums, none, row, column);
  });
}

/// Solves for MR rows, of which `sums` holds all but what they are to each
/// other. Leaves the rows that are written in memory, and R in `sums`.
void ChunkTile::substitute(Rows &sums, int64_t writer, Value row) {
  int64_t cols = shape.cols;
  Value none = index(0);
  Rows written;
  for (int64_t r = 0; r < rowsAtOnce; ++r) {
    Value t = add(row, index(r));
    for (int64_t x = 0; x < r; ++x) {
      Value score =
          load(transitionScores, {none, index(writer), t, add(row, index(x))});
      sums[r] = fmaVector(splat(score, cols), written[x], sums[r]);
    }
    if (columnBetas)
      sums[r] = mulf(sums[r], loadVector(columnBetas, {t, column}, cols));
    written.push_back(sums[r]);
    if (!queries && solvesWritten())
      written[r] = addf(sums[r], loadVector(values, {t, column}, cols));
    storeVector(written[r], solved, {t, none});
  }
}

/// O = Qd S + P^qk V + P^qb R for one output head.
void ChunkTile::readOut(Value panel, Value member) {
  int64_t cols = shape.cols;
  forEach(index(0), rows, rowsAtOnce, [&](Value row) {
    Rows sums = accumulateState(
        panel,
        [&](int64_t r, Value d) {
          return load(queries, {member, add(row, index(r)), d});
        },
        [&](Value r) {
          prefetchNext(scan.getQuery(), member, add(row, r));
          prefetchNext(destination(), member, add(row, r),
                       /*isWritten=*/true);
        });
    for (int64_t r = 0; r < rowsAtOnce; ++r) {
      Value t = add(row, index(r));
      if (hasScalarGate())
        sums[r] = mulf(
            sums[r],
            splat(load(cumulated, {exclusive ? t : add(t, index(1))}), cols));
      if (own)
        sums[r] = fmaVector(splat(load(own, {member, t}), cols),
                            loadVector(values, {t, column}, cols), sums[r]);
    }
    for (int64_t writer = 0; writer < writers(); ++writer)
      sums = addScores(
          sums, queryScores, member, writer, row,
          [&](Value j) { return writtenRow(writer, j); }, /*diagonal=*/true,
          exclusive);
    writeRows(sums, member, row, column);
  });
}

/// Decays what is written to the end of the chunk.
void ChunkTile::decayWritten() {
  forEach(rows, [&](Value j) {
    SmallVector<Value> at{j, index(0)};
    Value factor = splat(load(decays, {rows, j}), shape.cols);
    storeVector(mulf(loadVector(solved, at, shape.cols), factor), solved, at);
  });
}

void ChunkTile::writeRows(Rows o, Value member, Value row, Value column) {
  auto write = [&](Value line, Value t) {
    Value inverse = inverses ? load(inverses, {member, t}) : Value();
    if (epilogue)
      return storeVector(normalized(line, inverse), normRows,
                         {member, t, column});
    writeOutput(line, inverse, member, tokenAt(add(first, t)), column);
  };
  Value left = sub(count, row);
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, left,
                                        index(rowsAtOnce));
  auto branch = scf::IfOp::create(b, loc, isWhole, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (auto [r, line] : llvm::enumerate(o))
    write(line, add(row, index(r)));
  b.setInsertionPointToStart(branch.elseBlock());
  for (auto [r, line] : llvm::enumerate(o))
    storeVector(line, outputRows, {index(r), index(0)});
  forEach(left, [&](Value r) {
    write(loadVector(outputRows, {r, index(0)}, shape.cols), add(row, r));
  });
}

/// S ← Γ S + (ρ S + Keᵀ V + Beᵀ R). A chunk's writes are summed from
/// zero: S is rounded once per chunk, not once per token. ρ is the rounding
/// residual of Γ.
void ChunkTile::updateState(Value panel) {
  int64_t cols = shape.cols;
  auto factorAt = [&](Value memref, Value at) {
    return memref ? splat(load(memref, {at}), cols) : Value();
  };
  Value factor = factorAt(cumulated, rows);
  Value rest = factorAt(hasChannelDecay() ? Value() : residual, index(0));
  forEach(index(0), keySize, rowsAtOnce, [&](Value d) {
    prefetchWhileUpdating(d);
    Rows sums = zeroRows(cols);
    for (int64_t writer = 0; writer < writers(); ++writer)
      sums = accumulate(
          sums, index(0), rows,
          [&](int64_t r, Value j) {
            return load(keyRows(writer), {j, add(d, index(r))});
          },
          [&](Value j) { return writtenRow(writer, j); });
    for (int64_t r = 0; r < rowsAtOnce; ++r) {
      SmallVector<Value> at{panel, add(d, index(r)), index(0)};
      Value s = loadVector(tile, at, cols), sum = sums[r];
      Value gate = total ? factorAt(total, at[1]) : factor;
      Value left = total ? factorAt(residual, at[1]) : rest;
      if (left)
        sum = fmaVector(s, left, sum);
      s = gate ? fmaVector(s, gate, sum) : addf(s, sum);
      storeVector(s, tile, at);
    }
  });
}

//===----------------------------------------------------------------------===//
// Prefetching
//===----------------------------------------------------------------------===//

/// The product of MR rows with the panel; `between` is told of the rows.
ChunkTile::Rows
ChunkTile::accumulateState(Value panel,
                           function_ref<Value(int64_t, Value)> left,
                           function_ref<void(Value)> between) {
  Rows sums = zeroRows(shape.cols);
  auto right = [&](Value d) {
    return loadVector(tile, {panel, d, index(0)}, shape.cols);
  };
  auto read = [&]() -> Rows {
    if (!prefetches())
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
  if (prefetches())
    forEach(index(rowsAtOnce), between);
  scf::YieldOp::create(b, loc, sums);
  return Rows(branch.getResults());
}

/// The next chunk is prefetched where there may be one and sizes are known.
bool ChunkTile::prefetches() {
  std::optional<int64_t> tokens = getConstantIntValue(dim(scan.getKey(), 2));
  return getConstantIntValue(keySize) && getConstantIntValue(valueSize) &&
         !(tokens && *tokens <= chunk);
}

/// The chunk that comes next: of the same head, or where the span of tokens
/// ends, of the next one.
void ChunkTile::findNext() {
  auto isPast = [&](Value x, Value limit) -> Value {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, x, limit);
  };
  Value follow = add(first, length), other = add(head, index(1));
  Value isLast = isPast(follow, to), isLastHead = isPast(other, heads);
  nextHead = select(isLast, select(isLastHead, index(0), other), head);
  nextFirst = select(isLast, select(isLastHead, to, from), follow);
}

/// Prefetches the panel's share of an operand's row of token `row` of the next
/// chunk, which may begin anywhere in a line. Past the last token it is that
/// one again.
void ChunkTile::prefetchNext(Value operand, Value member, Value row,
                             bool isWritten) {
  Value rowHead = nextHead, total = heads;
  // Queries and outputs may have several heads per state.
  if (member) {
    rowHead = add(mul(nextHead, group), member);
    total = dim(destination(), 1);
  }
  if (operand != destination())
    rowHead = headOf(operand, rowHead, total);
  for (Value source : rowSources(operand))
    prefetchNextOf(source, rowHead, row, isWritten);
}

void ChunkTile::prefetchNextOf(Value operand, Value rowHead, Value row,
                               bool isWritten) {
  if (isTransposed(operand)) {
    Value panel = div(column, index(shape.cols));
    return prefetchColumns(operand, {batch, rowHead},
                           nextToken(index(scan.getReverse() ? chunk - 1 : 0)),
                           chunk, add(mul(row, panels()), panel),
                           mul(index(chunk), panels()));
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
  prefetchRow(operand, {batch, rowHead, nextToken(row)}, start, index(share),
              isWritten);
}

/// A token's numbers. Where those of its heads are neighbours, each token's are
/// of another line.
void ChunkTile::prefetchNumbers(Value row) {
  for (Value operand : {scan.getDecay(), scan.getBeta(), scan.getInputGate()})
    if (operand && rankOf(operand) == 3)
      prefetchLine(operand, {batch, nextHead, nextToken(row)});
}

/// Prefetches a token's operands of the size of keys, except its query, and its
/// scalars.
void ChunkTile::prefetchKeys(Value row) {
  prefetchNumbers(row);
  Value decay = hasChannelDecay() ? scan.getDecay() : Value();
  for (Value operand :
       {scan.getKey(), decay, scan.getErase(), scan.getA(), scan.getB()})
    if (operand)
      prefetchNext(operand, /*member=*/{}, row);
}

void ChunkTile::prefetchValues(Value row) {
  Value beta = columnBetas ? scan.getBeta() : Value();
  for (Value operand : {scan.getValue(), beta, scan.getWrite()})
    if (operand)
      prefetchNext(operand, /*member=*/{}, row);
  if (!valueRead)
    return;
  prefetchNext(valueRead.query, /*member=*/{}, row);
  prefetchNext(valueRead.output, /*member=*/{}, row, /*isWritten=*/true);
}

/// Prefetches at once what the update would prefetch step by step.
void ChunkTile::prefetchInsteadOfUpdating() {
  if (!prefetches())
    return;
  forEach(count, [&](Value row) {
    if (!hasTransition())
      prefetchKeys(row);
    prefetchValues(row);
  });
}

/// Tokens are divided among the blocks of rows of the state.
void ChunkTile::prefetchWhileUpdating(Value d) {
  if (!prefetches())
    return;
  int64_t blocks = *getConstantIntValue(keySize) / rowsAtOnce;
  int64_t each = llvm::divideCeil(chunk, blocks);
  Value start = mul(div(d, index(rowsAtOnce)), index(each));
  for (int64_t i = 0; i < each; ++i) {
    Value row = min(add(start, index(i)), index(chunk - 1));
    if (!hasTransition())
      prefetchKeys(row);
    prefetchValues(row);
  }
}
