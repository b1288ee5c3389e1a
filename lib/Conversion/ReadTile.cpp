//===- ReadTile.cpp - Reading many queries from a state -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// O = φ(Q) S as a product of matrices: rows × cols sums stay in registers while
// the features stream past, so that an output is written once. A task is a run
// of tokens of one head. S is packed panel by panel; per block of tokens
//
//   pack    φ(q), zero-padded to whole vectors
//   z       the denominators, φ(q)·z
//   read    o_t = Σ_d q_td S_d, o · 1/den to the output; meanwhile the rows of
//           the next block are prefetched
//
// Every element is the same sum in the same order in any task and block.
//
//===----------------------------------------------------------------------===//

#include "TileBuilder.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Tokens of one task: enough that packing the state costs little beside them,
/// few enough that the rows of one token's heads, neighbours in [B, T, H, D],
/// are all read while their pages are in the TLB.
constexpr int64_t taskTokens = 256;

class ReadTile : public TileBuilder {
public:
  ReadTile(OpBuilder &b, ReadOp op, TileShape shape)
      : TileBuilder(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                    getElementTypeOrSelf(op.getQuery()), shape),
        op(op) {
    // The first cache has room for the blocks of two operands.
    scatteredRows = firstCache;
  }

  void emit();

private:
  void emitTask(Value begin, Value end);
  void allocateScratch();
  void packState();
  void packQuery(Value t, Value token);
  void divide(Value t);
  void readRows(Value panel, Value row, Value start, Value count);
  void findNext(Value start, Value begin, Value end);
  void prefetchNext(Value panel, Value row);
  void writeRow(Value o, Value t, Value token, Value column);

  Value panels() { return div(valueSize, index(shape.cols)); }

  ReadOp op;
  Value keySize, valueSize;
  // The current task.
  Value batch, head, stateHead;
  /// The block after the current one: its first token, and its head.
  struct Block {
    Value start, head;
  };
  Block following;
  // Scratch: [panel, K, cols], [K], [block, K], [block], [rows, cols].
  Value tile, z, queries, inverses, outputRows;
};

} // namespace

void ReadTile::emit() {
  Value state = op.getState(), tokens = dim(op.getQuery(), 2);
  Value heads = dim(op.getOutput(), 1);
  keySize = roundUp(dim(state, 2), shape.lanes);
  valueSize = roundUp(dim(state, 3), shape.cols);
  Value runs = ceilDiv(tokens, taskTokens);
  // Heads run fastest.
  parallel(mul(mul(dim(state, 0), runs), heads), [&](Value task) {
    head = rem(task, heads);
    stateHead = headOf(state, head, heads);
    Value run = div(task, heads);
    batch = div(run, runs);
    Value begin = mul(rem(run, runs), index(taskTokens));
    emitTask(begin, min(add(begin, index(taskTokens)), tokens));
    freeScratch();
  });
}

void ReadTile::emitTask(Value begin, Value end) {
  allocateScratch();
  packState();
  forEach(begin, end, shape.block, [&](Value start) {
    Value count = min(sub(end, start), index(shape.block));
    findNext(start, begin, end);
    forEach(count, [&](Value t) {
      packQuery(t, add(start, t));
      if (z)
        divide(t);
    });
    forEach(panels(), [&](Value panel) {
      forEach(index(0), count, shape.rows,
              [&](Value row) { readRows(panel, row, start, count); });
    });
  });
}

void ReadTile::allocateScratch() {
  OpFoldResult block = b.getIndexAttr(shape.block);
  OpFoldResult width = b.getIndexAttr(shape.cols);
  OpFoldResult features = getAsOpFoldResult(keySize);
  tile = scratch({getAsOpFoldResult(panels()), features, width});
  queries = scratch({block, features});
  outputRows = scratch({b.getIndexAttr(shape.rows), width});
  if (op.getNormalizer()) {
    z = scratch({features});
    inverses = scratch({block});
  }
  // Sums of rows past the last token are made from zeros or from earlier
  // tokens, and never written.
  forEach(index(shape.block), [&](Value t) {
    forEach(index(0), keySize, shape.lanes,
            [&](Value d) { storeVector(zeros(shape.lanes), queries, {t, d}); });
  });
}

/// Copies S into panels, rows and columns past the end zero, and z beside it.
void ReadTile::packState() {
  Value size = dim(op.getState(), 2);
  forEach(panels(), [&](Value panel) {
    Value column = mul(panel, index(shape.cols));
    loadPanel(op.getState(), {batch, stateHead}, column, tile, {panel});
    forEach(size, keySize, 1, [&](Value d) {
      storeVector(zeros(shape.cols), tile, {panel, d, index(0)});
    });
  });
  if (z)
    forEach(index(0), keySize, shape.lanes, [&](Value d) {
      storeVector(
          readOperand(op.getNormalizer(), {batch, stateHead, d}, shape.lanes),
          z, {d});
    });
}

void ReadTile::packQuery(Value t, Value token) {
  Row row;
  row.source = op.getQuery();
  row.index = {batch, headOf(row.source, head, dim(op.getOutput(), 1)), token};
  if (needsRowMax(TileBuilder::op.getFeatureMapKind(),
                  op.getNormalize().has_value()))
    row.shift = rowMaximum(row.source, row.index);
  row.scale = Scale::of(op);
  packRow(row, queries, t);
}

/// 1/den of a packed query.
void ReadTile::divide(Value t) {
  int64_t lanes = shape.lanes;
  Value sum =
      reduce(index(0), keySize, lanes, zeros(lanes),
             [&](Value d, ValueRange carried) -> SmallVector<Value> {
               return {fmaVector(loadVector(queries, {t, d}, lanes),
                                 loadVector(z, {d}, lanes), carried.front())};
             })
          .front();
  Value runningMax = op.getRunningMax() && op.getNormalize()->getAbsFloor()
                         ? load(op.getRunningMax(), {batch, stateHead})
                         : Value();
  store(emitInverseDenominator(b, loc, *op.getNormalize(), tokenType,
                               reduceVector(vector::CombiningKind::ADD, sum),
                               runningMax),
        inverses, {t});
}

void ReadTile::readRows(Value panel, Value row, Value start, Value count) {
  int64_t cols = shape.cols;
  Rows sums = accumulateInParts(
      Rows(shape.rows, zeros(cols)), keySize,
      [&](int64_t r, Value d) {
        return load(queries, {add(row, index(r)), d});
      },
      [&](Value d) { return loadVector(tile, {panel, d, index(0)}, cols); },
      [&](Value r) { prefetchNext(panel, add(row, r)); });
  Value column = mul(panel, index(cols)), left = sub(count, row);
  Value isWhole = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, left,
                                        index(shape.rows));
  auto branch = scf::IfOp::create(b, loc, isWhole, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (auto [r, sum] : llvm::enumerate(sums)) {
    Value t = add(row, index(r));
    writeRow(sum, t, add(start, t), column);
  }
  b.setInsertionPointToStart(branch.elseBlock());
  for (auto [r, sum] : llvm::enumerate(sums))
    storeVector(sum, outputRows, {index(r), index(0)});
  forEach(left, [&](Value r) {
    Value t = add(row, r);
    writeRow(loadVector(outputRows, {r, index(0)}, cols), t, add(start, t),
             column);
  });
}

/// The task's next block, or the first one of the next head's task.
void ReadTile::findNext(Value start, Value begin, Value end) {
  Value next = add(start, index(shape.block));
  Value isLast =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, next, end);
  following.start = select(isLast, begin, next);
  Value lastHead = sub(dim(op.getOutput(), 1), index(1));
  following.head = select(isLast, min(add(head, index(1)), lastHead), head);
}

/// Prefetches row `row` of the next block while this one is read: the panel's
/// share of the features, and of the output. Past the last token it is the last
/// one again.
void ReadTile::prefetchNext(Value panel, Value row) {
  Value heads = dim(op.getOutput(), 1), count = panels();
  Value share =
      roundUp(div(sub(add(keySize, count), index(1)), count), shape.cols);
  Value last = sub(dim(op.getQuery(), 2), index(1));
  Value token = min(add(following.start, row), last);
  prefetchRow(op.getQuery(),
              {batch, headOf(op.getQuery(), following.head, heads), token},
              mul(panel, share), share);
  prefetchRow(op.getOutput(), {batch, following.head, token},
              mul(panel, index(shape.cols)), index(shape.cols),
              /*isWritten=*/true);
}

void ReadTile::writeRow(Value o, Value t, Value token, Value column) {
  if (z)
    o = emitClamp(b, loc, *op.getNormalize(),
                  mulf(o, splat(load(inverses, {t}), shape.cols)));
  writeOperand(o, op.getOutput(), {batch, head, token, column});
}

void mlir::linattn::lowerToReadTile(OpBuilder &b, ReadOp op, TileShape shape) {
  ReadTile(b, op, shape).emit();
}
