//===- ExpandSnapshots.cpp - Scans that keep states, as loops -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One statement of what snapshots are, for all forms and targets: the states
// between scans that follow one another.
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEXPANDSNAPSHOTSPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Rewrites one scan as a loop over segments, which end at the snapshots.
class SegmentLoop {
public:
  SegmentLoop(IRRewriter &b, ScanOp op)
      : b(b), loc(op.getLoc()), op(op), every(*op.getEvery()),
        snapshots(op.getSnapshots()),
        tokens(tensor::getMixedSize(b, loc, op.getQuery(), 2)) {}

  void emit();

private:
  using Values = SmallVector<Value>;
  static constexpr int64_t longestKernel = 1 << 16;

  OpFoldResult compute(AffineExpr expr, ArrayRef<OpFoldResult> symbols) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, symbols);
  }
  /// The dimension of an operand that counts tokens, or -1.
  int64_t tokenDim(unsigned number);
  /// The tokens [first, first + count) of an operand.
  Value slice(unsigned number, Value operand, OpFoldResult first,
              OpFoldResult count, Value insertion = Value());
  /// The scan of these tokens. `carried` holds its output and its state; so
  /// does the result.
  Values emitSegment(OpFoldResult first, OpFoldResult count,
                     ValueRange carried);
  /// The loop over segments of `every` tokens. It carries output, states and
  /// snapshots.
  Values emitLoop(OpFoldResult count, ValueRange initial, unsigned numCarried);
  /// Inserts a state into the snapshots at `index`.
  Value keep(Value state, Value snapshots, Value index);

  IRRewriter &b;
  Location loc;
  ScanOp op;
  int64_t every;
  Values snapshots;
  OpFoldResult tokens;
};

} // namespace

int64_t SegmentLoop::tokenDim(unsigned number) {
  auto isAt = [&](MutableOperandRange range) {
    return !range.empty() && range[0].getOperandNumber() == number;
  };
  if (isAt(op.getMaskMutable()))
    return 1;
  if (isAt(op.getBonusMutable()) ||
      number >= op.getStateMutable().getOperandNumber())
    return -1;
  int64_t rank = cast<ShapedType>(op->getOperand(number).getType()).getRank();
  return rank == 1 ? -1 : 2;
}

/// With an `insertion`, inserts it at these tokens instead.
Value SegmentLoop::slice(unsigned number, Value operand, OpFoldResult first,
                         OpFoldResult count, Value insertion) {
  int64_t dim = tokenDim(number);
  if (dim < 0)
    return operand;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, operand);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = first;
  sizes[dim] = count;
  if (insertion)
    return tensor::InsertSliceOp::create(b, loc, insertion, operand, offsets,
                                         sizes, strides);
  return tensor::ExtractSliceOp::create(b, loc, operand, offsets, sizes,
                                        strides);
}

SmallVector<Value> SegmentLoop::emitSegment(OpFoldResult first,
                                            OpFoldResult count,
                                            ValueRange carried) {
  unsigned output = op.getOutputMutable().getOperandNumber();
  Values operands;
  for (unsigned i = 0, e = op->getNumOperands(); i < e; ++i) {
    Value whole = i < output ? op->getOperand(i) : carried[i - output];
    operands.push_back(slice(i, whole, first, count));
  }
  Values destinations(operands.begin() + output, operands.end());
  Operation *segment =
      cloneStructured(b, op, TypeRange(ValueRange(destinations)), operands);
  Values results(segment->getResults());
  results[0] = slice(output, carried[0], first, count, results[0]);
  return results;
}

Value SegmentLoop::keep(Value state, Value snapshots, Value index) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, snapshots);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  offsets[1] = index;
  sizes[1] = b.getIndexAttr(1);
  return tensor::InsertSliceOp::create(b, loc, state, snapshots, offsets, sizes,
                                       strides);
}

SmallVector<Value> SegmentLoop::emitLoop(OpFoldResult count, ValueRange initial,
                                         unsigned numCarried) {
  AffineExpr s0, s1;
  bindSymbols(b.getContext(), s0, s1);
  auto value = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  };
  auto loop = scf::ForOp::create(b, loc, value(b.getIndexAttr(0)), value(count),
                                 value(b.getIndexAttr(1)), initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value index = loop.getInductionVar();
  OpFoldResult first =
      op.getReverse()
          ? compute(s1 - (s0 + 1) * every, {OpFoldResult(index), tokens})
          : compute(s0 * every, {OpFoldResult(index)});
  // Compiles for that number of tokens, unless the schedule allows any.
  OpFoldResult length = b.getIndexAttr(every);
  if (every > longestKernel)
    length = affine::makeComposedFoldedAffineMin(
        b, loc,
        AffineMap::get(0, 1, {s0, b.getAffineConstantExpr(every)},
                       b.getContext()),
        {tokens});
  ValueRange before = loop.getRegionIterArgs();
  Values after = emitSegment(first, length, before.take_front(numCarried));
  for (auto [state, kept] : llvm::zip_equal(Values(llvm::drop_begin(after)),
                                            before.drop_front(numCarried)))
    after.push_back(keep(state, kept, index));
  scf::YieldOp::create(b, loc, after);
  return Values(loop.getResults());
}

void SegmentLoop::emit() {
  AffineExpr s0, s1;
  bindSymbols(b.getContext(), s0, s1);
  OpFoldResult count = compute(s0.floorDiv(every), {tokens});
  OpFoldResult rest = compute(s0 % every, {tokens});

  // From here on the op has no snapshots, as its clones require.
  op.getSnapshotsMutable().clear();
  op.removeEveryAttr();
  unsigned numCarried = op.getDpsInits().size();
  Values results(op.getDpsInits());
  results.append(snapshots);
  if (!isZeroInteger(count))
    results = emitLoop(count, results, numCarried);
  if (!isZeroInteger(rest)) {
    OpFoldResult first = op.getReverse() ? OpFoldResult(b.getIndexAttr(0))
                                         : compute(s0 - s1, {tokens, rest});
    Values last =
        emitSegment(first, rest, ValueRange(results).take_front(numCarried));
    llvm::copy(last, results.begin());
  }
  b.replaceOp(op, results);
}

int64_t mlir::linattn::expandSnapshots(Operation *root) {
  SmallVector<ScanOp> scans;
  root->walk([&](ScanOp op) {
    if (op.getEvery() && op.hasPureTensorSemantics())
      scans.push_back(op);
  });
  IRRewriter rewriter(root->getContext());
  for (ScanOp op : scans) {
    remark::passed(op.getLoc(), remarkNamed("expand-snapshots"))
        << llvm::formatv("runs in a loop of {0} tokens, for its snapshots",
                         *op.getEvery())
               .str();
    rewriter.setInsertionPoint(op);
    SegmentLoop(rewriter, op).emit();
  }
  return static_cast<int64_t>(scans.size());
}

namespace {

struct LinAttnExpandSnapshotsPass final
    : mlir::linattn::impl::LinAttnExpandSnapshotsPassBase<
          LinAttnExpandSnapshotsPass> {
  using LinAttnExpandSnapshotsPassBase::LinAttnExpandSnapshotsPassBase;

  void runOnOperation() override {
    numExpanded += expandSnapshots(getOperation());
  }
};

} // namespace
