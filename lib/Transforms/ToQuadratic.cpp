//===- ToQuadratic.cpp - Attention in the quadratic form ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNTOQUADRATICPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct ToQuadratic : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    Value result = rewriteAsQuadratic(rewriter, op).getResults().front();
    if (result.getType() != op.getType())
      result =
          tensor::CastOp::create(rewriter, op.getLoc(), op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct LinAttnToQuadraticPass final
    : mlir::linattn::impl::LinAttnToQuadraticPassBase<LinAttnToQuadraticPass> {
  using LinAttnToQuadraticPassBase::LinAttnToQuadraticPassBase;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateToQuadraticPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

void mlir::linattn::populateToQuadraticPatterns(RewritePatternSet &patterns) {
  patterns.add<ToQuadratic>(patterns.getContext());
}
