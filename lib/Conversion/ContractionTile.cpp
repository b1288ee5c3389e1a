//===- ContractionTile.cpp - Products of matrices in vectors --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionTile.h"

#include "llvm/Support/SaveAndRestore.h"

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

/// Unknown sizes count as one.
int64_t ContractionTile::leastSizeOf(ArrayRef<unsigned> loops) {
  int64_t size = 1;
  for (unsigned loop : loops)
    size *= getConstantIntValue(sizeOf(loop)).value_or(1);
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

/// Packing reads memory in order and converts 16 bits once. It pays where the
/// rows are neighbours in memory, so that each summand has a line of its own,
/// or where they are converted, and several panels share them. Converted rows
/// are packed for an unknown number of panels, too: many panels lose more
/// without it than one does by it.
bool ContractionTile::packsRows() {
  unsigned last = ContractionDims::lastOf(dims.leftMap);
  bool isConverted = getElementTypeOrSelf(dims.left) != type;
  bool paysOff = last == dims.m || (last == dims.k.front() && isConverted);
  if (!isBlocked() || !paysOff || mostTiles() == 0)
    return false;
  if (isConverted && !getConstantIntValue(sizeOf(dims.n)))
    return true;
  int64_t panels =
      llvm::divideCeil(leastSizeOf(dims.n), cols) * leastSizeOf(dims.ofPanels);
  int64_t blocks = llvm::divideCeil(leastSizeOf(dims.m), taskRows());
  Value perTask =
      panelsPerTask(index(panels), index(blocks * leastSizeOf(dims.outer)));
  return std::min(panels, *getConstantIntValue(perTask)) >= leastPanels;
}

/// The panel of a block stays in a first cache, beside a tile of packed rows.
/// Of rows that are neighbours in memory, and not packed, each summand takes a
/// line of its own.
int64_t ContractionTile::chooseDepth() {
  constexpr int64_t firstCache = 32 << 10, line = 64;
  int64_t size = type.getIntOrFloatBitWidth() / 8, bytes = cols * size;
  if (packsRows())
    bytes += rowsAtOnce * size;
  else if (ContractionDims::lastOf(dims.leftMap) == dims.m)
    bytes += line;
  return llvm::alignDown(firstCache / bytes, part);
}

bool ContractionTile::prefetches() {
  if (!isBlocked() || ContractionDims::lastOf(dims.rightMap) != dims.n)
    return false;
  auto fits = [](Value size, int64_t most) {
    std::optional<int64_t> known = getConstantIntValue(size);
    return known && *known <= most;
  };
  bool isOnlyPanel =
      fits(sizeOf(dims.n), cols) && fits(sizeOf(dims.ofPanels), 1);
  return !isOnlyPanel || !fits(sizeOf(dims.k.front()), blockDepth);
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
    block = {begin, end};
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
    return {block.begin, block.end};
  return {index(0), sizeOf(dims.k[level])};
}

/// Panels are numbered by their columns, then by the outer loops that only they
/// have.
void ContractionTile::locatePanel(Value number) {
  Value panels = ceilDiv(sizeOf(dims.n), cols);
  column = at[dims.n] = mul(rem(number, panels), index(cols));
  locate(dims.ofPanels, div(number, panels));
}

/// Runs `body` for each panel in [from, to) of a block. The one that is packed
/// next is the next one of the block, or the first one of the next block.
void ContractionTile::forEachPanel(Value from, Value to,
                                   function_ref<void()> body) {
  forEach(from, to, 1, [&](Value number) {
    Value following = add(number, index(1));
    Value isLast = compare(arith::CmpIPredicate::eq, following, to);
    locatePanel(select(isLast, from, following));
    at[dims.k.front()] = select(isLast, block.end, block.begin);
    next.at = at;
    locatePanel(number);
    body();
  });
}

/// Panels are grouped while at least `leastTasks` tasks remain. `others`: tasks
/// of one panel.
Value ContractionTile::panelsPerTask(Value panels, Value others) {
  Value grouped = div(mul(panels, others), index(leastTasks));
  return max(min(grouped, index(taskPanels)), index(1));
}

int64_t ContractionTile::mostTiles() {
  int64_t rows = taskRows();
  if (std::optional<int64_t> m = getConstantIntValue(sizeOf(dims.m)))
    rows = std::min(rows, *m);
  return rows / rowsAtOnce;
}

/// Tasks: blocks of rows, and of each some panels.
void ContractionTile::emit() {
  Value m = sizeOf(dims.m), blocks = ceilDiv(m, taskRows());
  Value panels = mul(ceilDiv(sizeOf(dims.n), cols), sizeOf(dims.ofPanels));
  Value others = mul(blocks, sizeOf(dims.outer));
  Value perTask = panelsPerTask(panels, others);
  Value groups = ceilDiv(panels, perTask);
  parallel(mul(groups, others), [&](Value task) {
    Value from = mul(rem(task, groups), perTask);
    Value to = min(add(from, perTask), panels);
    task = div(task, groups);
    Value first = mul(rem(task, blocks), index(taskRows()));
    locate(dims.outer, div(task, blocks));
    OpFoldResult depth = getAsOpFoldResult(depthOfPanel());
    panel = scratch({depth, b.getIndexAttr(cols)});
    if (packsRows())
      packedRows = scratch(
          {b.getIndexAttr(mostTiles()), depth, b.getIndexAttr(rowsAtOnce)});
    Value end = min(add(first, index(taskRows())), m);
    sumBlocks([&] {
      if (packedRows)
        packRows(first, end);
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
  Value whole = add(first, mul(wholeTiles(first, end), index(rowsAtOnce)));
  Value tiles = ceilDiv(sub(end, first), rowsAtOnce);
  // An empty sum has a block without summands.
  Value parts = max(ceilDiv(sub(block.end, block.begin), part), index(1));
  next.rowsOfPart = ceilDiv(depthOfPanel(), mul(tiles, parts));
  auto sweep = [&](Value row, int64_t count, Value last) {
    Value tile = div(sub(row, first), index(rowsAtOnce));
    next.partsBefore = mul(tile, parts);
    sweepRows(tile, row, count, last);
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

/// The next summands of `count` rows or columns, as many as lanes, transposed;
/// `select` sets the loop of one of them.
SmallVector<Value>
ContractionTile::readSummands(Value operand, AffineMap map, int64_t count,
                              function_ref<void(int64_t)> select) {
  SmallVector<Value> lines;
  for (int64_t i = 0; i < count; ++i) {
    select(i);
    lines.push_back(readOperand(operand, indices(map), lanes));
  }
  if (count < lanes)
    lines.resize(lanes, zeros(lanes));
  return transposed(lines);
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
      SmallVector<Value> lines =
          readSummands(dims.right, dims.rightMap, lanes, [&](int64_t i) {
            at[dims.n] = min(add(column, index(c + i)), lastColumn);
          });
      for (auto [i, line] : llvm::enumerate(lines))
        storeVector(line, panel,
                    {add(row, add(sub(k, begin), index(i))), index(c)});
    }
  });
}

/// The whole tiles of the rows [first, end).
void ContractionTile::packRows(Value first, Value end) {
  if (ContractionDims::lastOf(dims.leftMap) == dims.m)
    return packNeighbours(first, end);
  forEach(wholeTiles(first, end), [&](Value tile) {
    packTransposedRows(add(first, mul(tile, index(rowsAtOnce))), tile);
  });
}

/// A as [k, m].
void ContractionTile::packNeighbours(Value first, Value end) {
  unsigned sum = dims.k.front();
  Value last = sub(sizeOf(sum), index(1));
  forEach(block.begin, block.end, 1, [&](Value k) {
    at[sum] = min(add(k, index(rowsAhead)), last);
    at[dims.m] = first;
    prefetchRow(dims.left, ArrayRef(indices(dims.leftMap)).drop_back(), first,
                sub(end, first), /*isWritten=*/false, firstCache);
    at[sum] = k;
    forEach(wholeTiles(first, end), [&](Value tile) {
      at[dims.m] = add(first, mul(tile, index(rowsAtOnce)));
      Value line = readElements(dims.left, indices(dims.leftMap), rowsAtOnce,
                                /*padding=*/0.0, /*isInside=*/true);
      storeVector(convert(line, type), packedRows,
                  {tile, sub(k, block.begin), index(0)});
    });
  });
}

/// A as [m, k]: square blocks are transposed in registers.
void ContractionTile::packTransposedRows(Value row, Value tile) {
  forEach(block.begin, block.end, lanes, [&](Value k) {
    at[dims.k.front()] = k;
    for (int64_t begin = 0; begin < rowsAtOnce; begin += lanes) {
      int64_t count = std::min(lanes, rowsAtOnce - begin);
      SmallVector<Value> lines =
          readSummands(dims.left, dims.leftMap, count, [&](int64_t i) {
            at[dims.m] = add(row, index(begin + i));
          });
      for (auto [i, line] : llvm::enumerate(lines))
        storeVector(vector::ExtractStridedSliceOp::create(
                        b, loc, line, ArrayRef<int64_t>{0},
                        ArrayRef<int64_t>{count}, ArrayRef<int64_t>{1}),
                    packedRows,
                    {tile, add(sub(k, block.begin), index(i)), index(begin)});
    }
  });
}

/// Prefetches the rows of the next panel that are the share of one part of the
/// tiles, by its number; past the last row that one again.
void ContractionTile::prefetchNext(Value number) {
  llvm::SaveAndRestore<SmallVector<Value>> here(at, next.at);
  unsigned sum = dims.k.front();
  Value last = sub(sizeOf(sum), index(1));
  Value first = add(at[sum], mul(number, next.rowsOfPart));
  forEach(next.rowsOfPart, [&](Value i) {
    at[sum] = min(add(first, i), last);
    prefetchRow(dims.right, ArrayRef(indices(dims.rightMap)).drop_back(),
                at[dims.n], index(cols), /*isWritten=*/false, secondCache);
  });
}

Value ContractionTile::initialRow() {
  auto read = [&] {
    return readOperand(dims.output, indices(dims.outputMap), cols);
  };
  if (!startsAtZero)
    return read();
  if (!isBlocked())
    return zeros(cols);
  Value isFirst = compare(arith::CmpIPredicate::eq, block.begin, index(0));
  return select(isFirst, zeros(cols), read());
}

/// `count` rows of the output; those past `last`, if that is given, repeat it.
void ContractionTile::sweepRows(Value tile, Value row, int64_t count,
                                Value last) {
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
  bool isPacked = packedRows && count == rowsAtOnce && !last;
  sums = sum(sums, 0, index(0), [&](int64_t r, Value k) {
    if (isPacked)
      return load(packedRows, {tile, sub(k, block.begin), index(r)});
    at[dims.k.back()] = k;
    at[dims.m] = rows[r];
    return convert(load(dims.left, indices(dims.leftMap)), type);
  });
  at[dims.n] = column;
  for (auto [m, line] : llvm::zip_equal(rows, sums)) {
    at[dims.m] = m;
    writeOperand(line, dims.output, indices(dims.outputMap));
  }
}

SmallVector<Value>
ContractionTile::sum(SmallVector<Value> sums, unsigned level, Value row,
                     function_ref<Value(int64_t, Value)> left) {
  unsigned loop = dims.k[level];
  auto [begin, end] = boundsOf(level);
  if (level + 1 < dims.k.size())
    return reduce(begin, end, 1, sums,
                  [&](Value i, ValueRange carried) -> SmallVector<Value> {
                    at[loop] = i;
                    return sum(SmallVector<Value>(carried), level + 1,
                               add(row, mul(i, stride(level))), left);
                  });
  auto right = [&, begin = begin](Value k) {
    return loadVector(panel, {add(row, sub(k, begin)), index(0)}, cols);
  };
  Value whole = endOfSteps(begin, end);
  if (prefetches())
    sums = reduce(begin, whole, part, sums,
                  [&, begin = begin](Value from, ValueRange carried) {
                    Value done = div(sub(from, begin), index(part));
                    prefetchNext(add(next.partsBefore, done));
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
