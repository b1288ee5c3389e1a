//===- ExpandMath.cpp - Transcendental functions without libm
//--------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNEXPANDMATHPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

struct ExpandMathPass
    : public linattn::impl::LinAttnExpandMathPassBase<ExpandMathPass> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    auto everything = [](StringRef) { return true; };
    populateMathF32ExpansionPatterns(patterns, everything);
    populateMathPolynomialApproximationPatterns(patterns, everything);
    // Neither libm nor LLVM has these as vectors, or at all.
    math::populateExpansionPatterns(patterns, {"clampf", "exp2", "sinh", "cosh",
                                               "asinh", "acosh", "atanh"});
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
