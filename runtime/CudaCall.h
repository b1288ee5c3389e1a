//===- CudaCall.h - One call of a kernel on the GPU -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_CUDACALL_H
#define LINATTN_RUNTIME_CUDACALL_H

#include "Bundle.h"
#include "Driver.h"
#include "Kernel.h"

#include <cstdint>
#include <string>
#include <vector>

namespace linattn::runner {

/// A kernel in one context. Immutable.
struct LoadedKernel {
  uint64_t key = 0;
  CUcontext context = nullptr;
  const Variant *variant = nullptr;
  std::vector<CUmodule> modules;
  /// The function of each launch.
  std::vector<CUfunction> functions;
  /// For each buffer the address of its constants, or 0.
  std::vector<CUdeviceptr> constants;
  const LoadedKernel *next = nullptr;

  /// Frees it in its own context.
  void release(const Driver &driver) const {
    for (CUmodule module : modules)
      driver.cuModuleUnload(module);
    for (CUdeviceptr memory : constants)
      if (memory != 0)
        driver.cuMemFree(memory);
  }
};

/// One call of a kernel: places its buffers and launches its program.
class CudaCall {
public:
  CudaCall(const Bundle &bundle, const LoadedKernel &entry,
           const linattn_view *views);

  size_t getWorkspaceSize() const { return workspaceBytes; }

  void setWorkspace(void *workspace, size_t bytes);

  void run(const Driver &driver, CUstream stream) {
    runRange(driver, stream, 0, variant.launches.size(), 0,
             variant.loops.size());
  }

private:
  void runRange(const Driver &driver, CUstream stream, size_t launch,
                size_t lastLaunch, size_t loop, size_t lastLoop);
  void run(const Driver &driver, const Launch &launch, CUfunction function,
           CUstream stream);

  /// Places the buffers of the workspace.
  void placeBuffers();

  uint64_t getSize(const Buffer &buffer);

  uint64_t getArgument(const KernelArgument &argument);
  uint64_t getPointer(const KernelArgument &argument);
  unsigned getExtent(const Launch &launch, const char *what, int axis,
                     int64_t value, int64_t most);

  const Bundle &bundle;
  const Variant &variant;
  const LoadedKernel &entry;
  const linattn_view *views;
  StackArray<int64_t, 512> values;
  /// Offsets of the buffers in the workspace.
  StackArray<uint64_t, 32> offsets;
  uint64_t workspaceBytes = 0, workspaceBase = 0;
};

} // namespace linattn::runner

#endif // LINATTN_RUNTIME_CUDACALL_H
