//===- Entry.cpp - Functions that kernels are entered by ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Entry.h"
#include "linattn/Entry/EntryLayout.h"

#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::linattn;

/// Whether a caller can hand over elements of this type.
static bool isBoundaryElement(Type type) {
  if (type.isF16() || type.isBF16() || type.isF32() || type.isF64() ||
      type.isIndex())
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && integer.isSignless() &&
         llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
}

static LogicalResult checkBoundaryType(func::FuncOp func, Location loc,
                                       Type type, StringRef kind,
                                       unsigned index) {
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

/// Verifies that every function that `func` calls, directly or not, has a body,
/// and that none calls itself: kernels have neither a linker nor a call stack.
static LogicalResult checkCallees(func::FuncOp func,
                                  SymbolTableCollection &symbols) {
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

static LogicalResult checkEntry(func::FuncOp func, ModuleOp module,
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
  Operation *other = symbols.getSymbolTable(module).lookup(companion);
  if (other && !getShapesCompanion(func)) {
    auto diag = func.emitError("expected the symbol '")
                << companion << "' to be free for the function that computes "
                << "result shapes";
    diag.attachNote(other->getLoc()) << "defined here";
    return failure();
  }
  return checkCallees(func, symbols);
}

FailureOr<SmallVector<func::FuncOp>>
mlir::linattn::getCheckedEntries(ModuleOp module) {
  SymbolTableCollection symbols;
  SmallVector<func::FuncOp> entries;
  bool valid = true;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (!func.isPublic() || isShapesCompanion(func))
      continue;
    valid &= succeeded(checkEntry(func, module, symbols));
    entries.push_back(func);
  }
  if (!valid)
    return failure();
  return entries;
}

bool mlir::linattn::isShapesCompanion(func::FuncOp func) {
  return func->hasAttr(kChecksAttrName);
}

func::FuncOp mlir::linattn::getShapesCompanion(func::FuncOp func) {
  auto companion = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      func, StringAttr::get(func.getContext(), func.getName() + kShapesSuffix));
  return companion && isShapesCompanion(companion) ? companion : nullptr;
}
