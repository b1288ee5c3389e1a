//===- Canonicalize.cpp - Canonicalization with shared patterns -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Canonicalization.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNCANONICALIZEPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

struct CanonicalizePass
    : mlir::linattn::impl::LinAttnCanonicalizePassBase<CanonicalizePass> {
  using Base::Base;

  void runOnOperation() override {
    if (!kernels)
      return mlir::linattn::canonicalize(getOperation());
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal(false);
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    mlir::linattn::canonicalize(getOperation(), config);
  }
};

} // namespace
