//===- Runner.cpp - The C functions ---------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn-c/Runner.h"
#include "Driver.h"
#include "Failure.h"
#include "Kernel.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace linattn::runner;

struct linattn_error {
  std::string message;
  linattn_error_kind kind;
};

/// The preallocated error for failing to allocate an error. Never freed.
static linattn_error noMemory{"no memory", LINATTN_ERROR_OUT_OF_MEMORY};

static linattn_error *makeError(const char *message, linattn_error_kind kind) {
  try {
    return new linattn_error{message, kind};
  } catch (const std::bad_alloc &) {
    return &noMemory;
  }
}

/// Runs `body` and turns its exceptions into an error.
template <typename Body>
static linattn_error *guard(Body body) {
  try {
    body();
    return nullptr;
  } catch (const std::bad_alloc &) {
    return &noMemory;
  } catch (const MemoryFailure &failure) {
    return makeError(failure.what(), LINATTN_ERROR_OUT_OF_MEMORY);
  } catch (const InterruptedFailure &failure) {
    return makeError(failure.what(), failure.timedOut
                                         ? LINATTN_ERROR_TIMED_OUT
                                         : LINATTN_ERROR_INTERRUPTED);
  } catch (const std::exception &exception) {
    return makeError(exception.what(), LINATTN_ERROR_OTHER);
  }
}

const char *linattn_error_message(const linattn_error *error) {
  return error->message.c_str();
}

linattn_error_kind linattn_error_get_kind(const linattn_error *error) {
  return error->kind;
}

void linattn_error_free(linattn_error *error) {
  if (error != &noMemory)
    delete error;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

linattn_kernel::linattn_kernel(Bundle parsed) : bundle(std::move(parsed)) {
  for (const Operand &operand : bundle.operands)
    operands.push_back({operand.name.c_str(), operand.shape.data(),
                        static_cast<int32_t>(operand.shape.size()),
                        operand.dtype, operand.isScalar, operand.inPlaceOf});
}

std::unique_ptr<linattn_kernel> linattn_kernel::create(std::string file) {
  Bundle bundle = Bundle::parse(std::move(file));
  return bundle.isCpu ? createCpuKernel(std::move(bundle))
                      : createCudaKernel(std::move(bundle));
}

linattn_error *linattn_kernel_load(const void *data, size_t size,
                                   linattn_kernel **kernel) {
  return guard([&] {
    std::string file(static_cast<const char *>(data), size);
    *kernel = linattn_kernel::create(std::move(file)).release();
  });
}

linattn_error *linattn_kernel_load_file(const char *path,
                                        linattn_kernel **kernel) {
  return guard([&] {
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream file;
    if (stream)
      file << stream.rdbuf();
    // An empty file sets the failbit of `file` only.
    if (!stream)
      fail(std::string(path) + ": cannot be read: " + std::strerror(errno));
    try {
      *kernel = linattn_kernel::create(file.str()).release();
    } catch (const Failure &failure) {
      fail(std::string(path) + ": " + failure.what());
    }
  });
}

void linattn_kernel_free(linattn_kernel *kernel) { delete kernel; }

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

const char *linattn_kernel_target(const linattn_kernel *kernel) {
  return kernel->bundle.isCpu ? "cpu" : "nvvm";
}

const char *linattn_kernel_entry(const linattn_kernel *kernel) {
  return kernel->bundle.entry.c_str();
}

const char *linattn_kernel_manifest(const linattn_kernel *kernel) {
  return kernel->bundle.manifest.c_str();
}

int32_t linattn_kernel_num_arguments(const linattn_kernel *kernel) {
  return static_cast<int32_t>(kernel->bundle.numArguments);
}

int32_t linattn_kernel_num_results(const linattn_kernel *kernel) {
  return static_cast<int32_t>(kernel->operands.size() -
                              kernel->bundle.numArguments);
}

const linattn_operand *linattn_kernel_operand(const linattn_kernel *kernel,
                                              int32_t index) {
  bool exists =
      index >= 0 && static_cast<size_t>(index) < kernel->operands.size();
  return exists ? &kernel->operands[index] : nullptr;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

linattn_error *linattn_kernel_result_shapes(const linattn_kernel *kernel,
                                            const linattn_view *views,
                                            int32_t numViews,
                                            int64_t *extents) {
  return guard([&] {
    CallViews(kernel->bundle, views, numViews, /*onlyArguments=*/true)
        .computeShapes(extents);
  });
}

linattn_error *linattn_kernel_prepare(linattn_kernel *kernel) {
  return guard([&] { kernel->prepare(); });
}

linattn_error *linattn_kernel_workspace_size(const linattn_kernel *kernel,
                                             const linattn_view *views,
                                             int32_t numViews, size_t *bytes) {
  return guard([&] {
    CallViews call(kernel->bundle, views, numViews, /*onlyArguments=*/false);
    StackArray<int64_t, 64> extents(countResultExtents(kernel->bundle));
    call.computeShapes(extents.get());
    *bytes = kernel->getWorkspaceSize(call);
  });
}

linattn_error *linattn_kernel_launch(const linattn_kernel *kernel,
                                     const linattn_view *views,
                                     int32_t numViews, void *workspace,
                                     size_t workspaceBytes, void *stream) {
  return guard([&] {
    CallViews call(kernel->bundle, views, numViews, /*onlyArguments=*/false);
    StackArray<int64_t, 64> extents(countResultExtents(kernel->bundle));
    call.computeShapes(extents.get());
    call.checkResults(extents.get());
    kernel->launch(call, workspace, workspaceBytes, stream);
  });
}

linattn_error *linattn_device_current(int32_t *ordinal, int32_t *major,
                                      int32_t *minor) {
  return guard([&] {
    const Driver &driver = Driver::get();
    ContextScope scope(driver);
    CUdevice device = 0;
    driver.check(driver.cuCtxGetDevice(&device), "cuCtxGetDevice");
    *ordinal = device;
    constexpr int kMajor = 75, kMinor = 76;
    driver.check(driver.cuDeviceGetAttribute(major, kMajor, device),
                 "cuDeviceGetAttribute");
    driver.check(driver.cuDeviceGetAttribute(minor, kMinor, device),
                 "cuDeviceGetAttribute");
  });
}

linattn_error *linattn_device_properties(int32_t *multiprocessors,
                                         int64_t *bandwidth) {
  return guard([&] {
    const Driver &driver = Driver::get();
    ContextScope scope(driver);
    CUdevice device = 0;
    driver.check(driver.cuCtxGetDevice(&device), "cuCtxGetDevice");
    constexpr int kMultiprocessors = 16, kMemoryKilohertz = 36,
                  kMemoryBits = 37;
    auto get = [&](int attribute) {
      int value = 0;
      driver.check(driver.cuDeviceGetAttribute(&value, attribute, device),
                   "cuDeviceGetAttribute");
      return value;
    };
    *multiprocessors = get(kMultiprocessors);
    // Two bits per wire and cycle.
    *bandwidth = int64_t(get(kMemoryKilohertz)) * 1000 * 2 *
                 int64_t(get(kMemoryBits)) / 8;
  });
}

linattn_error *linattn_device_enter(int32_t ordinal, int32_t *entered) {
  return guard([&] {
    const Driver &driver = Driver::get();
    CUcontext context = nullptr;
    CUdevice device = 0;
    *entered = 0;
    driver.check(driver.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    if (context)
      driver.check(driver.cuCtxGetDevice(&device), "cuCtxGetDevice");
    // Without a context, calls select device 0 themselves.
    if (device == ordinal)
      return;
    driver.check(driver.cuCtxPushCurrent(getPrimaryContext(driver, ordinal)),
                 "cuCtxPushCurrent");
    *entered = 1;
  });
}

linattn_error *linattn_device_leave(void) {
  return guard([&] {
    const Driver &driver = Driver::get();
    CUcontext context = nullptr;
    driver.check(driver.cuCtxPopCurrent(&context), "cuCtxPopCurrent");
  });
}

linattn_error *linattn_stream_synchronize(void *stream) {
  return guard([&] {
    const Driver &driver = Driver::get();
    ContextScope scope(driver);
    driver.check(driver.cuStreamSynchronize(static_cast<CUstream>(stream)),
                 "cuStreamSynchronize");
  });
}

linattn_error *linattn_device_allocate(size_t bytes, void **memory) {
  return guard([&] {
    const Driver &driver = Driver::get();
    ContextScope scope(driver);
    CUdeviceptr address = 0;
    // The driver refuses 0 bytes.
    driver.check(driver.cuMemAlloc(&address, bytes ? bytes : 1), "cuMemAlloc",
                 "for " + std::to_string(bytes) + " bytes");
    *memory = reinterpret_cast<void *>(address);
  });
}

linattn_error *linattn_device_free(void *memory) {
  return guard([&] {
    if (!memory)
      return;
    const Driver &driver = Driver::get();
    ContextScope scope(driver);
    driver.check(driver.cuMemFree(reinterpret_cast<uintptr_t>(memory)),
                 "cuMemFree");
  });
}

linattn_error *linattn_device_write(void *memory, const void *from,
                                    size_t bytes) {
  return guard([&] {
    const Driver &driver = Driver::get();
    ContextScope scope(driver);
    if (bytes != 0)
      driver.check(
          driver.cuMemcpyHtoD(reinterpret_cast<uintptr_t>(memory), from, bytes),
          "cuMemcpyHtoD");
  });
}

linattn_error *linattn_device_read(void *to, const void *memory, size_t bytes) {
  return guard([&] {
    const Driver &driver = Driver::get();
    ContextScope scope(driver);
    if (bytes != 0)
      driver.check(
          driver.cuMemcpyDtoH(to, reinterpret_cast<uintptr_t>(memory), bytes),
          "cuMemcpyDtoH");
  });
}
