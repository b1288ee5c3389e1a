//===- PrepareEntry.cpp - Kernel calling convention for tensor functions
//---===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Public tensor functions get destination arguments for their results and a
// companion function that computes the results' shapes.
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/EntryLayout.h"
#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNPREPAREENTRYPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Whether a caller can hand over elements of this type.
bool isBoundaryElement(Type type) {
  if (type.isF16() || type.isBF16() || type.isF32() || type.isF64() ||
      type.isIndex())
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.isSignless() &&
         llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
}

LogicalResult checkBoundaryType(func::FuncOp func, Location loc, Type type,
                                StringRef kind, unsigned index) {
  Type element = type;
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    if (tensor.getEncoding())
      return emitError(loc) << "'" << func.getName() << "' " << kind << " #"
                            << index << ": expected a tensor without encoding"
                            << ", but got " << type;
    element = tensor.getElementType();
  } else if (isa<UnrankedTensorType>(type)) {
    return emitError(loc) << "'" << func.getName() << "' " << kind << " #"
                          << index << ": expected a ranked tensor, but got "
                          << type;
  }
  if (isBoundaryElement(element))
    return success();
  return emitError(loc) << "'" << func.getName() << "' " << kind << " #"
                        << index << ": expected a tensor or scalar of f16, "
                        << "bf16, f32, f64, i1, i8, i16, i32, i64 or index, "
                        << "but got " << type;
}

/// Everything that `func` may call directly or not has a body, and none of it
/// calls itself: kernels have neither a linker nor a stack of frames.
LogicalResult checkCallees(func::FuncOp func, SymbolTableCollection &symbols) {
  // Depth-first; `path` holds the functions being visited, `done` the finished.
  llvm::SetVector<Operation *> path;
  DenseSet<Operation *> done;
  std::function<LogicalResult(func::FuncOp)> visit =
      [&](func::FuncOp callee) -> LogicalResult {
    path.insert(callee);
    auto result = callee.walk([&](Operation *op) {
      if (isa<func::CallIndirectOp>(op)) {
        op->emitError("expected a direct call, but got an indirect one");
        return WalkResult::interrupt();
      }
      auto call = dyn_cast<func::CallOp>(op);
      if (!call)
        return WalkResult::advance();
      auto next = symbols.lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (!next || next.isDeclaration()) {
        auto diag = call.emitError("expected a callee with a body, but '")
                    << call.getCallee() << "' is only declared";
        if (next)
          diag.attachNote(next.getLoc()) << "declared here";
        return WalkResult::interrupt();
      }
      if (path.contains(next)) {
        call.emitError("recursive call of '")
            << call.getCallee() << "' cannot be compiled into a kernel";
        return WalkResult::interrupt();
      }
      if (!done.contains(next) && failed(visit(next)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    path.remove(callee);
    done.insert(callee);
    return failure(result.wasInterrupted());
  };
  return visit(func);
}

LogicalResult checkEntry(func::FuncOp func, ModuleOp module,
                         SymbolTableCollection &symbols) {
  FunctionType type = func.getFunctionType();
  for (auto [i, input] : llvm::enumerate(type.getInputs()))
    if (failed(checkBoundaryType(func, func.getArgument(i).getLoc(), input,
                                 "argument", i)))
      return failure();
  for (auto [i, result] : llvm::enumerate(type.getResults()))
    if (failed(checkBoundaryType(func, func.getLoc(), result, "result", i)))
      return failure();
  std::string companion = (func.getName() + kShapesSuffix).str();
  if (Operation *other = symbols.getSymbolTable(module).lookup(companion)) {
    auto diag = func.emitError("expected the symbol '")
                << companion << "' to be free for the function that computes "
                << "result shapes";
    diag.attachNote(other->getLoc()) << "defined here";
    return failure();
  }
  return checkCallees(func, symbols);
}

void visitReturns(func::FuncOp func, function_ref<void(func::ReturnOp)> visit) {
  for (Block &block : func.getBody())
    if (auto ret = dyn_cast<func::ReturnOp>(block.getTerminator()))
      visit(ret);
}

/// Adds `@NAME__shapes` behind `func`: a clone that stores the dimensions of
/// the results instead of returning them.
func::FuncOp addShapesCompanion(func::FuncOp func) {
  OpBuilder builder(func->getContext());
  builder.setInsertionPointAfter(func);
  auto companion = cast<func::FuncOp>(builder.clone(*func));
  companion.setName((func.getName() + kShapesSuffix).str());

  int64_t numDims = 0;
  for (Type type : func.getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      numDims += tensor.getRank();
  auto outType = MemRefType::get({numDims}, builder.getI64Type());
  unsigned outIndex = companion.getNumArguments();
  (void)companion.insertArgument(outIndex, outType, {}, func.getLoc());
  Value out = companion.getArgument(outIndex);

  visitReturns(companion, [&](func::ReturnOp ret) {
    ImplicitLocOpBuilder b(ret.getLoc(), ret);
    int64_t position = 0;
    for (Value result : ret.getOperands()) {
      auto tensor = dyn_cast<RankedTensorType>(result.getType());
      for (int64_t d = 0, e = tensor ? tensor.getRank() : 0; d < e; ++d) {
        Value dim = b.createOrFold<tensor::DimOp>(result, d);
        Value wide = arith::IndexCastOp::create(b, b.getI64Type(), dim);
        Value slot = arith::ConstantIndexOp::create(b, position++);
        memref::StoreOp::create(b, wide, out, slot);
      }
    }
    ret->setOperands({});
  });
  for (unsigned i = func.getNumResults(); i-- > 0;)
    (void)companion.eraseResult(i);
  return companion;
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
    ModuleOp module = getOperation();
    SymbolTableCollection symbols;
    SmallVector<func::FuncOp> entries;
    bool valid = true;
    for (auto func : module.getOps<func::FuncOp>()) {
      if (!func.isPublic())
        continue;
      // Check all functions first: the user sees every error at once.
      valid &= succeeded(checkEntry(func, module, symbols));
      entries.push_back(func);
    }
    if (!valid)
      return signalPassFailure();

    OpPassManager simplify(func::FuncOp::getOperationName());
    simplify.addPass(memref::createResolveRankedShapeTypeResultDimsPass());
    simplify.addPass(createCanonicalizerPass());
    simplify.addPass(createCSEPass());
    for (func::FuncOp func : entries) {
      for (BlockArgument arg : func.getArguments())
        if (isa<TensorType>(arg.getType()))
          func.setArgAttr(
              arg.getArgNumber(),
              bufferization::BufferizationDialect::kWritableAttrName,
              BoolAttr::get(&getContext(), false));
      func::FuncOp companion = addShapesCompanion(func);
      moveResultsToArguments(func, innermost);
      if (failed(runPipeline(simplify, companion)))
        return signalPassFailure();
    }
  }
};

} // namespace
