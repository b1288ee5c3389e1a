//===- LowerToLLVM.h - From tensors to the LLVM dialect ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The parts that all CPU pipelines share: bufferization with the calling
// convention of kernels, and the lowering of memrefs, loops and vectors to
// LLVM.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LOWERTOLLVM_LOWERTOLLVM_H
#define LINATTN_LOWERTOLLVM_LOWERTOLLVM_H

#include "linattn/Entry/EntryLayout.h"
#include <memory>
#include <optional>

namespace mlir {
class OpPassManager;
class Pass;
} // namespace mlir

namespace mlir::linattn {

struct BufferizeOptions {
  /// The layout of the caller's buffers.
  EntryLayout layout = {};
  /// Branch around copies of a state that the caller updates in place.
  bool guardCopies = true;
};

/// Inlines private functions, gives public ones the calling convention of
/// kernels (`linattn-prepare-entry`), and bufferizes with deallocation. From
/// ops on tensors to linalg and other ops on memrefs.
void buildBufferizePipeline(OpPassManager &pm, const BufferizeOptions &options);

struct LowerToLLVMOptions {
  /// Run outermost `scf.parallel` loops on the runtime's thread pool.
  bool parallel = true;
  /// Compute in one of the prime fields of `linattn-to-finite-field`, not in
  /// floats.
  std::optional<unsigned> prime;
  /// The instruction sets that `linattn-expand-math` may use.
  bool avx512 = false, avx512Bf16 = false;
  /// Whether the target has tiles of AMX.
  bool amx = false;
  /// Let long loops end early (`linattn-insert-polls`). The runtime defines the
  /// flag that they read.
  bool polls = true;
};

/// From linalg, scf, vector, math and arith on memrefs to the LLVM dialect.
void buildLowerToLLVMPipeline(OpPassManager &pm,
                              const LowerToLLVMOptions &options);

/// Registers both as `linattn-bufferize-pipeline` and
/// `linattn-lower-to-llvm-pipeline`.
void registerLowerToLLVMPipelines();

/// The canonicalizer of kernels whose loops are written out.
std::unique_ptr<Pass> createKernelCanonicalizerPass();

/// `convert-scf-to-cf` and `convert-gpu-to-nvvm` without the record that a
/// conversion keeps to take patterns back. Their patterns do not fail after
/// they have changed the IR.
std::unique_ptr<Pass> createStructuredToBranchesPass();
std::unique_ptr<Pass> createKernelToNVVMPass();

/// Inlines all calls and canonicalizes functions, with the patterns that
/// `linattn-canonicalize` shares.
void addInliner(OpPassManager &pm);

} // namespace mlir::linattn

#endif // LINATTN_LOWERTOLLVM_LOWERTOLLVM_H
