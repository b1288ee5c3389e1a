//===- GPUPipeline.cpp - From tensors to PTX ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Conversion/Passes.h"
#include "linattn/Emulator/Passes.h"
#include "linattn/Entry/Passes.h"
#include "linattn/GPU/Passes.h"
#include "linattn/Gradient/Passes.h"
#include "linattn/Pipelines/Pipelines.h"
#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::linattn;

/// The plain route for ops without a kernel: naive loops, where each iteration
/// of the outermost parallel loop runs on a thread, a warp or a block.
static void addPlainRoute(OpPassManager &pm) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createForallToParallelLoopPass());
  functions.addPass(createLinAttnLowerToLoopsPass({/*lanes=*/true}));
  functions.addPass(createLinAttnLaunchCopiesPass());
  functions.addPass(createConvertLinalgToParallelLoopsPass());
  functions.addPass(createLinAttnSinkHostScalarsPass());
  functions.addPass(createLinAttnMapLoopsToThreadsPass());
  // Folds the slices that threads create.
  functions.addPass(createLinAttnFoldViewsPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createGpuKernelOutliningPass());
}

void mlir::linattn::buildGPUPipeline(OpPassManager &pm,
                                     const GPUPipelineOptions &options) {
  CPUPipelineOptions rewrites;
  // States and reads have kernels; the quadratic form of mapped tokens has
  // none.
  rewrites.reassociate = ReassociateMode::Always;
  addImportsAndShapeChecks(pm, /*checkDecays=*/false,
                           /*checkIndices=*/options.onHost);
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createLinAttnSplitSweepsPass());
  addRewrites(functions, rewrites);
  if (options.throughLinalg)
    functions.addPass(createConvertLinAttnToLinalgPass());
  else
    functions.addPass(createLinAttnToQuadraticPass());
  functions.addPass(createLinAttnCanonicalizePass());
  functions.addPass(createCSEPass());
  buildBufferizePipeline(pm, {options.innermost, /*guardCopies=*/false});
  LinAttnSelectSchedulePassOptions select;
  select.chip = options.chip;
  select.sms = options.sms;
  select.bandwidth = options.bandwidth;
  select.sequences = options.sequences;
  select.tokens = options.tokens;
  select.copy = options.copy;
  select.scanMma = options.scanMma;
  select.math = options.math;
  pm.addNestedPass<func::FuncOp>(createLinAttnMaterializeMapsPass());
  pm.addNestedPass<func::FuncOp>(createLinAttnSelectSchedulePass(select));
  pm.addPass(createLinAttnToKernelPass());
  addPlainRoute(pm);
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createKernelCanonicalizerPass());
  kernels.addPass(createCSEPass());
}

/// From sm_80 on.
static bool hasPackedConversions(StringRef chip) {
  int64_t number = 0;
  return chip.consume_front("sm_") && !chip.consumeInteger(10, number) &&
         number >= 80;
}

/// No function of libdevice may remain, since libdevice is not linked at run
/// time. Narrow floats are storage formats, as on the CPU.
static void addKernelLowering(OpPassManager &kernels, StringRef chip) {
  kernels.addPass(math::createMathExtendToSupportedTypes());
  kernels.addPass(createLinAttnExpandMathPass());
  kernels.addPass(createLinAttnExpandDoubleMathPass());
  kernels.addPass(createLinAttnMathToIntrinsicsPass());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16"};
  kernels.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  if (hasPackedConversions(chip))
    kernels.addPass(createLinAttnPackConversionsPass());
  kernels.addPass(arith::createArithExpandOpsPass());
  kernels.addPass(createLinAttnExpandViewsPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createStructuredToBranchesPass());
  kernels.addPass(createConvertVectorToLLVMPass());
  kernels.addPass(createKernelToNVVMPass());
  kernels.addPass(createConvertNVVMToLLVMPass());
  // LLVM removes dead code.
  kernels.addPass(createReconcileUnrealizedCastsPass());
}

void mlir::linattn::buildNVVMPipeline(OpPassManager &pm,
                                      const GPUPipelineOptions &options) {
  buildGPUPipeline(pm, options);
  GpuNVVMAttachTargetOptions target;
  target.chip = options.chip;
  // The oldest PTX version that knows the chip. A newer one would require a
  // newer driver.
  target.features =
      StringRef(options.chip).starts_with("sm_1") ? "+ptx86" : "+ptx80";
  pm.addPass(createGpuNVVMAttachTarget(target));
  addKernelLowering(pm.nest<gpu::GPUModuleOp>(), options.chip);
  pm.addPass(createLinAttnModuleToPTXPass());
}

void mlir::linattn::buildEmulatedPipeline(OpPassManager &pm,
                                          const GPUPipelineOptions &options) {
  buildGPUPipeline(pm, options);
  pm.addPass(createLinAttnEmulateLaunchesPass());
  // Ops without a kernel.
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToLoopsPass());
  mlir::linattn::LowerToLLVMOptions lower;
  lower.parallel = false; // Launches report to the thread that calls.
  buildLowerToLLVMPipeline(pm, lower);
}

void mlir::linattn::registerGPUPipelines() {
  PassPipelineRegistration<GPUPipelineOptions>(
      "linattn-to-gpu-pipeline",
      "Compile to kernels in the NVVM dialect and launches of them",
      buildGPUPipeline);
  PassPipelineRegistration<GPUPipelineOptions>(
      "linattn-lower-to-nvvm-pipeline",
      "Compile to PTX: every kernel becomes a gpu.binary", buildNVVMPipeline);
  PassPipelineRegistration<GPUPipelineOptions>(
      "linattn-emulated-pipeline",
      "Compile to host code that launches kernels in the emulator",
      buildEmulatedPipeline);
}
