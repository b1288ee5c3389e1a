//===- LowerSoftmax.cpp - Patterns of softmax attention for training ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Softmax.h"

#include "linattn/Dialect/Remarks.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

template <typename OpTy>
struct LowerSoftmax : OpRewritePattern<OpTy> {
  LowerSoftmax(MLIRContext *context, int64_t vectorBits, int64_t registers)
      : OpRewritePattern<OpTy>(context), vectorBits(vectorBits),
        registers(registers) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    if (vectorBits != 0 && op.getSpans())
      remark::missed(op.getLoc(), remarkNamed("lower-to-vector"))
          << "runs as scalar loops: neighbouring queries have spans of keys of "
             "their own";
    if (vectorBits == 0 || op.getSpans()) {
      lowerToNaiveLoops(rewriter, op);
    } else {
      Type type = getAccumulationType(getElementTypeOrSelf(op.getQuery()));
      int64_t lanes = vectorBits / type.getIntOrFloatBitWidth();
      // As of linattn.quadratic: two vectors per accumulator, half of the
      // registers. The forward pass has its blocks, too, and so its bits; in
      // the backward pass longer ones are read less often.
      constexpr int64_t block = std::is_same_v<OpTy, SoftmaxOp> ? 32 : 64;
      lowerToQuadraticTile(rewriter, op,
                           {lanes, registers / 4, 2 * lanes, block});
    }
    rewriter.eraseOp(op);
    return success();
  }

  int64_t vectorBits, registers;
};

} // namespace

void mlir::linattn::populateSoftmaxPatterns(RewritePatternSet &patterns,
                                            int64_t vectorBits,
                                            int64_t registers) {
  patterns.add<LowerSoftmax<SoftmaxOp>, LowerSoftmax<SoftmaxGradientOp>>(
      patterns.getContext(), vectorBits, registers);
}
