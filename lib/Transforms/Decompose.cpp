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

/// A structured op on tensors that the filter accepts.
static bool isToDecompose(Operation *op,
                          const std::function<bool(Operation *)> &filter) {
  auto structured = dyn_cast<DestinationStyleOpInterface>(op);
  return structured && isa<linalg::AggregatedOpInterface>(op) &&
         isa_and_nonnull<LinAttnDialect>(op->getDialect()) &&
         structured.hasPureTensorSemantics() && filter(op);
}

namespace {

struct DecomposeStructured
    : OpInterfaceRewritePattern<linalg::AggregatedOpInterface> {
  DecomposeStructured(MLIRContext *context,
                      std::function<bool(Operation *)> filter)
      : OpInterfaceRewritePattern(context), filter(std::move(filter)) {}

  LogicalResult matchAndRewrite(linalg::AggregatedOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (!isToDecompose(op, filter))
      return rewriter.notifyMatchFailure(
          op, "not selected by the options or not on tensors");
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
    // Patterns have reported why they left an op.
    WalkResult rest = getOperation()->walk([&](Operation *op) {
      return isToDecompose(op, filter) ? WalkResult::interrupt()
                                       : WalkResult::advance();
    });
    if (rest.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

void mlir::linattn::populateDecomposePatterns(
    RewritePatternSet &patterns, std::function<bool(Operation *)> filter) {
  patterns.add<DecomposeStructured>(patterns.getContext(), std::move(filter));
}
