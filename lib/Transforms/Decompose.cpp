//===- Decompose.cpp - Structured ops as linalg ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNDECOMPOSEPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct DecomposeStructured
    : OpInterfaceRewritePattern<linalg::AggregatedOpInterface> {
  DecomposeStructured(MLIRContext *context,
                      std::function<bool(Operation *)> filter)
      : OpInterfaceRewritePattern(context), filter(std::move(filter)) {}

  LogicalResult matchAndRewrite(linalg::AggregatedOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (!isa<LinAttnDialect>(op->getDialect()) || !filter(op))
      return rewriter.notifyMatchFailure(op, "not asked for");
    if (!cast<DestinationStyleOpInterface>(op.getOperation())
             .hasPureTensorSemantics())
      return rewriter.notifyMatchFailure(op, "not on tensors");
    FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
    if (failed(values))
      return failure();
    rewriter.replaceOp(op, *values);
    return success();
  }

  std::function<bool(Operation *)> filter;
};

struct LinAttnDecomposePass final
    : mlir::linattn::impl::LinAttnDecomposePassBase<LinAttnDecomposePass> {
  using LinAttnDecomposePassBase::LinAttnDecomposePassBase;

  void runOnOperation() override {
    for (const std::string &name : ops)
      if (!RegisteredOperationName::lookup("linattn." + name, &getContext())) {
        getOperation()->emitError("expected ops to name linattn ops, but got ")
            << name;
        return signalPassFailure();
      }
    auto filter = [this](Operation *op) {
      if (onlyChunks) {
        auto scan = dyn_cast<ScanOp>(op);
        return scan && scan.getConfig() &&
               scan.getConfig()->getForm() == Form::Chunk;
      }
      return ops.empty() ||
             llvm::is_contained(ops, op->getName().stripDialect());
    };
    RewritePatternSet patterns(&getContext());
    populateDecomposePatterns(patterns, filter);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    // Ops that have no decomposition have said why.
    WalkResult left = getOperation()->walk([&](DestinationStyleOpInterface op) {
      bool refused = isa_and_nonnull<LinAttnDialect>(op->getDialect()) &&
                     op.hasPureTensorSemantics() && filter(op);
      return refused ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

void mlir::linattn::populateDecomposePatterns(
    RewritePatternSet &patterns, std::function<bool(Operation *)> filter) {
  patterns.add<DecomposeStructured>(patterns.getContext(), std::move(filter));
}
