//===- PipelineSelection.cpp - Options to passes -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineSelection.h"
#include "linattn/InitAll.h"
#include "linattn/Pipelines/Pipelines.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/TargetParser/Host.h"

using namespace linattn;
using namespace linattn::detail;

const mlir::DialectRegistry &linattn::detail::getDialectRegistry() {
  // Filling the registry takes longer than compiling a small kernel.
  static const mlir::DialectRegistry *registry = [] {
    auto *filled = new mlir::DialectRegistry;
    mlir::linattn::registerAllDialects(*filled);
    mlir::registerBuiltinDialectTranslation(*filled);
    mlir::registerLLVMDialectTranslation(*filled);
    return filled;
  }();
  return *registry;
}

/// The vector registers of this machine.
static void describeHost(mlir::linattn::CPUPipelineOptions &cpu) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto has = [&](llvm::StringRef name) { return features.lookup(name); };
  bool wide = has("avx512f") && has("avx512vl");
  cpu.vectorBits = wide ? 512 : has("avx2") ? 256 : 128;
  cpu.registers = wide || has("neon") ? 32 : 16;
}

void linattn::detail::buildPipeline(mlir::OpPassManager &pm,
                                    const CompilerOptions &options,
                                    InnermostStride innermost) {
  using mlir::linattn::ReassociateMode;
  if (options.target == Target::Reference) {
    mlir::linattn::ReferencePipelineOptions reference;
    reference.innermost = innermost;
    return mlir::linattn::buildReferencePipeline(pm, reference);
  }
  mlir::linattn::CPUPipelineOptions cpu;
  cpu.innermost = innermost;
  cpu.form = options.form;
  cpu.reassociate = llvm::StringSwitch<ReassociateMode>(options.reassociate)
                        .Case("always", ReassociateMode::Always)
                        .Case("never", ReassociateMode::Never)
                        .Default(ReassociateMode::Auto);
  describeHost(cpu);
  mlir::linattn::buildCPUPipeline(pm, cpu);
}
