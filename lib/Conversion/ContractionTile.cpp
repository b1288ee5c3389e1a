//===- ContractionTile.cpp - Products of matrices in vectors --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// C_mn += Σ_k A_mk B_kn. C may have further dimensions, which become loops
// around it, and k may stand for several.
//
// A task is a block of rows of a few panels of columns. It takes the summands
// block by block: it packs the block's panels of B one after the other, so that
// the vectors of each k are neighbours, and keeps MR rows of C in registers for
// all k of the block. Each element of A is read alone and multiplies a whole
// row of the panel. Where C has a dimension that A lacks, such as the heads of
// keys that all have the same weights, its panels share the elements of A. Each
// tile prefetches its share of the rows of the next block, since rows of a head
// lie far apart.
//
// A fill with zeros right before it takes no pass over C: the first block
// starts from zeros instead of reading it.
//
// Every element of C is one chain of fused multiply-adds in the order of k. Its
// bits depend neither on its position nor on the number of threads.
//===----------------------------------------------------------------------===//

#include "VectorBuilder.h"
#include "linattn/Conversion/Passes.h"
#include "linattn/Transforms/Transforms.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERCONTRACTIONSPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The loops and operands of a contraction.
struct Dims {
  unsigned m, n;
  /// Sums; and the other loops, without those that the rows of A lack, which
  /// give more panels of B.
  SmallVector<unsigned> k, outer, ofPanels;
  /// The operands without and with n, and their maps.
  Value left, right, output;
  AffineMap leftMap, rightMap, outputMap;
};

unsigned lastDimOf(AffineMap map) {
  return cast<AffineDimExpr>(map.getResults().back()).getPosition();
}

/// Finds the rows, columns and sums among the loops; the reason where the op is
/// not a product of matrices.
StringRef findDims(linalg::LinalgOp op, Dims &dims) {
  if (!linalg::isaContractionOpInterface(op) || op.getNumDpsInputs() != 2)
    return "not a contraction of two operands";
  for (Value operand : op->getOperands())
    if (!isa<MemRefType>(operand.getType()) ||
        !isa<FloatType>(getElementTypeOrSelf(operand)))
      return "not buffers of floats";
  for (AffineMap map : op.getIndexingMapsArray())
    if (!map.isProjectedPermutation() || map.getNumResults() == 0)
      return "its maps do more than to choose dimensions";
  dims.output = op.getDpsInits()[0];
  dims.outputMap = op.getIndexingMapsArray()[2];
  dims.n = lastDimOf(dims.outputMap);
  unsigned right = op.getIndexingMapsArray()[0].isFunctionOfDim(dims.n) ? 0 : 1;
  dims.right = op->getOperand(right);
  dims.left = op->getOperand(1 - right);
  dims.rightMap = op.getIndexingMapsArray()[right];
  dims.leftMap = op.getIndexingMapsArray()[1 - right];
  if (!dims.rightMap.isFunctionOfDim(dims.n) ||
      dims.leftMap.isFunctionOfDim(dims.n))
    return "the last dimension of its output is not one of a single operand";
  std::optional<unsigned> m;
  for (unsigned i = 0; i < op.getNumLoops(); ++i) {
    if (!dims.outputMap.isFunctionOfDim(i))
      dims.k.push_back(i);
    else if (i != dims.n && !dims.rightMap.isFunctionOfDim(i))
      m = i;
  }
  if (!m)
    return "one operand is a vector";
  dims.m = *m;
  for (unsigned i : dims.k)
    if (!dims.leftMap.isFunctionOfDim(i) || !dims.rightMap.isFunctionOfDim(i))
      return "it sums over what only one operand has";
  if (dims.k.empty())
    return "it sums over nothing";
  for (unsigned i = 0; i < op.getNumLoops(); ++i)
    if (i != dims.m && i != dims.n && dims.outputMap.isFunctionOfDim(i))
      (dims.leftMap.isFunctionOfDim(i) ? dims.outer : dims.ofPanels)
          .push_back(i);
  unsigned last = lastDimOf(dims.rightMap);
  if (last != dims.n && last != dims.k.back())
    return "neither columns nor the last sum are neighbours in memory";
  return {};
}

class ContractionTile : public VectorBuilder {
public:
  ContractionTile(OpBuilder &b, linalg::LinalgOp op, Dims dims,
                  bool startsAtZero, int64_t lanes, int64_t cols, int64_t rows)
      : VectorBuilder(b, op.getLoc(),
                      getAccumulationType(getElementTypeOrSelf(dims.output))),
        dims(std::move(dims)), startsAtZero(startsAtZero), lanes(lanes),
        cols(cols), rowsAtOnce(rows),
        taskRows(llvm::alignTo(leastTaskRows, rows)), blockDepth(chooseDepth()),
        at(op.getNumLoops()) {}

  void emit();

private:
  /// A task has up to `taskPanels` panels, fewer where less than `leastTasks`
  /// tasks would be left. Its rows of A stay in a second cache for all of them.
  static constexpr int64_t leastTaskRows = 192, taskPanels = 8, leastTasks = 8;
  /// Summands between prefetches, some steps; a block has several parts.
  static constexpr int64_t part = 32;

  /// The panel of a block stays in a first cache. Where the rows of A are
  /// neighbours in memory, each summand takes a line of its own beside it.
  int64_t chooseDepth() {
    constexpr int64_t firstCache = 32 << 10, line = 64;
    int64_t bytes = cols * type.getIntOrFloatBitWidth() / 8;
    if (lastDimOf(dims.leftMap) == dims.m)
      bytes += line;
    return llvm::alignDown(firstCache / bytes, part);
  }
  Value sizeOf(unsigned loop);
  Value sizeOf(ArrayRef<unsigned> loops);
  /// Sets the values of loops from the number of their step.
  void locate(ArrayRef<unsigned> loops, Value number);
  bool isBlocked();
  /// Whether there may be a next block, whose rows lie apart in memory.
  bool prefetches();
  Value depthOfPanel();
  void sumBlocks(function_ref<void()> body);
  /// The bounds of the sum at `level`, of the first one those of the block.
  std::pair<Value, Value> boundsOf(unsigned level);
  SmallVector<Value> indices(AffineMap map);
  void packPanel();
  void packTransposed(Value row);
  void prefetchNext(Value number);
  void forEachPanel(Value from, Value to, function_ref<void()> body);
  void sweepTask(Value first, Value end);
  void sweepRows(Value row, int64_t count, Value last);
  Value initialRow();
  SmallVector<Value> sum(SmallVector<Value> sums, unsigned level, Value row,
                         ArrayRef<Value> rows);
  void forEachSummed(unsigned level, Value row, function_ref<void(Value)> body);
  /// Rows of the panel of one step of the sum at `level`.
  Value stride(unsigned level);

  Dims dims;
  /// C holds nothing yet.
  bool startsAtZero;
  int64_t lanes, cols, rowsAtOnce, taskRows;
  /// Summands of a block.
  int64_t blockDepth;
  /// The current value of each loop.
  SmallVector<Value> at;
  Value panel, column, blockBegin, blockEnd;
  /// Parts of the tiles before this one, and the rows that a part prefetches.
  Value partsBefore, partRows;
};

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
  if (!isBlocked() || lastDimOf(dims.rightMap) != dims.n)
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
  // A task groups panels while enough tasks for all threads remain.
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
    if (lastDimOf(dims.rightMap) == last)
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

/// The fill with zeros whose buffer the op is the first one to use; null if
/// there is none.
linalg::FillOp findZeroFill(linalg::LinalgOp op, Value output) {
  if (llvm::is_contained(op.getDpsInputs(), output))
    return {};
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    auto fill = dyn_cast<linalg::FillOp>(before);
    if (fill && fill.getOutputs()[0] == output)
      return matchPattern(fill.getInputs()[0], m_PosZeroFloat())
                 ? fill
                 : linalg::FillOp();
    if (!isMemoryEffectFree(before) && !isa<memref::AllocOp>(before))
      break;
  }
  return {};
}

/// Why a product stays a loop nest: too small to be packed, or within a task.
StringRef whyNotTiled(linalg::LinalgOp op, const Dims &dims, int64_t lanes) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto isBelow = [&](unsigned loop, int64_t least) {
    return !ShapedType::isDynamic(sizes[loop]) && sizes[loop] < least;
  };
  int64_t depth = 1;
  for (unsigned i : dims.k)
    depth = ShapedType::isDynamic(sizes[i]) ? lanes : depth * sizes[i];
  if (isBelow(dims.m, 8) || isBelow(dims.n, lanes) || depth < 8)
    return "a few rows, columns or summands";
  if (op->getParentOfType<scf::ParallelOp>() ||
      op->getParentOfType<scf::ForallOp>())
    return "within a task";
  return {};
}

struct ContractionToVector : OpInterfaceRewritePattern<linalg::LinalgOp> {
  ContractionToVector(MLIRContext *context, int64_t vectorBits,
                      int64_t registers)
      : OpInterfaceRewritePattern(context), vectorBits(vectorBits),
        registers(registers) {}

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    Dims dims;
    if (StringRef why = findDims(op, dims); !why.empty())
      return rewriter.notifyMatchFailure(op, why);
    Type type = getAccumulationType(getElementTypeOrSelf(dims.output));
    int64_t lanes = vectorBits / type.getIntOrFloatBitWidth();
    if (StringRef why = whyNotTiled(op, dims, lanes); !why.empty()) {
      remark::missed(op.getLoc(), remarkNamed("lower-contractions"))
          << "runs as loops: " + why.str();
      return rewriter.notifyMatchFailure(op, why);
    }
    int64_t cols = chooseColumns(op, dims, lanes);
    linalg::FillOp fill = findZeroFill(op, dims.output);
    ContractionTile(rewriter, op, std::move(dims), bool(fill), lanes, cols,
                    registers * 3 / 4 * lanes / cols)
        .emit();
    rewriter.eraseOp(op);
    if (fill)
      rewriter.eraseOp(fill);
    return success();
  }

private:
  /// Sums take three quarters of the registers, a row of the panel some of the
  /// others. Of two vectors of columns and many rows, or of four: the places of
  /// few rows stay in registers, too.
  int64_t chooseColumns(linalg::LinalgOp op, const Dims &dims,
                        int64_t lanes) const {
    int64_t columns = op.getStaticLoopRanges()[dims.n];
    bool isWide = registers >= 32 && !ShapedType::isDynamic(columns) &&
                  columns % (4 * lanes) == 0;
    return (isWide ? 4 : 2) * lanes;
  }

  int64_t vectorBits, registers;
};

struct LinAttnLowerContractionsPass final
    : mlir::linattn::impl::LinAttnLowerContractionsPassBase<
          LinAttnLowerContractionsPass> {
  using LinAttnLowerContractionsPassBase::LinAttnLowerContractionsPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ContractionToVector>(&getContext(), vectorBits, registers);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
