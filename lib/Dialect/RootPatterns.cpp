//===- RootPatterns.cpp - Rewrite only what patterns match ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/RootPatterns.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace {

/// Collects the definitions of erased ops' operands, which may be dead.
class OperandsOfErased : public RewriterBase::Listener {
public:
  void notifyOperationErased(Operation *op) override {
    candidates.remove(op);
    for (Value operand : op->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        candidates.insert(definition);
  }

  void eraseDead(MLIRContext *context) {
    IRRewriter rewriter(context, this);
    while (!candidates.empty()) {
      Operation *op = candidates.pop_back_val();
      if (isOpTriviallyDead(op))
        rewriter.eraseOp(op);
    }
  }

private:
  llvm::SetVector<Operation *> candidates;
};

} // namespace

LogicalResult
mlir::linattn::applyPatternsToRoots(Operation *root,
                                    const FrozenRewritePatternSet &patterns) {
  assert(patterns.getMatchAnyOpNativePatterns().empty() &&
         "expected patterns with roots");
  const auto &names = patterns.getOpSpecificNativePatterns();
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (op != root && names.contains(op->getName()))
      ops.push_back(op);
  });
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  OperandsOfErased operands;
  config.setListener(&operands);
  LogicalResult result = applyOpPatternsGreedily(ops, patterns, config);
  operands.eraseDead(root->getContext());
  return result;
}
