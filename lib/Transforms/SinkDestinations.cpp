//===- SinkDestinations.cpp - Results of branches and views, in place -----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSINKDESTINATIONSPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;
using bufferization::MaterializeInDestinationOp;

namespace {

/// Whether the value, an argument or a view of one, dominates `op`.
bool isThereBefore(Value value, Operation *op) {
  if (isa<BlockArgument>(value))
    return true;
  Operation *def = value.getDefiningOp();
  return def->getBlock() == op->getBlock() && def->isBeforeInBlock(op);
}

/// Replaces the destination by a view of it that is created as early as
/// possible, so that the op that computes the source may write there.
void replaceByView(PatternRewriter &rewriter, MaterializeInDestinationOp op,
                   Value source, function_ref<Value(Location)> makeView) {
  if (Operation *def = op.getDest().getDefiningOp())
    rewriter.setInsertionPointAfter(def);
  else
    rewriter.setInsertionPointToStart(op.getDest().getParentBlock());
  Value view = makeView(op.getLoc());
  rewriter.setInsertionPoint(op);
  MaterializeInDestinationOp::create(rewriter, op.getLoc(), /*result=*/Type(),
                                     source, view, op.getRestrict(),
                                     op.getWritable());
  rewriter.eraseOp(op);
}

/// Computes a permuted result with the strides of the caller.
struct SinkThroughPermute : OpRewritePattern<MaterializeInDestinationOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MaterializeInDestinationOp op,
                                PatternRewriter &rewriter) const override {
    auto permute = op.getSource().getDefiningOp<PermuteOp>();
    if (!permute || !isa<MemRefType>(op.getDest().getType()))
      return rewriter.notifyMatchFailure(op, "not a permuted result");
    AffineMap inverse = AffineMap::getPermutationMap(
        invertPermutationVector(permute.getPermutation()), getContext());
    replaceByView(rewriter, op, permute.getInput(), [&](Location loc) {
      return memref::TransposeOp::create(rewriter, loc, op.getDest(),
                                         AffineMapAttr::get(inverse))
          .getResult();
    });
    return success();
  }
};

/// Computes a result before its dimensions are merged.
struct SinkThroughCollapse : OpRewritePattern<MaterializeInDestinationOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MaterializeInDestinationOp op,
                                PatternRewriter &rewriter) const override {
    auto collapse = op.getSource().getDefiningOp<tensor::CollapseShapeOp>();
    auto dest = dyn_cast<MemRefType>(op.getDest().getType());
    if (!collapse || !dest)
      return rewriter.notifyMatchFailure(op, "not a collapsed result");
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    auto groups = collapse.getReassociationIndices();
    for (ArrayRef<int64_t> group : groups) {
      auto isOpen = [&](int64_t i) { return ShapedType::isDynamic(shape[i]); };
      // The single open size of a group follows from the destination's.
      if (llvm::count_if(group, isOpen) > 1)
        return rewriter.notifyMatchFailure(op, "sizes do not follow");
    }
    FailureOr<MemRefType> type =
        memref::ExpandShapeOp::computeExpandedType(dest, shape, groups);
    if (failed(type))
      return rewriter.notifyMatchFailure(op, "no such view");
    replaceByView(rewriter, op, collapse.getSrc(), [&](Location loc) {
      SmallVector<OpFoldResult> sizes =
          getSizes(rewriter, loc, op.getDest(), shape, groups);
      return memref::ExpandShapeOp::create(rewriter, loc, *type, op.getDest(),
                                           groups, sizes)
          .getResult();
    });
    return success();
  }

private:
  static SmallVector<OpFoldResult>
  getSizes(OpBuilder &b, Location loc, Value dest, ArrayRef<int64_t> shape,
           ArrayRef<ReassociationIndices> groups) {
    SmallVector<OpFoldResult> sizes;
    for (auto [dim, group] : llvm::enumerate(groups)) {
      int64_t known = 1;
      for (int64_t i : group)
        known *= ShapedType::isDynamic(shape[i]) ? 1 : shape[i];
      for (int64_t i : group) {
        if (!ShapedType::isDynamic(shape[i])) {
          sizes.push_back(b.getIndexAttr(shape[i]));
          continue;
        }
        Value size = b.createOrFold<memref::DimOp>(loc, dest, dim);
        if (known != 1)
          size =
              arith::DivUIOp::create(b, loc, size,
                                     arith::ConstantIndexOp::create(
                                         b, loc, std::max(known, int64_t(1))));
        sizes.push_back(size);
      }
    }
    return sizes;
  }
};

struct SinkIntoBranches : OpRewritePattern<MaterializeInDestinationOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MaterializeInDestinationOp op,
                                PatternRewriter &rewriter) const override {
    auto branch = op.getSource().getDefiningOp<scf::IfOp>();
    if (!branch || !op.getSource().hasOneUse() || branch.getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "not the one result of a branch");
    // `restrict` guarantees that no other pointer accesses the destination, so
    // that an earlier write is safe.
    if (!isa<MemRefType>(op.getDest().getType()) || !op.getRestrict())
      return rewriter.notifyMatchFailure(op, "destination may be shared");
    if (op->getBlock() != branch->getBlock() ||
        !isThereBefore(op.getDest(), branch))
      return rewriter.notifyMatchFailure(op,
                                         "destination may not be there yet");

    rewriter.setInsertionPoint(branch);
    auto plain = scf::IfOp::create(rewriter, branch.getLoc(), TypeRange(),
                                   branch.getCondition(),
                                   /*addThenBlock=*/false,
                                   /*addElseBlock=*/false);
    for (auto [from, to] :
         {std::pair(&branch.getThenRegion(), &plain.getThenRegion()),
          std::pair(&branch.getElseRegion(), &plain.getElseRegion())}) {
      rewriter.inlineRegionBefore(*from, *to, to->end());
      auto yield = cast<scf::YieldOp>(to->front().getTerminator());
      Value result = yield.getOperand(0);
      rewriter.setInsertionPoint(yield);
      MaterializeInDestinationOp::create(rewriter, op.getLoc(),
                                         /*result=*/Type(), result,
                                         op.getDest(), op.getRestrict(),
                                         op.getWritable());
      rewriter.replaceOpWithNewOp<scf::YieldOp>(yield);
    }
    rewriter.eraseOp(op);
    rewriter.eraseOp(branch);
    return success();
  }
};

struct LinAttnSinkDestinationsPass final
    : mlir::linattn::impl::LinAttnSinkDestinationsPassBase<
          LinAttnSinkDestinationsPass> {
  using LinAttnSinkDestinationsPassBase::LinAttnSinkDestinationsPassBase;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SinkIntoBranches, SinkThroughPermute, SinkThroughCollapse>(
        &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
