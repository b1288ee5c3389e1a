//===- Driver.cpp - The CUDA driver ---------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "Failure.h"

#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>

using namespace linattn::runner;

namespace {

/// The version of CUDA whose entry points are used: the oldest driver that
/// loads our PTX.
constexpr int kCudaVersion = 12000;

using GetProcAddress = CUresult (*)(const char *name, void **function,
                                    int version, uint64_t flags);
using GetProcAddressV2 = CUresult (*)(const char *name, void **function,
                                      int version, uint64_t flags, int *status);

/// Finds entry points in an open library.
class Finder {
public:
  explicit Finder(void *library)
      : library(library), modern(reinterpret_cast<GetProcAddressV2>(
                              dlsym(library, "cuGetProcAddress_v2"))),
        old(reinterpret_cast<GetProcAddress>(
            dlsym(library, "cuGetProcAddress"))) {}

  void *find(const char *name) const {
    void *found = nullptr;
    int status = 0;
    if (modern && modern(name, &found, kCudaVersion, 0, &status) == 0 && found)
      return found;
    if (old && old(name, &found, kCudaVersion, 0) == 0 && found)
      return found;
    // Newer variants of functions have a suffix.
    found = dlsym(library, (std::string(name) + "_v2").c_str());
    return found ? found : dlsym(library, name);
  }

private:
  void *library;
  GetProcAddressV2 modern;
  GetProcAddress old;
};

std::string openDriver(Driver &driver) {
  const char *named = std::getenv("LINATTN_CUDA_DRIVER");
  const char *path = named && *named ? named : "libcuda.so.1";
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return std::string("no CUDA driver: expected to open ") + path +
           ", but got: " + (why ? why : "no reason");
  }
  Finder finder(library);
#define LINATTN_FIND(name, parameters, optional)                               \
  driver.name = reinterpret_cast<CUresult(*) parameters>(finder.find(#name));  \
  if (!driver.name && !optional)                                               \
    return std::string("the CUDA driver is too old: expected ") + path +       \
           " to have " #name;
  LINATTN_CUDA_FUNCTIONS(LINATTN_FIND)
#undef LINATTN_FIND
  try {
    driver.check(driver.cuInit(0), "cuInit");
  } catch (const Failure &failure) {
    return failure.what();
  }
  return "";
}

} // namespace

const Driver &Driver::get() {
  static Driver driver;
  static const std::string problem = openDriver(driver);
  if (!problem.empty())
    fail(problem);
  return driver;
}

void Driver::report(CUresult result, const char *call,
                    const std::string &log) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &name) != 0 || !name)
    name = "an unknown error";
  if (cuGetErrorString(result, &text) != 0 || !text)
    text = "no description";
  std::string message = std::string(call) + ": " + name + " (" +
                        std::to_string(result) + "): " + text;
  if (!log.empty())
    message += "\n" + log;
  constexpr CUresult outOfMemory = 2; // CUDA_ERROR_OUT_OF_MEMORY
  if (result == outOfMemory)
    throw MemoryFailure(message);
  fail(message);
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

CUcontext linattn::runner::getPrimaryContext(const Driver &driver,
                                             int ordinal) {
  static std::mutex mutex;
  static auto *contexts = new std::map<int, CUcontext>;
  std::lock_guard<std::mutex> lock(mutex);
  CUcontext &context = (*contexts)[ordinal];
  if (!context) {
    CUdevice device = 0;
    driver.check(driver.cuDeviceGet(&device, ordinal), "cuDeviceGet");
    driver.check(driver.cuDevicePrimaryCtxRetain(&context, device),
                 "cuDevicePrimaryCtxRetain");
  }
  return context;
}

ContextScope::ContextScope(const Driver &driver) : driver(driver) {
  driver.check(driver.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  if (!context) {
    context = getPrimaryContext(driver, 0);
    driver.check(driver.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    pushed = true;
  }
  unsigned long long id = 0;
  key = driver.cuCtxGetId && driver.cuCtxGetId(context, &id) == 0
            ? id
            : reinterpret_cast<uintptr_t>(context);
}

ContextScope::~ContextScope() {
  CUcontext popped;
  if (pushed)
    driver.cuCtxPopCurrent(&popped);
}
