//===- LowerRows.cpp - Patterns of ops on rows of tokens ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CausalConv.h"
#include "OutputNorm.h"
#include "TileBuilder.h"

#include "linattn/Dialect/MapParameters.h"
#include "linattn/Transforms/Forms.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Maps of whole tokens; those of one element are left to be folded.
LogicalResult lowerToVectors(PatternRewriter &rewriter, FeatureMapOp op,
                             int64_t lanes) {
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  if (!needsWholeToken(mapped.getFeatureMapKind()))
    return rewriter.notifyMatchFailure(op, "a map of one element");
  lowerToFeatureTile(rewriter, op, lanes);
  return success();
}

LogicalResult lowerToVectors(PatternRewriter &rewriter, OutputNormOp op,
                             int64_t lanes) {
  if (!op->hasAttr(kEpilogueAttrName)) // Else the kernel of its scan has it.
    lowerOutputNormToVector(rewriter, op, lanes);
  return success();
}

LogicalResult lowerToVectors(PatternRewriter &rewriter, CausalConvOp op,
                             int64_t lanes) {
  lowerCausalConvToVector(rewriter, op, lanes);
  return success();
}

/// An op without a schedule: it has one lowering.
template <typename OpTy>
struct RowsToVector : OpRewritePattern<OpTy> {
  RowsToVector(MLIRContext *context, int64_t vectorBits)
      : OpRewritePattern<OpTy>(context), vectorBits(vectorBits) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    Type type = getAccumulationType(getElementTypeOrSelf(op.getInput()));
    if (failed(lowerToVectors(rewriter, op,
                              vectorBits / type.getIntOrFloatBitWidth())))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }

  int64_t vectorBits;
};

} // namespace

void mlir::linattn::populateRowPatterns(RewritePatternSet &patterns,
                                        int64_t vectorBits) {
  patterns.add<RowsToVector<FeatureMapOp>, RowsToVector<OutputNormOp>,
               RowsToVector<CausalConvOp>>(patterns.getContext(), vectorBits);
}
