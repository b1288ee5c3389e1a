//===- SplitSweeps.cpp - Sweeps become scans ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpGradients.h"
#include "linattn/Gradient/Passes.h"
#include "linattn/Transforms/Sweeps.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSPLITSWEEPSPASS
#include "linattn/Gradient/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct LinAttnSplitSweepsPass final
    : mlir::linattn::impl::LinAttnSplitSweepsPassBase<LinAttnSplitSweepsPass> {
  using LinAttnSplitSweepsPassBase::LinAttnSplitSweepsPassBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    LinAttnSplitSweepsPassBase::getDependentDialects(registry);
    registerGradientExternalModels(registry);
  }

  void runOnOperation() override {
    numSplit += splitSweeps(getOperation());
    SmallVector<SweepSelectiveOp> sweeps;
    getOperation()->walk([&](SweepSelectiveOp op) {
      if (op.hasPureTensorSemantics())
        sweeps.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (SweepSelectiveOp op : sweeps) {
      remark::passed(op.getLoc(), remarkNamed("split-sweeps"))
          << "the states of all its tokens are stored";
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> results = buildSplitSweep(rewriter, op);
      if (failed(results))
        return signalPassFailure();
      rewriter.replaceOp(op, *results);
      ++numSplit;
    }
  }
};

} // namespace
