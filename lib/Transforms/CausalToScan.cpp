//===- CausalToScan.cpp - Causal attention as a recurrence ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// o_i = Σ_{j≤i} φ(q_i)·φ(k_j) v_j = S_iᵀφ(q_i) with S_i = S_{i-1} + φ(k_i)
// v_iᵀ. The normaliser is the same sum with v = 1 and becomes the scan's z.
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNCAUSALTOSCANPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct CausalToScan : OpRewritePattern<AttentionOp> {
  CausalToScan(MLIRContext *context, ::linattn::VectorTarget target)
      : OpRewritePattern(context), target(target) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.getCausal())
      return rewriter.notifyMatchFailure(op, "not causal");
    if (op.getWeights() == Weights::Softmax) {
      remark::missed(op.getLoc(), remarkNamed("causal-to-scan"))
          << "softmax weights have no state of fixed size; the attention stays "
             "quadratic";
      return rewriter.notifyMatchFailure(op, "softmax weights");
    }
    if (op.getPrefix()) {
      Value output = rewritePrefixed(rewriter, op);
      remark::passed(op.getLoc(), remarkNamed("causal-to-scan"))
          << "the prefix reads its whole state, the other tokens a scan";
      rewriter.replaceOp(op, output);
      return success();
    }
    ScanOp scan = rewriteAsScan(rewriter, op);
    if (!op.getConfig() || op.getConfig()->getForm() == Form::Auto)
      compareWithQuadratic(scan);
    remark::passed(op.getLoc(), remarkNamed("causal-to-scan"))
        << "causal attention runs as a scan over a state of fixed size";
    rewriter.replaceOp(op, scan.getResults().front());
    return success();
  }

private:
  /// Few tokens have fewer pairs than a state has elements. The quadratic form
  /// rounds differently and depends on how many tokens there are: it is for the
  /// user to ask for.
  void compareWithQuadratic(ScanOp scan) const {
    auto problem = describeScan(scan);
    // An exponential map has a running maximum, and no fast quadratic form.
    if (problem.keySize < 0 || problem.valueSize < 0 || scan.getRunningMax())
      return;
    auto range = ::linattn::quadraticRange(problem, target);
    bool isDynamic = problem.tokens < 0;
    if (range.last == 0 || (!isDynamic && (problem.tokens < range.first ||
                                           problem.tokens > range.last)))
      return;
    std::string tokens =
        isDynamic ? llvm::formatv("{0} to {1}", range.first, range.last).str()
                  : std::to_string(problem.tokens);
    remark::missed(scan.getLoc(), remarkNamed("causal-to-scan"))
        << llvm::formatv("for {0} tokens the form quadratic, if asked for, is "
                         "predicted to be faster",
                         tokens)
               .str();
  }

  ::linattn::VectorTarget target;
};

struct LinAttnCausalToScanPass final
    : mlir::linattn::impl::LinAttnCausalToScanPassBase<
          LinAttnCausalToScanPass> {
  using LinAttnCausalToScanPassBase::LinAttnCausalToScanPassBase;
  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateCausalToScanPatterns(patterns, {vectorBits, registers});
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation()->walk([&](ScanOp) { ++numScans; });
  }
};

} // namespace

void mlir::linattn::populateCausalToScanPatterns(
    RewritePatternSet &patterns, ::linattn::VectorTarget target) {
  patterns.add<CausalToScan>(patterns.getContext(), target);
}
