//===- DeviceCode.h - Kernels of a GPU, through the runner ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_COMPILER_DEVICECODE_H
#define LINATTN_LIB_COMPILER_DEVICECODE_H

#include "ObjectCache.h"
#include "linattn-c/Runner.h"
#include "linattn/Compiler/Kernel.h"

#include <map>
#include <mutex>

namespace linattn::detail {

struct Source;

/// Fills in the target: the chip that LINATTN_CHIP names, or that of the
/// current device with its architecture-specific instructions ("sm_90a"), and
/// for hints that are 0 the numbers that the driver reports.
llvm::Error describeDevice(CompilerOptions &options);

/// Compiles a function into a bundle, with machine code if there is a ptxas:
/// the program that LINATTN_PTXAS names, or the one in PATH.
llvm::Expected<CompiledCode> compileForDevice(const Source &source);

/// A bundle that has been loaded. May be used from several threads.
class DeviceCode {
public:
  static llvm::Expected<std::unique_ptr<DeviceCode>>
  load(llvm::StringRef bundle);
  ~DeviceCode();

  llvm::Expected<llvm::SmallVector<Kernel::Shape, 2>>
  computeShapes(const Signature &signature,
                llvm::ArrayRef<BufferView> inputs) const;
  /// Loads the kernel into the current context as well.
  llvm::Expected<size_t> getWorkspaceSize(llvm::ArrayRef<BufferView> inputs,
                                          llvm::ArrayRef<BufferView> outputs);
  llvm::Error run(llvm::ArrayRef<BufferView> inputs,
                  llvm::ArrayRef<BufferView> outputs,
                  const RunOptions &options);

private:
  explicit DeviceCode(linattn_kernel *kernel) : kernel(kernel) {}

  linattn_kernel *kernel;
  struct Workspace {
    void *memory = nullptr;
    size_t bytes = 0;
  };
  std::mutex mutex;
  /// By device and stream. Every device has a default stream. Launches in one
  /// stream are ordered; those in two are not.
  std::map<std::pair<int32_t, void *>, Workspace> workspaces;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_DEVICECODE_H
