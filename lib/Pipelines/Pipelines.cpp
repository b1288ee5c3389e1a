//===- Pipelines.cpp - From tensors to machine code -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Pipelines/Pipelines.h"
#include "linattn/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::linattn;

/// Calls would hide what their callees demand of arguments.
static void addShapeChecks(OpPassManager &pm) {
  pm.addPass(createInlinerPass());
  pm.addPass(createLinAttnCheckShapesPass());
}

static void addContract(OpPassManager &pm, StringRef phase) {
  LinAttnVerifyContractPassOptions contract;
  contract.phase = phase.str();
  pm.addPass(createLinAttnVerifyContractPass(contract));
}

/// From what is meant to what is computed: attention in one of its forms.
static void addRewrites(OpPassManager &functions,
                        const CPUPipelineOptions &options) {
  functions.addPass(createCanonicalizerPass());
  LinAttnReassociatePassOptions reassociate;
  reassociate.mode = options.reassociate;
  reassociate.vectorBits = options.vectorBits;
  functions.addPass(createLinAttnReassociatePass(reassociate));
  functions.addPass(createLinAttnCausalToScanPass());
}

void mlir::linattn::buildOptimizationPipeline(
    OpPassManager &pm, const CPUPipelineOptions &options) {
  // Calls are inlined first: φ and scale fold across them.
  pm.addPass(createInlinerPass());
  OpPassManager &functions = pm.nest<func::FuncOp>();
  addRewrites(functions, options);
  LinAttnSelectFormPassOptions select;
  select.form = options.form;
  select.vectorBits = options.vectorBits;
  select.registers = options.registers;
  functions.addPass(createLinAttnSelectFormPass(select));
  functions.addPass(createLinAttnChunkPass());
  // Only scans cut into chunks: the others keep their structure for the tiles.
  LinAttnDecomposePassOptions decompose;
  decompose.onlyChunks = true;
  functions.addPass(createLinAttnDecomposePass(decompose));
  functions.addPass(createLinAttnToQuadraticPass());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  addContract(pm, "structured");
}

void mlir::linattn::buildCPUPipeline(OpPassManager &pm,
                                     const CPUPipelineOptions &options) {
  addShapeChecks(pm);
  buildOptimizationPipeline(pm, options);
  buildBufferizePipeline(pm, {options.innermost});
  LinAttnLowerToVectorPassOptions vector;
  vector.vectorBits = options.vectorBits;
  vector.registers = options.registers;
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToVectorPass(vector));
  // What has no vector schedule runs as scalar loops; a remark has said so.
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToLoopsPass());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  addContract(pm, "linalg");
  LowerToLLVMOptions lower;
  lower.parallel = true;
  buildLowerToLLVMPipeline(pm, lower);
}

void mlir::linattn::buildReferencePipeline(
    OpPassManager &pm, const ReferencePipelineOptions &options) {
  addShapeChecks(pm);
  pm.addNestedPass<func::FuncOp>(createLinAttnToQuadraticPass());
  addContract(pm, "structured");
  buildBufferizePipeline(pm, {options.innermost});
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToLoopsPass());
  addContract(pm, "linalg");
  LowerToLLVMOptions lower;
  lower.parallel = false;
  buildLowerToLLVMPipeline(pm, lower);
}

void mlir::linattn::buildTracePipeline(OpPassManager &pm,
                                       const CPUPipelineOptions &options) {
  addShapeChecks(pm);
  OpPassManager &functions = pm.nest<func::FuncOp>();
  addRewrites(functions, options);
  LinAttnChunkPassOptions chunk;
  chunk.chunkSize = 1;
  chunk.wherePossible = true;
  functions.addPass(createLinAttnChunkPass(chunk));
  functions.addPass(createLinAttnToQuadraticPass());
  addContract(pm, "structured");
  buildBufferizePipeline(pm, {options.innermost});
  pm.addPass(createLinAttnInstrumentTracePass());
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToLoopsPass());
  addContract(pm, "linalg");
  LowerToLLVMOptions lower;
  lower.parallel = false;
  buildLowerToLLVMPipeline(pm, lower);
}

void mlir::linattn::registerPipelines() {
  PassPipelineRegistration<CPUPipelineOptions>(
      "linattn-optimization-pipeline",
      "Bring every attention on tensors into the form it will run in",
      buildOptimizationPipeline);
  PassPipelineRegistration<CPUPipelineOptions>(
      "linattn-lower-to-cpu-pipeline",
      "Compile to vectorized, threaded code in the LLVM dialect",
      buildCPUPipeline);
  PassPipelineRegistration<CPUPipelineOptions>(
      "linattn-trace-pipeline", "Compile to scalar loops that show every value",
      buildTracePipeline);
  PassPipelineRegistration<ReferencePipelineOptions>(
      "linattn-reference-pipeline",
      "Compile the quadratic meaning to scalar loops in the LLVM dialect",
      buildReferencePipeline);
}
