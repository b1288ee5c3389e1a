//===- Pipelines.h - From tensors to machine code ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each pipeline is one function, shared by linattn-opt, the JIT and Python, so
// that what a test sees is what a user runs.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PIPELINES_PIPELINES_H
#define LINATTN_PIPELINES_PIPELINES_H

#include "linattn/Analysis/CostModel.h"
#include "linattn/CodeGen/CompilerOptions.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Gradient/Gradient.h"
#include "linattn/LowerToLLVM/LowerToLLVM.h"
#include "linattn/Support/Arithmetic.h"
#include "linattn/Transforms/Passes.h"
#include "mlir/Pass/PassOptions.h"

#include <string>

namespace mlir::linattn {

/// The options of every pipeline that starts at a function's entry.
struct EntryPipelineOptions : virtual mlir::detail::PassOptions {
  Option<InnermostStride> innermost{
      *this, "innermost",
      llvm::cl::desc("Innermost stride of the caller's buffers"),
      llvm::cl::init(InnermostStride::Unit),
      llvm::cl::values(
          clEnumValN(InnermostStride::Unit, "unit", "it is 1"),
          clEnumValN(InnermostStride::Dynamic, "dynamic", "nothing is known"))};
  EntryLayout getLayout() const {
    return {innermost, ArrayRef<int64_t>(transposed)};
  }
  ListOption<int64_t> transposed{
      *this, "transposed",
      llvm::cl::desc("Arguments and results, by number, of which the dimension "
                     "before the last one has stride 1")};
  Option<int> prime{
      *this, "prime",
      llvm::cl::desc("Compute in prime field 0 or 1 instead of in floats"),
      llvm::cl::init(-1)};
  Option<bool> checkDecays{
      *this, "check-decays",
      llvm::cl::desc("Check that decays are natural logarithms of at most 0"),
      llvm::cl::init(false)};
};

/// The sizes of a call, of a pipeline that chooses schedules by them.
struct CallSizeOptions : virtual mlir::detail::PassOptions {
  Option<int64_t> sequences{
      *this, "sequences",
      llvm::cl::desc(
          "Sequences that schedules are chosen for where types leave "
          "them open; 0: not known"),
      llvm::cl::init(0)};
  Option<int64_t> tokens{
      *this, "tokens",
      llvm::cl::desc("Tokens that schedules are chosen for where types leave "
                     "them open; 0: not known"),
      llvm::cl::init(0)};
  void setSizes(const ::linattn::ScheduleHints &hints) {
    sequences = hints.sequences;
    tokens = hints.tokens;
  }
};

/// The options of the CPU pipeline.
struct CPUPipelineOptions : EntryPipelineOptions,
                            CallSizeOptions,
                            PassPipelineOptions<CPUPipelineOptions> {
  Option<ReassociateMode> reassociate{
      *this, "reassociate", llvm::cl::desc("When to rewrite (QKᵀ)V as Q(KᵀV)"),
      llvm::cl::init(ReassociateMode::Auto),
      llvm::cl::values(
          clEnumValN(ReassociateMode::Auto, "auto", "where cheaper"),
          clEnumValN(ReassociateMode::Always, "always", "wherever legal"),
          clEnumValN(ReassociateMode::Never, "never", "nowhere"))};
  Option<std::string> form{
      *this, "form",
      llvm::cl::desc("Form of the scans: auto, token, state_tile, "
                     "chunk[:SIZE], segments[:SIZE]"),
      llvm::cl::init("auto")};
  Option<bool> throughChunks{
      *this, "through-chunks",
      llvm::cl::desc(
          "Lower scans by way of the ops of a chunk where these have "
          "a lowering to vectors"),
      llvm::cl::init(false)};
  Option<int64_t> vectorBits{*this, "vector-bits",
                             llvm::cl::desc("Width of a vector register"),
                             llvm::cl::init(512)};
  Option<int64_t> registers{*this, "registers",
                            llvm::cl::desc("Number of vector registers"),
                            llvm::cl::init(32)};
  Option<int64_t> l1{*this, "l1",
                     llvm::cl::desc("Bytes of the first data cache; 0: usual"),
                     llvm::cl::init(0)};
  Option<int64_t> cores{*this, "cores", llvm::cl::desc("Cores of the machine"),
                        llvm::cl::init(1)};
  Option<bool> avx512{
      *this, "avx512",
      llvm::cl::desc("Use instructions of AVX-512 for rough arithmetic"),
      llvm::cl::init(false)};
  Option<bool> avx512Bf16{
      *this, "avx512-bf16",
      llvm::cl::desc("Use the conversions of AVX-512 to bf16"),
      llvm::cl::init(false)};
  Option<::linattn::MatrixUnit> matrixUnit{
      *this, "matrix-unit",
      llvm::cl::desc("Unit that multiplies matrices of 16-bit tokens"),
      llvm::cl::init(::linattn::MatrixUnit::None),
      llvm::cl::values(
          clEnumValN(::linattn::MatrixUnit::None, "none", "vectors"),
          clEnumValN(::linattn::MatrixUnit::AMX, "amx", "the tiles of AMX"),
          clEnumValN(::linattn::MatrixUnit::Dot, "dot",
                     "dot products of AVX-512 BF16"),
          clEnumValN(::linattn::MatrixUnit::EmulatedAMX, "emulated",
                     "vectors that compute what AMX does"))};
  Option<bool> fastProducts{
      *this, "fast-products",
      llvm::cl::desc("A matrix unit takes one bf16 number for each element"),
      llvm::cl::init(false)};
  Option<bool> whereMeasured{
      *this, "where-measured",
      llvm::cl::desc("A matrix unit takes what was measured to gain by it"),
      llvm::cl::init(false)};
};

struct ReferencePipelineOptions
    : EntryPipelineOptions,
      PassPipelineOptions<ReferencePipelineOptions> {};

/// On tensors: gives every attention its final form, and chooses its schedule.
void buildOptimizationPipeline(OpPassManager &pm,
                               const CPUPipelineOptions &options);

/// `linattn-lower-to-cpu-pipeline`: vectorized, threaded over batch and heads;
/// from tensors to the LLVM dialect.
void buildCPUPipeline(OpPassManager &pm, const CPUPipelineOptions &options);

/// The first half of both CPU pipelines: to loops, vectors and linalg on
/// memrefs. `buildLowerToLLVMPipeline` is the second.
void buildCPULoopsPipeline(OpPassManager &pm,
                           const CPUPipelineOptions &options);
/// The same for another machine, which is described by its vectors.
void buildCPULoopsPipeline(OpPassManager &pm,
                           const ::linattn::VectorTarget &target,
                           StringRef form);
void buildReferenceLoopsPipeline(OpPassManager &pm,
                                 const ReferencePipelineOptions &options);

/// `linattn-reference-pipeline`: the quadratic meaning in scalar loops, the
/// oracle in IR; from tensors to the LLVM dialect.
void buildReferencePipeline(OpPassManager &pm,
                            const ReferencePipelineOptions &options);

/// The options of the route through linalg.
struct LinalgPipelineOptions : EntryPipelineOptions,
                               PassPipelineOptions<LinalgPipelineOptions> {
  Option<int64_t> chunkSize{
      *this, "chunk-size",
      llvm::cl::desc("Tokens per chunk of a scan whose schedule does not say"),
      llvm::cl::init(16)};
};

/// `linattn-lower-through-linalg-pipeline`: every recurrence as linalg ops on
/// tensors, bufferized and lowered to scalar loops; from tensors to the LLVM
/// dialect. It takes linear time; its code is not tuned.
void buildLinalgPipeline(OpPassManager &pm,
                         const LinalgPipelineOptions &options);

/// The first half of that pipeline: on tensors, to linalg alone.
void addLinalgConversion(OpPassManager &functions,
                         const LinalgPipelineOptions &options);

/// Naive code that shows every value, scans token by token. `form` is ignored.
void buildTracePipeline(OpPassManager &pm, const CPUPipelineOptions &options);

/// The options of the GPU pipelines.
struct GPUPipelineOptions : CallSizeOptions,
                            PassPipelineOptions<GPUPipelineOptions> {
  Option<std::string> chip{
      *this, "chip", llvm::cl::desc("sm_80, sm_90, sm_90a, sm_100 or another"),
      llvm::cl::init("sm_80")};
  Option<int64_t> sms{
      *this, "sms",
      llvm::cl::desc("Number of multiprocessors; 0: that of the chip"),
      llvm::cl::init(0)};
  Option<int64_t> bandwidth{
      *this, "bandwidth",
      llvm::cl::desc("Bandwidth of memory in GB/s; 0: that of the chip"),
      llvm::cl::init(0)};
  Option<CopyEngine> copy{
      *this, "copy",
      llvm::cl::desc("How the tiles of attention come to shared memory"),
      llvm::cl::init(CopyEngine::CpAsync),
      llvm::cl::values(
          clEnumValN(CopyEngine::CpAsync, "cp_async", "16 bytes at a time"),
          clEnumValN(CopyEngine::Tma, "tma",
                     "by tensor maps, for products of wgmma"))};
  Option<Mma> scanMma{
      *this, "scan-mma",
      llvm::cl::desc("Matrix instruction of the chunk kernels of scans"),
      llvm::cl::init(Mma::MmaSync),
      llvm::cl::values(clEnumValN(Mma::MmaSync, "mma_sync", "warps"),
                       clEnumValN(Mma::Wgmma, "wgmma",
                                  "warpgroups, on sm_90a where they can"))};
  Option<::linattn::Math> math{
      *this, "math", llvm::cl::desc("Precision of products of f32"),
      llvm::cl::init(::linattn::Math::Strict),
      llvm::cl::values(
          clEnumValN(::linattn::Math::Strict, "strict", "all of it"),
          clEnumValN(::linattn::Math::Fast, "fast",
                     "16 bits; of tokens of 16 bits, as many as theirs"))};
  Option<bool> throughLinalg{
      *this, "through-linalg",
      llvm::cl::desc("Make kernels of linalg ops, none of whole recurrences"),
      llvm::cl::init(false)};
  void setHints(const ::linattn::ScheduleHints &hints) {
    setSizes(hints);
    sms = hints.multiprocessors;
    bandwidth = hints.bandwidth;
  }
  InnermostStride innermost = InnermostStride::Tokens;
  /// Buffers are in host memory, so that checks may read their elements.
  bool onHost = false;
};

/// `linattn-to-gpu-pipeline`: from tensors to kernels in the NVVM dialect.
void buildGPUPipeline(OpPassManager &pm, const GPUPipelineOptions &options);

/// `linattn-lower-to-nvvm-pipeline`: from tensors to PTX, without CUDA.
void buildNVVMPipeline(OpPassManager &pm, const GPUPipelineOptions &options);

/// `linattn-emulated-pipeline`: from tensors to host code that launches its
/// kernels in the emulator.
void buildEmulatedPipeline(OpPassManager &pm,
                           const GPUPipelineOptions &options);

/// Runs before any of these pipelines: replaces a function by its
/// vector-Jacobian product with respect to the listed operands (all of a float
/// type if the list is empty), without dead code. The function itself becomes
/// private.
void buildDifferentiatePipeline(OpPassManager &pm, StringRef function,
                                ArrayRef<int64_t> operands,
                                ChunkLoops chunks = {});

/// The start of every pipeline: raises operators of other frameworks, inlines
/// calls, checks sizes, and decays under `checkDecays`.
void addImportsAndShapeChecks(OpPassManager &pm, bool checkDecays,
                              bool checkIndices = true);

/// Rewrites attention into one of its forms.
void addRewrites(OpPassManager &functions, const CPUPipelineOptions &options);

/// Registers the pipelines above.
void registerPipelines();
void registerGPUPipelines();

} // namespace mlir::linattn

#endif // LINATTN_PIPELINES_PIPELINES_H
