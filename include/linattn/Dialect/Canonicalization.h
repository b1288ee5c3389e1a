//===- Canonicalization.h - Canonicalization with shared patterns -*- C++ -*-=//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_CANONICALIZATION_H
#define LINATTN_DIALECT_CANONICALIZATION_H

#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::linattn {

/// The canonicalization patterns of all loaded dialects. A context collects
/// them once, and again after it has loaded another dialect. MLIR's
/// canonicalizer collects them once per pass, which takes longer than a pass
/// over a small function. Safe to call from several threads.
FrozenRewritePatternSet getCanonicalizationPatterns(MLIRContext *context);

/// Canonicalizes what is below `op`. Like MLIR's canonicalizer, merges no
/// blocks by default, and stops without an error where the patterns do not
/// converge.
void canonicalize(Operation *op,
                  const GreedyRewriteConfig &config =
                      GreedyRewriteConfig().setRegionSimplificationLevel(
                          GreedySimplifyRegionLevel::Normal));

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_CANONICALIZATION_H
