//===- Transforms.h - Patterns and helpers of the rewrites ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_TRANSFORMS_H
#define LINATTN_TRANSFORMS_TRANSFORMS_H

#include "linattn/Analysis/CostModel.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/Remarks.h"
#include "linattn/Transforms/Passes.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::linattn {

/// Zero state, and the zero normalizer and lowest running maximum the attention
/// needs, sized for its heads.
StateValues createInitialState(OpBuilder &b, AttentionOp op);

/// An empty tensor of the attention's result shape.
Value createDestination(OpBuilder &b, AttentionOp op);

/// These build the forms of an attention without replacing it. The first two
/// need linear weights, the scan a causal attention, the pair one that is not.
/// Without a destination they create one.
ScanOp rewriteAsScan(RewriterBase &rewriter, AttentionOp op);
ReadOp rewriteAsStateAndRead(RewriterBase &rewriter, AttentionOp op,
                             Value destination = {});
/// A causal attention with a prefix: the first tokens read the state of the
/// whole prefix, the others the scan. Returns the output.
Value rewritePrefixed(RewriterBase &rewriter, AttentionOp op);
/// The quadratic form, which any attention has.
QuadraticOp rewriteAsQuadratic(RewriterBase &rewriter, AttentionOp op,
                               Value destination = {});

/// Checks the options that describe a target's vector unit.
LogicalResult verifyVectorTarget(MLIRContext *context, int64_t vectorBits,
                                 int64_t registers = 16);

void populateCausalToScanPatterns(RewritePatternSet &patterns);

/// Rewrites (AB)C as A(BC) on chained linalg contractions.
void populateReassociateChainPatterns(RewritePatternSet &patterns,
                                      ReassociateMode mode);

/// Decomposition of structured ops by their own interface; `filter` picks them.
void populateDecomposePatterns(RewritePatternSet &patterns,
                               std::function<bool(Operation *)> filter);

/// Expands scans, states and reads on tensors into loops over the ops of a
/// chunk, of `chunkSize` tokens unless the schedule gives a size.
void populateExpandFormPatterns(RewritePatternSet &patterns, int64_t chunkSize);

/// Expands scans with snapshots on tensors into loops over scans without.
/// Returns their number.
int64_t expandSnapshots(Operation *root);

/// States attention in the quadratic form.
void populateToQuadraticPatterns(RewritePatternSet &patterns);

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_TRANSFORMS_H
