//===- PipelineSelection.cpp - Options to passes --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PipelineSelection.h"
#include "linattn/CodeGen/CodeGen.h"
#include "linattn/InitAll.h"
#include "linattn/Pipelines/Pipelines.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ADT/StringSwitch.h"

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

/// Tokens per chunk by the name of a form; the token form is chunks of one.
static int64_t getChunkSize(llvm::StringRef form, int64_t otherwise) {
  int64_t size;
  if (form == "token")
    return 1;
  if (form.consume_front("chunk:") && !form.getAsInteger(10, size) && size > 0)
    return size;
  return otherwise;
}

static void setLayout(mlir::linattn::EntryPipelineOptions &options,
                      const EntryLayout &layout) {
  options.innermost = layout.innermost;
  options.transposed = llvm::ArrayRef<int64_t>(layout.transposed);
}

mlir::linattn::ChunkLoops
linattn::detail::getGradientChunks(const CompilerOptions &options) {
  // A whole tile of rows. With more tokens, the scores of a chunk cost more
  // than its products with the state; with fewer, the states take more memory.
  constexpr int64_t tokens = 16;
  if (options.target != Target::CPU || options.form != "auto")
    return {};
  return {tokens, getVectorTarget().vectorBits};
}

void linattn::detail::buildPipeline(mlir::OpPassManager &pm,
                                    const CompilerOptions &options,
                                    const EntryLayout &layout) {
  using mlir::linattn::ReassociateMode;
  int prime = options.prime ? static_cast<int>(*options.prime) : -1;
  // Elements of a field are neither positive nor negative.
  bool checkDecays = options.checkDecays && !options.prime;
  if (options.target == Target::Reference) {
    mlir::linattn::ReferencePipelineOptions reference;
    setLayout(reference, layout);
    reference.prime = prime;
    reference.checkDecays = checkDecays;
    return mlir::linattn::buildReferencePipeline(pm, reference);
  }
  if (options.target == Target::Linalg) {
    mlir::linattn::LinalgPipelineOptions linalg;
    linalg.chunkSize = getChunkSize(options.form, linalg.chunkSize);
    setLayout(linalg, layout);
    linalg.prime = prime;
    linalg.checkDecays = checkDecays;
    return mlir::linattn::buildLinalgPipeline(pm, linalg);
  }
  if (options.target == Target::NVVMEmulated ||
      options.target == Target::NVVM) {
    mlir::linattn::GPUPipelineOptions gpu;
    if (!options.chip.empty())
      gpu.chip = options.chip;
    gpu.copy = mlir::linattn::symbolizeCopyEngine(options.copy)
                   .value_or(mlir::linattn::CopyEngine::CpAsync);
    gpu.scanMma = mlir::linattn::symbolizeMma(options.scanMma.value_or(""))
                      .value_or(mlir::linattn::Mma::MmaSync);
    gpu.math = options.math.value_or(Math::Strict);
    gpu.setHints(options.hints);
    if (options.target == Target::NVVM)
      return mlir::linattn::buildNVVMPipeline(pm, gpu);
    // Only tokens have a unit stride; gates may have any strides.
    if (layout.innermost == InnermostStride::Dynamic)
      gpu.innermost = layout.innermost;
    gpu.onHost = true;
    return mlir::linattn::buildEmulatedPipeline(pm, gpu);
  }
  mlir::linattn::CPUPipelineOptions cpu;
  setLayout(cpu, layout);
  cpu.form = options.form;
  cpu.prime = prime;
  cpu.checkDecays = checkDecays;
  cpu.reassociate = llvm::StringSwitch<ReassociateMode>(options.reassociate)
                        .Case("always", ReassociateMode::Always)
                        .Case("never", ReassociateMode::Never)
                        .Default(ReassociateMode::Auto);
  VectorTarget target = getVectorTarget();
  cpu.vectorBits = target.vectorBits;
  cpu.registers = target.registers;
  cpu.l1 = target.l1;
  cpu.cores = target.cores;
  cpu.avx512 = target.avx512;
  cpu.avx512Bf16 = target.avx512Bf16;
  cpu.matrixUnit = resolveMatrixUnit(options);
  // All that dot products can take has been measured.
  cpu.whereMeasured = options.matrixUnit == MatrixUnit::Auto &&
                      cpu.matrixUnit != MatrixUnit::Dot;
  cpu.fastProducts = options.math == Math::Fast;
  cpu.setSizes(options.hints);
  if (options.target == Target::Trace)
    return mlir::linattn::buildTracePipeline(pm, cpu);
  mlir::linattn::buildCPUPipeline(pm, cpu);
}
