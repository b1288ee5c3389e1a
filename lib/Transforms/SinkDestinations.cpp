//===- SinkDestinations.cpp - Results of branches, written in place -------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSINKDESTINATIONSPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using bufferization::MaterializeInDestinationOp;

namespace {

struct SinkIntoBranches : OpRewritePattern<MaterializeInDestinationOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(MaterializeInDestinationOp op,
                                PatternRewriter &rewriter) const override {
    auto branch = op.getSource().getDefiningOp<scf::IfOp>();
    if (!branch || !op.getSource().hasOneUse() || branch.getNumResults() != 1)
      return rewriter.notifyMatchFailure(op, "not the one result of a branch");
    // `restrict` says that nobody else touches the destination, so writing it
    // earlier changes nothing.
    if (!isa<MemRefType>(op.getDest().getType()) || !op.getRestrict())
      return rewriter.notifyMatchFailure(op, "destination may be shared");
    if (op->getBlock() != branch->getBlock() ||
        !isa<BlockArgument>(op.getDest()))
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
    patterns.add<SinkIntoBranches>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
