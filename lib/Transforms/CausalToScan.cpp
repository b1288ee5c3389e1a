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
  using OpRewritePattern::OpRewritePattern;

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
    if (op.getPattern()) {
      remark::missed(op.getLoc(), remarkNamed("causal-to-scan"))
          << "a pattern has no state of fixed size; the attention stays "
             "quadratic in the keys that it sees";
      return rewriter.notifyMatchFailure(op, "a pattern of keys");
    }
    if (op.getPrefix()) {
      Value output = rewritePrefixed(rewriter, op);
      remark::passed(op.getLoc(), remarkNamed("causal-to-scan"))
          << "the prefix reads its whole state, the other tokens a scan";
      rewriter.replaceOp(op, output);
      return success();
    }
    ScanOp scan = rewriteAsScan(rewriter, op);
    remark::passed(op.getLoc(), remarkNamed("causal-to-scan"))
        << "causal attention runs as a scan over a state of fixed size";
    rewriter.replaceOp(op, scan.getResults().front());
    return success();
  }
};

struct LinAttnCausalToScanPass final
    : mlir::linattn::impl::LinAttnCausalToScanPassBase<
          LinAttnCausalToScanPass> {
  using LinAttnCausalToScanPassBase::LinAttnCausalToScanPassBase;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateCausalToScanPatterns(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation()->walk([&](ScanOp) { ++numScans; });
  }
};

} // namespace

void mlir::linattn::populateCausalToScanPatterns(RewritePatternSet &patterns) {
  patterns.add<CausalToScan>(patterns.getContext());
}
