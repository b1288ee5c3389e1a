//===- ContractionTile.cpp - Products of matrices in vectors --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionTile.h"

using namespace mlir;
using namespace mlir::linattn;

/// Of all loops some operand has the size.
Value ContractionTile::sizeOf(unsigned loop) {
  Value size;
  for (auto [map, memref] : {std::pair(dims.leftMap, dims.left),
                             std::pair(dims.rightMap, dims.right),
                             std::pair(dims.outputMap, dims.output)})
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (cast<AffineDimExpr>(expr).getPosition() == loop)
        if (!size || !getConstantIntValue(size))
          size = dim(memref, i);
  return size;
}

Value ContractionTile::sizeOf(ArrayRef<unsigned> loops) {
  Value size = index(1);
  for (unsigned loop : loops)
    size = mul(size, sizeOf(loop));
  return size;
}

void ContractionTile::locate(ArrayRef<unsigned> loops, Value number) {
  for (unsigned loop : llvm::reverse(loops)) {
    at[loop] = rem(number, sizeOf(loop));
    number = div(number, sizeOf(loop));
  }
}

SmallVector<Value> ContractionTile::indices(AffineMap map) {
  SmallVector<Value> values;
  for (AffineExpr expr : map.getResults())
    values.push_back(at[cast<AffineDimExpr>(expr).getPosition()]);
  return values;
}

Value ContractionTile::stride(unsigned level) {
  Value rows = index(1);
  for (unsigned i = level + 1; i < dims.k.size(); ++i)
    rows = mul(rows, sizeOf(dims.k[i]));
  return rows;
}

/// A sum over several dimensions is one block, and one whose parts would be
/// rounded between blocks.
bool ContractionTile::isBlocked() {
  return dims.k.size() == 1 && getElementTypeOrSelf(dims.output) == type;
}

bool ContractionTile::prefetches() {
  if (!isBlocked() || ContractionDims::lastOf(dims.rightMap) != dims.n)
    return false;
  std::optional<int64_t> size = getConstantIntValue(sizeOf(dims.k.front()));
  return !size || *size > blockDepth;
}

/// Whole vectors of the last sum are packed, those of the last step of the
/// others past its end.
Value ContractionTile::depthOfPanel() {
  Value last = sizeOf(dims.k.back());
  if (isBlocked()) {
    std::optional<int64_t> size = getConstantIntValue(last);
    return roundUp(index(size ? std::min(*size, blockDepth) : blockDepth),
                   lanes);
  }
  return add(sub(mul(stride(0), sizeOf(dims.k.front())), last),
             roundUp(last, lanes));
}

void ContractionTile::sumBlocks(function_ref<void()> body) {
  Value size = sizeOf(dims.k.front());
  auto run = [&](Value begin, Value end) {
    blockBegin = begin;
    blockEnd = end;
    body();
  };
  if (!isBlocked())
    return run(index(0), size);
  // An empty sum still writes its zeros.
  Value limit = startsAtZero ? max(size, index(1)) : size;
  forEach(index(0), limit, blockDepth, [&](Value begin) {
    run(begin, min(add(begin, index(blockDepth)), size));
  });
}

std::pair<Value, Value> ContractionTile::boundsOf(unsigned level) {
  if (level == 0)
    return {blockBegin, blockEnd};
  return {index(0), sizeOf(dims.k[level])};
}

/// Runs `body` for each panel in [from, to): of their columns, then of the
/// outer loops that only they have.
void ContractionTile::forEachPanel(Value from, Value to,
                                   function_ref<void()> body) {
  Value panels = ceilDiv(sizeOf(dims.n), cols);
  forEach(from, to, 1, [&](Value number) {
    column = mul(rem(number, panels), index(cols));
    locate(dims.ofPanels, div(number, panels));
    body();
  });
}

/// Tasks: blocks of rows, and of each some panels.
void ContractionTile::emit() {
  Value m = sizeOf(dims.m), blocks = ceilDiv(m, taskRows);
  Value panels = mul(ceilDiv(sizeOf(dims.n), cols), sizeOf(dims.ofPanels));
  Value others = mul(blocks, sizeOf(dims.outer));
  // A task takes several panels if enough tasks for all threads remain.
  Value perTask =
      max(min(div(mul(panels, others), index(leastTasks)), index(taskPanels)),
          index(1));
  Value groups = ceilDiv(panels, perTask);
  parallel(mul(groups, others), [&](Value task) {
    Value from = mul(rem(task, groups), perTask);
    Value to = min(add(from, perTask), panels);
    task = div(task, groups);
    Value first = mul(rem(task, blocks), index(taskRows));
    locate(dims.outer, div(task, blocks));
    panel = scratch({getAsOpFoldResult(depthOfPanel()), b.getIndexAttr(cols)});
    Value end = min(add(first, index(taskRows)), m);
    sumBlocks([&] {
      forEachPanel(from, to, [&] {
        packPanel();
        sweepTask(first, end);
      });
    });
    freeScratch();
  });
}

/// All rows of a task: whole tiles, and a last one of the rows that are left,
/// or, where their number is unknown, of as many, which repeat the last row.
void ContractionTile::sweepTask(Value first, Value end) {
  Value whole = sub(end, rem(sub(end, first), index(rowsAtOnce)));
  Value tiles = ceilDiv(sub(end, first), rowsAtOnce);
  Value parts = index(blockDepth / part);
  partRows = ceilDiv(index(blockDepth), mul(tiles, parts));
  auto sweep = [&](Value row, int64_t count, Value last) {
    partsBefore = mul(div(sub(row, first), index(rowsAtOnce)), parts);
    sweepRows(row, count, last);
  };
  forEach(first, whole, rowsAtOnce,
          [&](Value row) { sweep(row, rowsAtOnce, Value()); });
  std::optional<int64_t> m = getConstantIntValue(sizeOf(dims.m));
  if (m && *m % rowsAtOnce == 0)
    return;
  ifThen(compare(arith::CmpIPredicate::slt, whole, end), [&] {
    if (m)
      sweep(whole, *m % rowsAtOnce, Value());
    else
      sweep(whole, rowsAtOnce, sub(end, index(1)));
  });
}

/// Loops over the sums outside of the last one; `row` is that of the panel
/// where the last one begins.
void ContractionTile::forEachSummed(unsigned level, Value row,
                                    function_ref<void(Value)> body) {
  if (level + 1 == dims.k.size())
    return body(row);
  forEach(sizeOf(dims.k[level]), [&](Value i) {
    at[dims.k[level]] = i;
    forEachSummed(level + 1, add(row, mul(i, stride(level))), body);
  });
}

void ContractionTile::packPanel() {
  forEachSummed(0, index(0), [&](Value row) {
    unsigned last = dims.k.back();
    if (ContractionDims::lastOf(dims.rightMap) == last)
      return packTransposed(row);
    at[dims.n] = column;
    auto [begin, end] = boundsOf(dims.k.size() - 1);
    forEach(begin, end, 1, [&, begin = begin](Value i) {
      at[last] = i;
      storeVector(readOperand(dims.right, indices(dims.rightMap), cols), panel,
                  {add(row, sub(i, begin)), index(0)});
    });
  });
}

/// B as [n, k]: square blocks are transposed in registers. Columns past the
/// last one repeat it, and are not stored.
void ContractionTile::packTransposed(Value row) {
  unsigned last = dims.k.back();
  Value lastColumn = sub(sizeOf(dims.n), index(1));
  auto [begin, end] = boundsOf(dims.k.size() - 1);
  forEach(begin, end, lanes, [&, begin = begin](Value k) {
    at[last] = k;
    for (int64_t c = 0; c < cols; c += lanes) {
      SmallVector<Value> lines;
      for (int64_t i = 0; i < lanes; ++i) {
        at[dims.n] = min(add(column, index(c + i)), lastColumn);
        lines.push_back(readOperand(dims.right, indices(dims.rightMap), lanes));
      }
      for (auto [i, line] : llvm::enumerate(transposed(lines)))
        storeVector(line, panel,
                    {add(row, add(sub(k, begin), index(i))), index(c)});
    }
  });
}

/// Prefetches the rows of the next block that are the share of one part of the
/// tiles, by its number; past the last row that one again.
void ContractionTile::prefetchNext(Value number) {
  unsigned sum = dims.k.front();
  Value current = at[sum], last = sub(sizeOf(sum), index(1));
  Value first = add(blockEnd, mul(number, partRows));
  at[dims.n] = column;
  forEach(partRows, [&](Value i) {
    at[sum] = min(add(first, i), last);
    prefetchRow(dims.right, ArrayRef(indices(dims.rightMap)).drop_back(),
                column, index(cols), /*isWritten=*/false, secondCache);
  });
  at[sum] = current;
}

Value ContractionTile::initialRow() {
  auto read = [&] {
    return readOperand(dims.output, indices(dims.outputMap), cols);
  };
  if (!startsAtZero)
    return read();
  if (!isBlocked())
    return zeros(cols);
  Value isFirst = compare(arith::CmpIPredicate::eq, blockBegin, index(0));
  return select(isFirst, zeros(cols), read());
}

/// `count` rows of the output; those past `last`, if that is given, repeat it.
void ContractionTile::sweepRows(Value row, int64_t count, Value last) {
  SmallVector<Value> rows, sums;
  for (int64_t r = 0; r < count; ++r) {
    rows.push_back(add(row, index(r)));
    if (last)
      rows.back() = min(rows.back(), last);
  }
  at[dims.n] = column;
  for (Value m : rows) {
    at[dims.m] = m;
    sums.push_back(initialRow());
  }
  sums = sum(sums, 0, index(0), rows);
  at[dims.n] = column;
  for (auto [m, line] : llvm::zip_equal(rows, sums)) {
    at[dims.m] = m;
    writeOperand(line, dims.output, indices(dims.outputMap));
  }
}

SmallVector<Value> ContractionTile::sum(SmallVector<Value> sums, unsigned level,
                                        Value row, ArrayRef<Value> rows) {
  unsigned loop = dims.k[level];
  auto [begin, end] = boundsOf(level);
  if (level + 1 < dims.k.size())
    return reduce(begin, end, 1, sums,
                  [&](Value i, ValueRange carried) -> SmallVector<Value> {
                    at[loop] = i;
                    return sum(SmallVector<Value>(carried), level + 1,
                               add(row, mul(i, stride(level))), rows);
                  });
  auto left = [&](int64_t r, Value k) {
    at[loop] = k;
    at[dims.m] = rows[r];
    return convert(load(dims.left, indices(dims.leftMap)), type);
  };
  auto right = [&, begin = begin](Value k) {
    return loadVector(panel, {add(row, sub(k, begin)), index(0)}, cols);
  };
  Value whole = endOfSteps(begin, end);
  if (prefetches())
    sums = reduce(begin, whole, part, sums,
                  [&, begin = begin](Value from, ValueRange carried) {
                    Value done = div(sub(from, begin), index(part));
                    prefetchNext(add(partsBefore, done));
                    Value to = min(add(from, index(part)), whole);
                    return accumulate(Rows(carried), from, to, left, right);
                  });
  else
    sums = accumulate(sums, begin, whole, left, right);
  std::optional<int64_t> size = getConstantIntValue(sizeOf(loop));
  if (size && *size % unroll == 0)
    return sums;
  return accumulateRest(sums, whole, end, left, right);
}
