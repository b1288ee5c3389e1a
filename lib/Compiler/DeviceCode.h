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

/// The name of the current device, "sm_90", for code that is made for it.
llvm::Expected<std::string> getCurrentChip();

/// Compiles a function into a bundle, with machine code where there is a ptxas:
/// what LINATTN_PTXAS names, or the one in PATH.
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
  /// Launches in one stream follow one another, those of two may not.
  std::map<void *, Workspace> workspaces;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_DEVICECODE_H
