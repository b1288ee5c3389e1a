//===- Canonicalization.cpp - Canonicalization with shared patterns -------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Canonicalization.h"
#include "SharedPatterns.h"
#include "linattn/Dialect/LinAttn.h"

using namespace mlir;
using namespace mlir::linattn;

static FrozenRewritePatternSet collectPatterns(MLIRContext *context) {
  RewritePatternSet patterns(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName op : context->getRegisteredOperations())
    op.getCanonicalizationPatterns(patterns, context);
  return FrozenRewritePatternSet(std::move(patterns));
}

FrozenRewritePatternSet SharedPatterns::get() const {
  MLIRContext *context = getContext();
  size_t loaded = context->getLoadedDialects().size();
  std::lock_guard<std::mutex> lock(mutex);
  if (loaded != numDialects) {
    patterns = collectPatterns(context);
    numDialects = loaded;
  }
  return patterns;
}

FrozenRewritePatternSet
mlir::linattn::getCanonicalizationPatterns(MLIRContext *context) {
  if (auto *dialect = context->getLoadedDialect<LinAttnDialect>())
    return dialect->getRegisteredInterface<SharedPatterns>()->get();
  return collectPatterns(context);
}

void mlir::linattn::canonicalize(Operation *op,
                                 const GreedyRewriteConfig &config) {
  (void)applyPatternsGreedily(op, getCanonicalizationPatterns(op->getContext()),
                              config);
}
