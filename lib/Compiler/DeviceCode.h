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

/// Fills in what code is made for: the chip, what LINATTN_CHIP names or that of
/// the current device, with the instructions that it alone has ("sm_90a"), and,
/// of the hints that are 0, what the driver says of the device.
llvm::Error describeDevice(CompilerOptions &options);

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
  /// By device and stream, of which each has a default one. Launches in one
  /// stream follow one another, those of two may not.
  std::map<std::pair<int32_t, void *>, Workspace> workspaces;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_DEVICECODE_H
