//===- ExpandViews.cpp - Views to address arithmetic ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/RootPatterns.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEXPANDVIEWSPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

struct ExpandViewsPass
    : mlir::linattn::impl::LinAttnExpandViewsPassBase<ExpandViewsPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    memref::populateExpandStridedMetadataPatterns(patterns);
    if (failed(mlir::linattn::applyPatternsToRoots(getOperation(),
                                                   std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
