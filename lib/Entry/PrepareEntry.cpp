//===- PrepareEntry.cpp - Kernel calling convention for tensor functions --===//
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
void moveResultsToArguments(func::FuncOp func, InnermostStride innermost,
                            ArrayRef<int64_t> transposed) {
  unsigned numInputs = func.getNumArguments();
  SmallVector<Type> results(func.getResultTypes());
  for (auto [i, type] : llvm::enumerate(results)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    MemRefType dest;
    if (!tensor)
      dest = getEntryMemRefType({}, type, innermost);
    else if (llvm::is_contained(transposed, numInputs + i))
      dest =
          getTransposedMemRefType(tensor.getShape(), tensor.getElementType());
    else
      dest = getEntryMemRefType(tensor.getShape(), tensor.getElementType(),
                                innermost);
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
    : public mlir::linattn::impl::LinAttnPrepareEntryPassBase<
          PrepareEntryPass> {
  using Base::Base;

  void runOnOperation() override {
    auto run = [&](OpPassManager &pm, Operation *op) {
      return runPipeline(pm, op);
    };
    auto entries = getEntriesWithCompanions(getOperation(), run);
    if (failed(entries))
      return signalPassFailure();
    for (func::FuncOp func : *entries) {
      if (failed(checkTransposed(func)))
        return signalPassFailure();
      for (func::FuncOp both : {func, getShapesCompanion(func)}) {
        markArgumentsReadOnly(both);
        markTransposed(both);
      }
      moveResultsToArguments(func, innermost, transposed);
    }
  }

private:
  LogicalResult checkTransposed(func::FuncOp func) {
    SmallVector<Type> types(func.getArgumentTypes());
    llvm::append_range(types, func.getResultTypes());
    for (int64_t number : transposed) {
      if (number < 0 || number >= static_cast<int64_t>(types.size()))
        return func.emitError("expected option transposed to name one of ")
               << types.size() << " arguments and results, but got " << number;
      auto tensor = dyn_cast<RankedTensorType>(types[number]);
      if (!tensor || tensor.getRank() < 2)
        return func.emitError("expected option transposed to name tensors of "
                              "two dimensions or more, but got ")
               << number << ", which is " << types[number];
    }
    return success();
  }

  /// Bufferization takes the layout of an argument from its attribute.
  void markTransposed(func::FuncOp func) {
    for (int64_t number : transposed) {
      if (number >= static_cast<int64_t>(func.getNumArguments()))
        continue;
      auto tensor =
          dyn_cast<RankedTensorType>(func.getArgument(number).getType());
      if (tensor && tensor.getRank() >= 2)
        func.setArgAttr(
            number, bufferization::BufferizationDialect::kBufferLayoutAttrName,
            getTransposedMemRefType(tensor.getShape(), tensor.getElementType())
                .getLayout());
    }
  }

  void markArgumentsReadOnly(func::FuncOp func) {
    for (BlockArgument arg : func.getArguments())
      if (isa<TensorType>(arg.getType()))
        func.setArgAttr(arg.getArgNumber(),
                        bufferization::BufferizationDialect::kWritableAttrName,
                        BoolAttr::get(&getContext(), false));
  }
};

} // namespace
