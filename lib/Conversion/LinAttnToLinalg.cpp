//===- LinAttnToLinalg.cpp - The plain route to linalg --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceBuilder.h"

#include "linattn/Conversion/Passes.h"
#include "linattn/Dialect/LinAttnConv.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Sweeps.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_CONVERTLINATTNTOLINALGPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct ConvertLinAttnToLinalgPass final
    : mlir::linattn::impl::ConvertLinAttnToLinalgPassBase<
          ConvertLinAttnToLinalgPass> {
  using ConvertLinAttnToLinalgPassBase::ConvertLinAttnToLinalgPassBase;
  void runOnOperation() override {
    if (failed(verifyChunkSize(getOperation(), chunkSize)))
      return signalPassFailure();
    splitSweeps(getOperation());
    expandSnapshots(getOperation());
    apply([](RewritePatternSet &patterns) {
      populateToQuadraticPatterns(patterns);
    });
    apply([&](RewritePatternSet &patterns) {
      populateExpandFormPatterns(patterns, chunkSize);
      populateRecurrencesToLinalgPatterns(patterns);
    });
    apply([](RewritePatternSet &patterns) {
      populateDecomposePatterns(patterns, [](Operation *op) {
        // These have said why they stay.
        return !isa<RecurrenceOpInterface>(op) || isa<CausalConvOp>(op);
      });
    });
    // The decomposition has said why where it refused.
    WalkResult left = getOperation()->walk([&](Operation *op) {
      if (!isa_and_nonnull<LinAttnDialect>(op->getDialect()))
        return WalkResult::advance();
      if (isa<SweepSelectiveOp>(op))
        op->emitOpError("cannot be converted to linalg: run "
                        "linattn-split-sweeps before");
      auto structured = dyn_cast<DestinationStyleOpInterface>(op);
      if (structured && structured.hasPureBufferSemantics())
        op->emitOpError("cannot be converted to linalg on buffers: convert "
                        "before bufferization");
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }

private:
  void apply(function_ref<void(RewritePatternSet &)> populate) {
    RewritePatternSet patterns(&getContext());
    populate(patterns);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
