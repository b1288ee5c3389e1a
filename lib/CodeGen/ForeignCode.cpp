//===- ForeignCode.cpp - Refuse foreign code in a module ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/CodeGen/ForeignCode.h"
#include "linattn/CodeGen/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace linattn::detail;

llvm::Error linattn::detail::checkSource(mlir::ModuleOp module) {
  static constexpr llvm::StringRef foreign[] = {
      "llvm", "nvvm", "nvgpu", "rocdl", "ptr", "emitc", "async", "gpu"};
  mlir::Operation *found = nullptr;
  module.walk([&](mlir::Operation *op) {
    if (!llvm::is_contained(foreign, op->getName().getDialectNamespace()))
      return mlir::WalkResult::advance();
    found = op;
    return mlir::WalkResult::interrupt();
  });
  if (!found)
    return llvm::Error::success();
  return llvm::createStringError(
      formatLocation(found->getLoc()) + ": error: expected no op of the " +
      found->getName().getDialectNamespace() +
      " dialect in a module that is not trusted, but got '" +
      found->getName().getStringRef() + "'");
}

/// Functions of mathematics, without the letter for their type.
static bool isMathFunction(llvm::StringRef name) {
  static const llvm::StringSet<> names = {
      "acos",      "acosh", "asin", "asinh", "atan",  "atan2", "atanh", "cbrt",
      "ceil",      "cos",   "cosh", "erf",   "erfc",  "exp",   "exp2",  "expm1",
      "fabs",      "floor", "fma",  "fmax",  "fmin",  "fmod",  "log",   "log10",
      "log1p",     "log2",  "pow",  "rint",  "round", "sin",   "sinh",  "sqrt",
      "roundeven", "tan",   "tanh", "trunc"};
  return names.contains(name) ||
         (name.consume_back("f") && names.contains(name));
}

static bool isKnownFunction(llvm::StringRef name) {
  static const llvm::StringSet<> memory = {"malloc", "free",    "aligned_alloc",
                                           "memcpy", "memmove", "memset"};
  return memory.contains(name) || name.starts_with("linattn_") ||
         isMathFunction(name);
}

llvm::Error linattn::detail::checkSymbols(const llvm::Module &module) {
  for (const llvm::Function &function : module) {
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !isKnownFunction(function.getName()))
      return llvm::createStringError(
          "expected a module that is not trusted to call no function outside "
          "of itself, but got '" +
          function.getName() + "'");
    for (const llvm::Instruction &instruction : llvm::instructions(function)) {
      auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call && call->isInlineAsm())
        return llvm::createStringError(
            "expected a module that is not trusted to have no assembly");
    }
  }
  return llvm::Error::success();
}
