//===- PipelineSelection.cpp - Options to passes -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineSelection.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Pipelines/LowerToLLVM.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

using namespace linattn;
using namespace linattn::detail;

const mlir::DialectRegistry &linattn::detail::getDialectRegistry() {
  // Filling the registry takes longer than compiling a small kernel.
  static const mlir::DialectRegistry *registry = [] {
    auto *filled = new mlir::DialectRegistry;
    mlir::registerAllDialects(*filled);
    mlir::registerAllExtensions(*filled);
    filled->insert<mlir::linattn::LinAttnDialect>();
    mlir::registerBuiltinDialectTranslation(*filled);
    mlir::registerLLVMDialectTranslation(*filled);
    return filled;
  }();
  return *registry;
}

void linattn::detail::buildPipeline(mlir::OpPassManager &pm,
                                    const CompilerOptions &options,
                                    InnermostStride innermost) {
  mlir::linattn::buildBufferizePipeline(pm, {innermost});
  mlir::linattn::LowerToLLVMOptions lower;
  lower.parallel = options.target == Target::CPU;
  mlir::linattn::buildLowerToLLVMPipeline(pm, lower);
}
