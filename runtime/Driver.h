//===- Driver.h - The CUDA driver -------------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The entry points of the driver that the runner calls, declared here: neither
// a toolkit nor its stub is needed to build, and no driver to start.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_DRIVER_H
#define LINATTN_RUNTIME_DRIVER_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace linattn::runner {

using CUresult = int;
using CUdevice = int;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUdeviceptr = uint64_t;

/// Name, parameters, and whether the function is optional.
#define LINATTN_CUDA_FUNCTIONS(X)                                              \
  X(cuInit, (unsigned flags), false)                                           \
  X(cuDeviceGet, (CUdevice * device, int ordinal), false)                      \
  X(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device), false) \
  X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), false)   \
  X(cuCtxGetCurrent, (CUcontext * context), false)                             \
  X(cuCtxPushCurrent, (CUcontext context), false)                              \
  X(cuCtxPopCurrent, (CUcontext * context), false)                             \
  X(cuCtxGetDevice, (CUdevice * device), false)                                \
  X(cuCtxGetId, (CUcontext context, unsigned long long *id), true)             \
  X(cuModuleLoadDataEx,                                                        \
    (CUmodule * module, const void *image, unsigned numOptions, int *options,  \
     void **values),                                                           \
    false)                                                                     \
  X(cuModuleUnload, (CUmodule module), false)                                  \
  X(cuModuleGetFunction,                                                       \
    (CUfunction * function, CUmodule module, const char *name), false)         \
  X(cuFuncSetAttribute, (CUfunction function, int attribute, int value),       \
    false)                                                                     \
  X(cuLaunchKernel,                                                            \
    (CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,      \
     unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,  \
     CUstream stream, void **parameters, void **extra),                        \
    false)                                                                     \
  X(cuStreamSynchronize, (CUstream stream), false)                             \
  X(cuMemAlloc, (CUdeviceptr * memory, size_t bytes), false)                   \
  X(cuMemFree, (CUdeviceptr memory), false)                                    \
  X(cuMemcpyHtoD, (CUdeviceptr to, const void *from, size_t bytes), false)     \
  X(cuMemcpyDtoH, (void *to, CUdeviceptr from, size_t bytes), false)           \
  X(cuGetErrorName, (CUresult result, const char **text), false)               \
  X(cuGetErrorString, (CUresult result, const char **text), false)

struct Driver {
  /// The driver of this process, opened and initialised by the first call.
  /// Throws a Failure, every time, if there is none.
  static const Driver &get();

#define LINATTN_DECLARE(name, parameters, optional) CUresult(*name) parameters;
  LINATTN_CUDA_FUNCTIONS(LINATTN_DECLARE)
#undef LINATTN_DECLARE

  /// Throws unless `result` is success. `call` names the entry point, `log`
  /// holds the driver's further output.
  void check(CUresult result, const char *call,
             const std::string &log = "") const {
    if (result != 0)
      report(result, call, log);
  }

private:
  [[noreturn]] void report(CUresult result, const char *call,
                           const std::string &log) const;
};

/// The primary context of a device, retained at first use for as long as the
/// process lives.
CUcontext getPrimaryContext(const Driver &driver, int ordinal);

/// The current context for a scope: the thread's own, or the primary one of
/// device 0 if the thread has none.
class ContextScope {
public:
  explicit ContextScope(const Driver &driver);
  ~ContextScope();
  ContextScope(const ContextScope &) = delete;

  CUcontext getContext() const { return context; }
  /// Identifies the context, where the driver supports it even among contexts
  /// that were created at the same address.
  uint64_t getKey() const { return key; }

private:
  const Driver &driver;
  CUcontext context = nullptr;
  bool pushed = false;
  uint64_t key = 0;
};

} // namespace linattn::runner

#endif // LINATTN_RUNTIME_DRIVER_H
