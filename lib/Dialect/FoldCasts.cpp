//===- FoldCasts.cpp - Structured ops on more static types ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttnConv.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Folds casts that forget static sizes into the op, as the tensor dialect does
/// for all ops with destinations. This pattern comes first, since that one
/// cannot clone the empty region of a named feature map.
template <typename OpTy>
struct FoldTensorCasts : OpRewritePattern<OpTy> {
  FoldTensorCasts(MLIRContext *context)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!tensor::hasFoldableTensorCastOperand(op))
      return rewriter.notifyMatchFailure(op, "no cast to fold");
    SmallVector<Type> types(op->getResultTypes());
    SmallVector<Value> operands =
        tensor::getUpdatedOperandsAfterCastOpFolding(op, types);
    Operation *folded = cloneStructured(rewriter, op, types, operands);
    SmallVector<Value> results;
    for (auto [was, is] :
         llvm::zip_equal(op->getResultTypes(), folded->getResults()))
      results.push_back(
          was == is.getType()
              ? Value(is)
              : tensor::CastOp::create(rewriter, op.getLoc(), was, is));
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

// The canonicalizer collects the patterns of all ops; one op registers this
// pattern for all.
void QuadraticOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<FoldTensorCasts<QuadraticOp>, FoldTensorCasts<ScanOp>,
               FoldTensorCasts<StateOp>, FoldTensorCasts<ReadOp>,
               FoldTensorCasts<FeatureMapOp>, FoldTensorCasts<SelectiveScanOp>,
               FoldTensorCasts<DiagonalScanOp>, FoldTensorCasts<Wkv4Op>,
               FoldTensorCasts<LogLinearOp>, FoldTensorCasts<CausalConvOp>,
               FoldTensorCasts<SweepOp>, FoldTensorCasts<SweepSelectiveOp>,
               FoldTensorCasts<SoftmaxOp>, FoldTensorCasts<SoftmaxGradientOp>>(
      context);
}
