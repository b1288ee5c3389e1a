//===- Pipelines.cpp - From tensors to machine code -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Pipelines/Pipelines.h"
#include "linattn/Conversion/Passes.h"
#include "linattn/Entry/Passes.h"
#include "linattn/Gradient/Passes.h"
#include "linattn/Transforms/Passes.h"
#include "mlir/Conversion/ShardToMPI/ShardToMPI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Shard/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::linattn;

/// Raises operators of other frameworks before any check. Inlines calls, which
/// would hide the requirements of callees.
void mlir::linattn::addImportsAndShapeChecks(OpPassManager &pm,
                                             bool checkDecays,
                                             bool checkIndices) {
  pm.addNestedPass<func::FuncOp>(createLinAttnRemarkChoicesPass());
  pm.addNestedPass<func::FuncOp>(createLinAttnRaiseOnnxPass());
  addInliner(pm);
  LinAttnCheckShapesPassOptions checks;
  checks.checkDecays = checkDecays;
  checks.checkIndices = checkIndices;
  pm.addPass(createLinAttnCheckShapesPass(checks));
}

void mlir::linattn::buildDifferentiatePipeline(OpPassManager &pm,
                                               StringRef function,
                                               ArrayRef<int64_t> operands,
                                               ChunkLoops chunks) {
  pm.addNestedPass<func::FuncOp>(createLinAttnRaiseOnnxPass());
  addInliner(pm);
  LinAttnDifferentiatePassOptions options;
  options.function = function.str();
  options.operands.assign(operands.begin(), operands.end());
  options.isolate = true;
  options.chunkSize = chunks.tokens;
  options.vectorBits = chunks.vectorBits;
  pm.addPass(createLinAttnDifferentiatePass(options));
  pm.addPass(createSymbolDCEPass());
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createLinAttnCanonicalizePass());
  functions.addPass(createCSEPass());
  // Each separate loop nest between scans costs a pass over memory.
  functions.addPass(createConvertElementwiseToLinalgPass());
  functions.addPass(createLinalgElementwiseOpFusionPass());
  functions.addPass(createLinAttnCanonicalizePass());
  functions.addPass(createCSEPass());
}

static void addContract(OpPassManager &pm, StringRef phase) {
  LinAttnVerifyContractPassOptions contract;
  contract.phase = phase.str();
  pm.addPass(createLinAttnVerifyContractPass(contract));
}

void mlir::linattn::addRewrites(OpPassManager &functions,
                                const CPUPipelineOptions &options) {
  functions.addPass(createLinAttnExpandSnapshotsPass());
  functions.addPass(createLinAttnCanonicalizePass());
  functions.addPass(createLinAttnCheckNormalizerPass());
  LinAttnReassociatePassOptions reassociate;
  reassociate.mode = options.reassociate;
  reassociate.vectorBits = options.vectorBits;
  functions.addPass(createLinAttnReassociatePass(reassociate));
  functions.addPass(createLinAttnCausalToScanPass());
}

/// The prime field of a pipeline's options, if any.
static std::optional<unsigned> getPrime(int option) {
  return option < 0 ? std::nullopt : std::optional<unsigned>(option);
}

/// Turns scans into tasks of chunks, if their chunk ops have a lowering to
/// vectors and, for a matrix unit, a speed-up by it.
static void addChunkTasks(OpPassManager &functions,
                          const CPUPipelineOptions &options, bool forUnit) {
  LinAttnExpandFormPassOptions expand;
  expand.tasks = true;
  expand.matrixUnit = forUnit;
  expand.whereMeasured = options.whereMeasured;
  expand.tokens = options.tokens;
  expand.sequences = options.sequences;
  expand.cores = options.cores;
  // As many tokens as vectors take in the time of a chunk.
  bool usesDots = options.matrixUnit == ::linattn::MatrixUnit::Dot;
  expand.fillFrom = usesDots ? 75 : 50;
  // Dot products of f32 tokens, three for one, would take longer than FMAs.
  expand.fastProducts = options.fastProducts && !usesDots;
  functions.addPass(createLinAttnExpandFormPass(expand));
  functions.addPass(createLinAttnCanonicalizePass());
  functions.addPass(createCSEPass());
}

void mlir::linattn::buildOptimizationPipeline(
    OpPassManager &pm, const CPUPipelineOptions &options) {
  // A module may reach this pipeline without the checks.
  pm.addNestedPass<func::FuncOp>(createLinAttnRaiseOnnxPass());
  // Calls are inlined first: φ and scale fold across them.
  addInliner(pm);
  OpPassManager &functions = pm.nest<func::FuncOp>();
  addRewrites(functions, options);
  // Its rules say where a unit is faster than any form of vectors.
  if (options.matrixUnit != ::linattn::MatrixUnit::None)
    addChunkTasks(functions, options, /*forUnit=*/true);
  LinAttnSelectFormPassOptions select;
  select.form = options.form;
  select.vectorBits = options.vectorBits;
  select.registers = options.registers;
  select.l1 = options.l1;
  select.cores = options.cores;
  functions.addPass(createLinAttnSelectFormPass(select));
  functions.addPass(createLinAttnSplitSegmentsPass());
  // The form of the segments.
  select.form = "auto";
  functions.addPass(createLinAttnSelectFormPass(select));
  functions.addPass(createLinAttnToQuadraticPass());
  functions.addPass(createLinAttnCanonicalizePass());
  functions.addPass(createCSEPass());
  if (options.matrixUnit != ::linattn::MatrixUnit::None) {
    LinAttnSelectSummandsPassOptions summands;
    summands.fastProducts = options.fastProducts;
    summands.whereMeasured = options.whereMeasured;
    functions.addPass(createLinAttnSelectSummandsPass(summands));
  }
  addContract(pm, "structured");
}

void mlir::linattn::buildCPULoopsPipeline(OpPassManager &pm,
                                          const CPUPipelineOptions &options) {
  addImportsAndShapeChecks(pm, options.checkDecays);
  buildOptimizationPipeline(pm, options);
  if (options.throughChunks)
    addChunkTasks(pm.nest<func::FuncOp>(), options, /*forUnit=*/false);
  pm.addNestedPass<func::FuncOp>(createLinAttnFuseTokensPass());
  buildBufferizePipeline(pm, {options.getLayout()});
  LinAttnFuseEpiloguePassOptions epilogue;
  epilogue.vectorBits = options.vectorBits;
  pm.addNestedPass<func::FuncOp>(createLinAttnFuseEpiloguePass(epilogue));
  pm.addNestedPass<func::FuncOp>(createLinAttnFuseProloguePass());
  pm.addNestedPass<func::FuncOp>(createLinAttnDivideCopiesPass());
  LinAttnLowerChunksToVectorPassOptions chunks;
  chunks.vectorBits = options.vectorBits;
  chunks.registers = options.registers;
  chunks.l1 = options.l1;
  chunks.exact = options.prime >= 0;
  LinAttnLowerToVectorPassOptions vector;
  if (options.matrixUnit != ::linattn::MatrixUnit::None) {
    // Eight tile registers hold four tiles of sums, 32 vector registers one.
    chunks.tiles = options.matrixUnit == ::linattn::MatrixUnit::Dot ? 1 : 2;
    vector.tiles = chunks.tiles;
    vector.exact = chunks.exact;
    // Tiles come with AVX-512, and are emulated in vectors of any width.
    chunks.vectorBits = 512;
  }
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerChunksToVectorPass(chunks));
  vector.vectorBits = options.vectorBits;
  vector.registers = options.registers;
  vector.l1 = options.l1;
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToVectorPass(vector));
  LinAttnLowerContractionsPassOptions contractions;
  contractions.vectorBits = options.vectorBits;
  contractions.registers = options.registers;
  pm.addNestedPass<func::FuncOp>(
      createLinAttnLowerContractionsPass(contractions));
  // Ops without a vector schedule run as scalar loops; a remark has said so.
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToLoopsPass());
  // Elements of a field have neither tiles nor subnormals.
  bool isExact = options.prime >= 0;
  if (options.matrixUnit == ::linattn::MatrixUnit::EmulatedAMX ||
      (options.matrixUnit != ::linattn::MatrixUnit::None && isExact))
    pm.addNestedPass<func::FuncOp>(createLinAttnEmulateAMXPass({isExact}));
  else if (options.matrixUnit == ::linattn::MatrixUnit::Dot)
    pm.addNestedPass<func::FuncOp>(createLinAttnLowerAMXToDotPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  addContract(pm, "linalg");
}

void mlir::linattn::buildCPULoopsPipeline(OpPassManager &pm,
                                          const ::linattn::VectorTarget &target,
                                          StringRef form) {
  CPUPipelineOptions options;
  options.form = form.str();
  options.vectorBits = target.vectorBits;
  options.registers = target.registers;
  buildCPULoopsPipeline(pm, options);
}

void mlir::linattn::buildCPUPipeline(OpPassManager &pm,
                                     const CPUPipelineOptions &options) {
  buildCPULoopsPipeline(pm, options);
  mlir::linattn::LowerToLLVMOptions lower;
  lower.parallel = true;
  lower.prime = getPrime(options.prime);
  lower.avx512 = options.avx512;
  lower.avx512Bf16 = options.avx512Bf16;
  lower.amx = options.matrixUnit == ::linattn::MatrixUnit::AMX;
  buildLowerToLLVMPipeline(pm, lower);
}

void mlir::linattn::buildReferenceLoopsPipeline(
    OpPassManager &pm, const ReferencePipelineOptions &options) {
  addImportsAndShapeChecks(pm, options.checkDecays);
  pm.addNestedPass<func::FuncOp>(createLinAttnSplitSweepsPass());
  pm.addNestedPass<func::FuncOp>(createLinAttnToQuadraticPass());
  addContract(pm, "structured");
  buildBufferizePipeline(pm, {options.getLayout()});
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToLoopsPass());
  addContract(pm, "linalg");
}

/// Lowers loops to the LLVM dialect, on one thread.
static void addSequentialLowering(OpPassManager &pm, int prime) {
  mlir::linattn::LowerToLLVMOptions options;
  options.parallel = false;
  options.prime = getPrime(prime);
  buildLowerToLLVMPipeline(pm, options);
}

void mlir::linattn::buildReferencePipeline(
    OpPassManager &pm, const ReferencePipelineOptions &options) {
  buildReferenceLoopsPipeline(pm, options);
  addSequentialLowering(pm, options.prime);
}

void mlir::linattn::addLinalgConversion(OpPassManager &functions,
                                        const LinalgPipelineOptions &options) {
  CPUPipelineOptions rewrites;
  // The quadratic form would compute T×T scores.
  rewrites.reassociate = ReassociateMode::Always;
  addRewrites(functions, rewrites);
  functions.addPass(createLinAttnSplitSweepsPass());
  functions.addPass(
      createConvertLinAttnToLinalgPass({int64_t(options.chunkSize)}));
  functions.addPass(createLinAttnCanonicalizePass());
  functions.addPass(createCSEPass());
}

void mlir::linattn::buildLinalgPipeline(OpPassManager &pm,
                                        const LinalgPipelineOptions &options) {
  addImportsAndShapeChecks(pm, options.checkDecays);
  addLinalgConversion(pm.nest<func::FuncOp>(), options);
  buildBufferizePipeline(pm, {options.getLayout()});
  addContract(pm, "linalg");
  addSequentialLowering(pm, options.prime);
}

void mlir::linattn::buildTracePipeline(OpPassManager &pm,
                                       const CPUPipelineOptions &options) {
  addImportsAndShapeChecks(pm, options.checkDecays);
  OpPassManager &functions = pm.nest<func::FuncOp>();
  addRewrites(functions, options);
  LinAttnChunkPassOptions chunk;
  chunk.chunkSize = 1;
  chunk.wherePossible = true;
  functions.addPass(createLinAttnChunkPass(chunk));
  functions.addPass(createLinAttnToQuadraticPass());
  addContract(pm, "structured");
  buildBufferizePipeline(pm, {options.getLayout()});
  pm.addPass(createLinAttnInstrumentTracePass());
  pm.addNestedPass<func::FuncOp>(createLinAttnLowerToLoopsPass());
  addContract(pm, "linalg");
  mlir::linattn::LowerToLLVMOptions lower;
  lower.parallel = false;
  buildLowerToLLVMPipeline(pm, lower);
}

/// Messages become calls of MPI at the end, when they are in memory.
static void buildPartitionPipeline(OpPassManager &pm) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(shard::createShardingPropagation());
  functions.addPass(shard::createPartition());
  functions.addPass(createLinAttnCanonicalizePass());
  functions.addPass(createLinAttnLowerShardToMPIPass());
  pm.addPass(createConvertShardToMPIPass());
  pm.addPass(createLinAttnCanonicalizePass());
}

void mlir::linattn::registerPipelines() {
  PassPipelineRegistration<>(
      "linattn-partition-pipeline",
      "Split functions with shardings over processes that exchange messages by "
      "MPI",
      buildPartitionPipeline);
  PassPipelineRegistration<CPUPipelineOptions>(
      "linattn-optimization-pipeline",
      "Bring every attention on tensors into the form it will run in",
      buildOptimizationPipeline);
  PassPipelineRegistration<CPUPipelineOptions>(
      "linattn-lower-to-cpu-pipeline",
      "Compile to vectorized, threaded code in the LLVM dialect",
      buildCPUPipeline);
  PassPipelineRegistration<LinalgPipelineOptions>(
      "linattn-lower-through-linalg-pipeline",
      "Compile by way of linalg on tensors to scalar loops in the LLVM dialect",
      buildLinalgPipeline);
  PassPipelineRegistration<CPUPipelineOptions>(
      "linattn-trace-pipeline", "Compile to scalar loops that show every value",
      buildTracePipeline);
  PassPipelineRegistration<ReferencePipelineOptions>(
      "linattn-reference-pipeline",
      "Compile the quadratic meaning to scalar loops in the LLVM dialect",
      buildReferencePipeline);
}
