//===- PrepareEntry.cpp - Kernel calling convention for tensor functions
//---===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Public tensor functions get destination arguments for their results, and the
// companion function that computes the results' shapes if they have none yet.
//
//===----------------------------------------------------------------------===//

#include "Entry.h"
#include "linattn/Entry/EntryLayout.h"
#include "linattn/Entry/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNPREPAREENTRYPASS
#include "linattn/Entry/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

void visitReturns(func::FuncOp func, function_ref<void(func::ReturnOp)> visit) {
  for (Block &block : func.getBody())
    if (auto ret = dyn_cast<func::ReturnOp>(block.getTerminator()))
      visit(ret);
}

/// Replaces the results of `func` by trailing destination arguments.
void moveResultsToArguments(func::FuncOp func, InnermostStride innermost) {
  unsigned numInputs = func.getNumArguments();
  SmallVector<Type> results(func.getResultTypes());
  for (Type type : results) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    MemRefType dest =
        tensor ? getEntryMemRefType(tensor.getShape(), tensor.getElementType(),
                                    innermost)
               : getEntryMemRefType({}, type, innermost);
    (void)func.insertArgument(func.getNumArguments(), dest, {}, func.getLoc());
  }
  visitReturns(func, [&](func::ReturnOp ret) {
    ImplicitLocOpBuilder b(ret.getLoc(), ret);
    for (auto [i, result] : llvm::enumerate(ret.getOperands())) {
      Value dest = func.getArgument(numInputs + i);
      if (isa<RankedTensorType>(result.getType()))
        bufferization::MaterializeInDestinationOp::create(
            b, /*result=*/Type(), result, dest, /*restrict=*/true,
            /*writable=*/true);
      else
        memref::StoreOp::create(b, result, dest);
    }
    ret->setOperands({});
  });
  for (unsigned i = results.size(); i-- > 0;)
    (void)func.eraseResult(i);
}

struct PrepareEntryPass
    : public linattn::impl::LinAttnPrepareEntryPassBase<PrepareEntryPass> {
  using Base::Base;

  void runOnOperation() override {
    auto run = [&](OpPassManager &pm, Operation *op) {
      return runPipeline(pm, op);
    };
    auto entries = getEntriesWithCompanions(getOperation(), run);
    if (failed(entries))
      return signalPassFailure();
    for (func::FuncOp func : *entries) {
      for (func::FuncOp both : {func, getShapesCompanion(func)})
        markArgumentsReadOnly(both);
      moveResultsToArguments(func, innermost);
    }
  }

private:
  void markArgumentsReadOnly(func::FuncOp func) {
    for (BlockArgument arg : func.getArguments())
      if (isa<TensorType>(arg.getType()))
        func.setArgAttr(arg.getArgNumber(),
                        bufferization::BufferizationDialect::kWritableAttrName,
                        BoolAttr::get(&getContext(), false));
  }
};

} // namespace
