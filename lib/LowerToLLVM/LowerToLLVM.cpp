//===- LowerToLLVM.cpp - From tensors to the LLVM dialect -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/LowerToLLVM/LowerToLLVM.h"
#include "linattn/Conversion/Passes.h"
#include "linattn/Entry/Passes.h"
#include "linattn/Transforms/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace {

/// The options of the builders, as text.
struct BufferizePipelineOptions
    : public PassPipelineOptions<BufferizePipelineOptions> {
  Option<linattn::InnermostStride> innermost{
      *this, "innermost",
      llvm::cl::desc("Innermost stride of the caller's buffers"),
      llvm::cl::init(linattn::InnermostStride::Unit),
      llvm::cl::values(
          clEnumValN(linattn::InnermostStride::Unit, "unit", "it is 1"),
          clEnumValN(linattn::InnermostStride::Dynamic, "dynamic", "nothing"))};
};

struct LowerToLLVMPipelineOptions
    : public PassPipelineOptions<LowerToLLVMPipelineOptions> {
  Option<bool> parallel{
      *this, "parallel",
      llvm::cl::desc("Run outermost parallel loops on the thread pool"),
      llvm::cl::init(true)};
};

} // namespace

/// The passes of `buffer-deallocation-pipeline`, without those that find
/// nothing after a canonicalization.
static void addBufferDeallocation(OpPassManager &pm) {
  pm.addPass(bufferization::createOwnershipBasedBufferDeallocationPass());
  pm.addPass(linattn::createLinAttnCanonicalizePass());
  pm.addPass(bufferization::createBufferDeallocationSimplificationPass());
  pm.addPass(bufferization::createLowerDeallocationsPass());
  pm.addPass(createCSEPass());
  pm.addPass(linattn::createLinAttnCanonicalizePass());
}

void linattn::buildBufferizePipeline(OpPassManager &pm,
                                     const BufferizeOptions &options) {
  // Calls hide shapes and layouts. A kernel is a whole program, so that
  // inlining loses nothing.
  addInliner(pm);
  pm.addPass(createSymbolDCEPass());
  // Elementwise ops on tensors neither bufferize nor reify their shapes.
  pm.addNestedPass<func::FuncOp>(createConvertElementwiseToLinalgPass());
  pm.addPass(createLinAttnPrepareEntryPass(
      {options.layout.innermost, options.layout.transposed}));

  // Results are computed in the caller's buffers instead of copied there.
  pm.addNestedPass<func::FuncOp>(createLinAttnSeparateDestinationsPass());
  pm.addNestedPass<func::FuncOp>(createLinAttnSinkDestinationsPass());
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  pm.addPass(createLinAttnBufferizeModulePass({options.layout.innermost}));
  pm.addPass(createLinAttnCanonicalizePass());
  pm.addPass(createCSEPass());
  addBufferDeallocation(pm);
  // Memory that is freed early is reused by the next allocation while it is
  // still cached.
  pm.addNestedPass<func::FuncOp>(
      bufferization::createOptimizeAllocationLivenessPass());
  pm.addPass(createConvertBufferizationToMemRefPass());
  LinAttnUpdateInPlacePassOptions inPlace;
  inPlace.guardCopies = options.guardCopies;
  pm.addNestedPass<func::FuncOp>(createLinAttnUpdateInPlacePass(inPlace));
}

/// Narrow floats are storage formats: arithmetic on them happens in f32, with
/// one rounding per operation, on every machine.
static void addFloatExpansion(OpPassManager &pm,
                              const linattn::LowerToLLVMOptions &options) {
  pm.addPass(math::createMathExtendToSupportedTypes());
  linattn::LinAttnExpandMathPassOptions math;
  math.avx512 = options.avx512;
  math.avx512Bf16 = options.avx512Bf16;
  pm.addPass(linattn::createLinAttnExpandMathPass(math));
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  // Conversions of bf16 in integer arithmetic: __truncsfbf2 is missing from
  // most systems, and the native instruction flushes denormals.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
}

std::unique_ptr<Pass> linattn::createStructuredToBranchesPass() {
  SCFToControlFlowPassOptions options;
  options.allowPatternRollback = false;
  return createSCFToControlFlowPass(options);
}

std::unique_ptr<Pass> linattn::createKernelToNVVMPass() {
  ConvertGpuOpsToNVVMOpsOptions options;
  options.allowPatternRollback = false;
  return createConvertGpuOpsToNVVMOps(options);
}

void linattn::addInliner(OpPassManager &pm) {
  pm.addPass(createInlinerPass({}, [](OpPassManager &) {}));
  pm.addNestedPass<func::FuncOp>(createLinAttnCanonicalizePass());
}

std::unique_ptr<Pass> linattn::createKernelCanonicalizerPass() {
  return createLinAttnCanonicalizePass({/*kernels=*/true});
}

void linattn::buildLowerToLLVMPipeline(OpPassManager &pm,
                                       const LowerToLLVMOptions &options) {
  pm.addPass(createForallToParallelLoopPass());
  LinAttnLowerLinalgToLoopsPassOptions loops;
  loops.parallel = options.parallel;
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerLinalgToLoopsPass(loops));
  pm.addPass(createLinAttnFoldViewsPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createKernelCanonicalizerPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  if (options.prime) {
    LinAttnToFiniteFieldPassOptions field;
    field.prime = *options.prime;
    pm.addPass(createLinAttnToFiniteFieldPass(field));
  }
  if (options.parallel)
    pm.addPass(createLinAttnOutlineParallelPass());
  if (options.polls)
    pm.addPass(createLinAttnInsertPollsPass());
  if (!options.prime)
    addFloatExpansion(pm, options);
  pm.addPass(createLinAttnLowerVectorsPass());

  // Subviews and reshapes become address arithmetic in affine maps.
  pm.addPass(createLinAttnExpandViewsPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createKernelCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createStructuredToBranchesPass());

  ConvertMathToLLVMPassOptions mathOptions;
  mathOptions.approximateLog1p = false;
  pm.addPass(createConvertMathToLLVMPass(mathOptions));
  // Functions of libm take scalars: vectors are unrolled for them.
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createLinAttnLowerAllocationsPass());
  pm.addPass(createLinAttnLowerMPIToLLVMPass());
  pm.addPass(createLinAttnConvertToLLVMPass({options.amx}));
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void linattn::registerLowerToLLVMPipelines() {
  PassPipelineRegistration<BufferizePipelineOptions>(
      "linattn-bufferize-pipeline",
      "Give public tensor functions the calling convention of kernels and "
      "bufferize",
      [](OpPassManager &pm, const BufferizePipelineOptions &options) {
        buildBufferizePipeline(pm, {options.innermost.getValue()});
      });
  PassPipelineRegistration<LowerToLLVMPipelineOptions>(
      "linattn-lower-to-llvm-pipeline",
      "Lower linalg, loops and vectors on memrefs to the LLVM dialect",
      [](OpPassManager &pm, const LowerToLLVMPipelineOptions &options) {
        buildLowerToLLVMPipeline(pm, {options.parallel, std::nullopt});
      });
}
