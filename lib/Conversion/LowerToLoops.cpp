//===- LowerToLoops.cpp - The naive form of every op ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CausalConv.h"
#include "NaiveChunk.h"
#include "NaiveLoops.h"
#include "OutputNorm.h"
#include "RecurrenceBuilder.h"
#include "Softmax.h"

#include "linattn/Conversion/Passes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERTOLOOPSPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

template <typename OpTy>
struct ToLoops : OpRewritePattern<OpTy> {
  ToLoops(MLIRContext *context, bool lanes)
      : OpRewritePattern<OpTy>(context), lanes(lanes) {}
  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    lowerToNaiveLoops(rewriter, op, lanes);
    rewriter.eraseOp(op);
    return success();
  }
  bool lanes;
};

struct LinAttnLowerToLoopsPass final
    : mlir::linattn::impl::LinAttnLowerToLoopsPassBase<
          LinAttnLowerToLoopsPass> {
  using LinAttnLowerToLoopsPassBase::LinAttnLowerToLoopsPassBase;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ToLoops<ScanOp>, ToLoops<StateOp>, ToLoops<ReadOp>,
                 ToLoops<QuadraticOp>, ToLoops<FeatureMapOp>,
                 ToLoops<OutputNormOp>, ToLoops<CausalConvOp>>(&getContext(),
                                                               lanes);
    populateNaiveChunkPatterns(patterns);
    populateSoftmaxPatterns(patterns);
    populateRecurrencePatterns(patterns, /*vectorBits=*/0, lanes);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
