//===- Kernel.h - Compiled functions ----------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_COMPILER_KERNEL_H
#define LINATTN_COMPILER_KERNEL_H

#include "linattn/CodeGen/Signature.h"
#include "linattn/Compiler/BufferView.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace linattn {

namespace detail {
class KernelImpl;
} // namespace detail

struct RunOptions {
  /// Threads for this call; 0 means the process's setting. Results do not
  /// depend on it.
  int32_t numThreads = 0;
  /// When a call on the CPU ends with an `InterruptedError` unless it is done.
  /// The default is the deadline of the thread, if there is one
  /// (`linattn_set_thread_local_deadline`).
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  /// For a kernel of a GPU: the CUstream of the launch, null for the default
  /// one. `run` does not wait for it.
  void *stream = nullptr;
  /// Device memory of at least `workspaceSize` bytes, aligned to 256, in use
  /// until the launch has run. If null, the kernel keeps a workspace of its own
  /// per stream, and allocates where that is too small.
  void *workspace = nullptr;
  size_t workspaceBytes = 0;
};

/// A compiled function. Copies share the code; all members may be called from
/// several threads at once.
class Kernel {
public:
  using Shape = llvm::SmallVector<int64_t, 4>;

  explicit Kernel(std::shared_ptr<detail::KernelImpl> impl)
      : impl(std::move(impl)) {}

  const Signature &signature() const;

  /// The shapes that the results will have for these inputs.
  llvm::Expected<llvm::SmallVector<Shape, 2>>
  resultShapes(llvm::ArrayRef<BufferView> inputs) const;

  /// Whether views are of device memory. That holds for all arguments but
  /// scalars of a kernel for a GPU.
  bool isForDevice() const;

  /// Bytes of device memory that a call with these views needs as workspace; 0
  /// for a CPU. Also loads the kernel into the current context, so that a later
  /// call may be captured in a graph.
  llvm::Expected<size_t>
  workspaceSize(llvm::ArrayRef<BufferView> inputs,
                llvm::ArrayRef<BufferView> outputs) const;

  /// Runs the function. The outputs, one per result, must have the shapes that
  /// `resultShapes` returns and share no element with any other view, except
  /// that a result may be the very view of the argument that it updates
  /// (`ValueInfo::inPlaceOf`). Anything that does not fit is an error that
  /// names the argument, and nothing has run. An `OutOfMemoryError` says that
  /// there was no memory for the function's workspace, an `InterruptedError`
  /// that the call was ended: the outputs, also those that update an argument,
  /// then have unspecified contents.
  llvm::Error run(llvm::ArrayRef<BufferView> inputs,
                  llvm::ArrayRef<BufferView> outputs,
                  const RunOptions &options = {}) const;

  /// The names of the stages that `mlir` takes, in order: "input", every pass
  /// of the high-level pipeline that changed something, "llvm".
  llvm::Expected<std::vector<std::string>> stages() const;

  /// The IR at a stage. The first question compiles the source once more; its
  /// stages stay with the kernel.
  llvm::Expected<std::string> mlir(llvm::StringRef stage = "input") const;

  /// The optimised code in LLVM IR, and in the machine's assembly language.
  llvm::Expected<std::string> llvmIR() const;
  llvm::Expected<std::string> assembly() const;

  /// The compiler's decisions and their reasons, a line per remark.
  const std::vector<std::string> &explain() const;
  /// The decisions, and the costs of the layouts of these inputs, which must
  /// fit the signature.
  llvm::Expected<std::vector<std::string>>
  explain(llvm::ArrayRef<BufferView> inputs) const;

private:
  std::shared_ptr<detail::KernelImpl> impl;
};

} // namespace linattn

#endif // LINATTN_COMPILER_KERNEL_H
