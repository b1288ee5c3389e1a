//===- FakeDriver.cpp - A CUDA driver that watches ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kInvalidValue = 1, kInvalidContext = 201, kInvalidPtx = 218,
              kNotFound = 500, kIllegalAddress = 700;
constexpr int kNoSharedAttribute = 8;

struct Error {
  int result;
  const char *name, *text;
};
constexpr Error kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
};

struct Kernel {
  std::string name;
  /// Bytes of each parameter.
  std::vector<unsigned> parameters;
  std::atomic<int> shared{48 * 1024};
};

struct Module {
  std::map<std::string, Kernel> kernels;
  bool isCubin = false;
};

struct Context {
  unsigned long long id;
  int device = 0;
};

struct Failure {
  int result, skip;
};

/// Everything the library knows. Never destroyed: threads may outlive it.
struct State {
  std::mutex mutex;
  std::vector<std::string> calls, complaints;
  std::map<std::string, Failure> failures;
  std::map<int, Context> contexts;
  std::set<Module *> modules;
  std::map<uint64_t, size_t> memory;
  int major = 9, minor = 0, shared = 227 * 1024;
};

State &state() {
  static auto *it = new State;
  return *it;
}

std::atomic<bool> recording{true};
thread_local std::vector<Context *> contextStack;

/// Notes a call; returns what it must fail with, or 0.
int enter(const char *function, const std::string &details = "") {
  if (!recording)
    return 0;
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.calls.push_back(function + (details.empty() ? "" : " " + details));
  auto it = s.failures.find(function);
  if (it == s.failures.end() || it->second.skip-- > 0)
    return 0;
  int result = it->second.result;
  s.failures.erase(it);
  return result;
}

void complain(const std::string &what) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.complaints.push_back(what);
}

/// Whether the thread has a context; every call but a few needs one.
bool hasContext(const char *function) {
  if (!contextStack.empty() && contextStack.back())
    return true;
  complain(std::string(function) + " without a context");
  return false;
}

std::string join(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// Bytes of a parameter, from ".param .u64 .ptr .global .align 16 name".
unsigned getParameterBytes(const std::string &declaration) {
  for (const char *type : {".u64", ".s64", ".b64", ".f64"})
    if (declaration.find(type) != std::string::npos)
      return 8;
  for (const char *type : {".u32", ".s32", ".b32", ".f32"})
    if (declaration.find(type) != std::string::npos)
      return 4;
  for (const char *type : {".u16", ".s16", ".b16"})
    if (declaration.find(type) != std::string::npos)
      return 2;
  return 1;
}

/// Every ".entry name( .param …, .param … )" of some PTX.
void readEntries(const std::string &ptx, Module &module) {
  const std::string keyword = ".entry ";
  for (size_t at = ptx.find(keyword); at != std::string::npos;
       at = ptx.find(keyword, at + 1)) {
    size_t begin = at + keyword.size(), open = ptx.find('(', begin);
    size_t close = ptx.find(')', open);
    Kernel &kernel = module.kernels[ptx.substr(begin, open - begin)];
    kernel.name = ptx.substr(begin, open - begin);
    std::stringstream list(ptx.substr(open + 1, close - open - 1));
    for (std::string item; std::getline(list, item, ',');)
      if (item.find(".param") != std::string::npos)
        kernel.parameters.push_back(getParameterBytes(item));
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

void fakeCudaReset(void) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.calls.clear();
  s.complaints.clear();
  s.failures.clear();
  s.major = 9;
  s.minor = 0;
  s.shared = 227 * 1024;
  recording = true;
}

const char *fakeCudaCalls(void) {
  static thread_local std::string text;
  std::lock_guard<std::mutex> lock(state().mutex);
  text = join(state().calls);
  return text.c_str();
}

const char *fakeCudaComplaints(void) {
  static thread_local std::string text;
  std::lock_guard<std::mutex> lock(state().mutex);
  text = join(state().complaints);
  return text.c_str();
}

void fakeCudaFail(const char *function, int result, int skip) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().failures[function] = {result, skip};
}

void fakeCudaSetDevice(int major, int minor, int sharedBytes) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().major = major;
  state().minor = minor;
  state().shared = sharedBytes;
}

static Context *getContext(int number) {
  std::lock_guard<std::mutex> lock(state().mutex);
  auto [it, isNew] = state().contexts.try_emplace(number);
  // Others read it without the lock.
  if (isNew)
    it->second.id = 1000 + number;
  return &it->second;
}

void fakeCudaSetContext(int number) {
  contextStack.clear();
  if (number != 0)
    contextStack.push_back(getContext(number));
}

void fakeCudaRecord(int on) { recording = on != 0; }

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

extern "C" {

int cuInit(unsigned flags) { return enter("cuInit", std::to_string(flags)); }

int cuGetErrorName(int result, const char **text) {
  for (const Error &error : kErrors)
    if (error.result == result)
      return *text = error.name, 0;
  return kInvalidValue;
}

int cuGetErrorString(int result, const char **text) {
  for (const Error &error : kErrors)
    if (error.result == result)
      return *text = error.text, 0;
  return kInvalidValue;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return enter("cuDeviceGet", std::to_string(ordinal));
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const State &s = state();
  *value = attribute == 75   ? s.major
           : attribute == 76 ? s.minor
           : attribute == 97 ? s.shared
           : attribute == 16 ? 132
           : attribute == 36 ? 2619000 // kHz, of HBM3 beside an H100.
           : attribute == 37 ? 5120
                             : 0;
  return enter("cuDeviceGetAttribute", std::to_string(attribute));
}

int cuDevicePrimaryCtxRetain(Context **context, int device) {
  *context = getContext(-1 - device);
  (*context)->device = device;
  return enter("cuDevicePrimaryCtxRetain", std::to_string(device));
}

// The three that every launch calls say nothing, unless they are to fail.
int cuCtxGetCurrent(Context **context) {
  *context = contextStack.empty() ? nullptr : contextStack.back();
  if (!recording)
    return 0;
  std::lock_guard<std::mutex> lock(state().mutex);
  auto it = state().failures.find("cuCtxGetCurrent");
  return it == state().failures.end() ? 0 : it->second.result;
}

int cuCtxGetId_(Context *context, unsigned long long *id) {
  *id = context->id;
  return 0;
}

int cuCtxGetDevice(int *device) {
  bool has = hasContext("cuCtxGetDevice");
  *device = has ? contextStack.back()->device : 0;
  return has ? 0 : kInvalidContext;
}

int cuCtxPushCurrent_v2(Context *context) {
  int result = enter("cuCtxPushCurrent");
  if (result == 0)
    contextStack.push_back(context);
  return result;
}

int cuCtxPopCurrent_v2(Context **context) {
  int result = enter("cuCtxPopCurrent");
  if (contextStack.empty())
    return kInvalidContext;
  *context = contextStack.back();
  contextStack.pop_back();
  return result;
}

int cuModuleLoadDataEx(Module **module, const void *image, unsigned numOptions,
                       int *options, void **values) {
  const char *text = static_cast<const char *>(image);
  bool isCubin = std::memcmp(text, "\177ELF", 4) == 0;
  int result = enter("cuModuleLoadDataEx", isCubin ? "cubin" : "ptx");
  if (!hasContext("cuModuleLoadDataEx"))
    return kInvalidContext;
  auto read = std::make_unique<Module>();
  read->isCubin = isCubin;
  // Machine code is not read: any kernel with any parameters is in it.
  if (!isCubin)
    readEntries(text, *read);
  if (result == 0 && !isCubin && read->kernels.empty())
    result = kInvalidPtx;
  if (result == 0) {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().modules.insert(read.get());
    *module = read.release();
    return 0;
  }
  // The error log, as long as its buffer.
  for (unsigned i = 0; i + 1 < numOptions; ++i)
    if (options[i] == 5)
      std::strncpy(static_cast<char *>(values[i]),
                   "ptxas fatal : a fake driver was told to fail",
                   reinterpret_cast<uintptr_t>(values[i + 1]));
  return result;
}

int cuModuleUnload(Module *module) {
  int result = enter("cuModuleUnload");
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().modules.erase(module) == 0)
    state().complaints.push_back("cuModuleUnload of no module");
  else
    delete module;
  return result;
}

int cuModuleGetFunction(Kernel **kernel, Module *module, const char *name) {
  int result = enter("cuModuleGetFunction", name);
  if (module->isCubin)
    module->kernels[name].name = name;
  auto it = module->kernels.find(name);
  if (it == module->kernels.end())
    return kNotFound;
  *kernel = &it->second;
  return result;
}

int cuFuncSetAttribute(Kernel *kernel, int attribute, int value) {
  int result = enter("cuFuncSetAttribute",
                     std::to_string(attribute) + " " + std::to_string(value));
  if (attribute == kNoSharedAttribute && value > state().shared)
    return kInvalidValue;
  if (attribute == kNoSharedAttribute)
    kernel->shared = value;
  return result;
}

static void checkLaunch(const Kernel &kernel, const unsigned (&size)[6],
                        unsigned sharedBytes) {
  auto wrong = [&](const char *what) { complain(kernel.name + ": " + what); };
  if (size[0] == 0 || size[1] == 0 || size[2] == 0)
    wrong("an empty grid");
  if (size[0] > 2147483647u || size[1] > 65535 || size[2] > 65535)
    wrong("a grid beyond the limits");
  uint64_t threads = uint64_t(size[3]) * size[4] * size[5];
  if (threads == 0 || threads > 1024)
    wrong("a block beyond the limits");
  if (static_cast<int>(sharedBytes) > kernel.shared)
    wrong("more shared memory than requested");
}

/// FAKE_CUDA_HANG and FAKE_CUDA_POISON name kernels, for programs that tests
/// cannot reach into: one never returns, after the other nothing works.
static bool isNamedBy(const char *variable, const Kernel &kernel) {
  const char *name = std::getenv(variable);
  return name && kernel.name.find(name) != std::string::npos;
}

std::atomic<bool> isPoisoned{false};

int cuLaunchKernel(Kernel *kernel, unsigned gridX, unsigned gridY,
                   unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned sharedBytes, void *stream,
                   void **parameters, void **extra) {
  if (!recording)
    return 0;
  while (isNamedBy("FAKE_CUDA_HANG", *kernel))
    std::this_thread::sleep_for(std::chrono::seconds(1));
  if (isNamedBy("FAKE_CUDA_POISON", *kernel))
    isPoisoned = true;
  if (isPoisoned)
    return kIllegalAddress;
  std::ostringstream text;
  text << kernel->name << " grid " << gridX << " " << gridY << " " << gridZ
       << " block " << blockX << " " << blockY << " " << blockZ << " shared "
       << sharedBytes << " stream " << std::hex
       << reinterpret_cast<uintptr_t>(stream) << " args";
  for (size_t i = 0; i < kernel->parameters.size(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, parameters[i], kernel->parameters[i]);
    text << " " << bits;
  }
  int result = enter("cuLaunchKernel", text.str());
  if (!hasContext("cuLaunchKernel"))
    return kInvalidContext;
  checkLaunch(*kernel, {gridX, gridY, gridZ, blockX, blockY, blockZ},
              sharedBytes);
  if (extra)
    complain("cuLaunchKernel with extra");
  return result;
}

int cuMemAlloc_v2(uint64_t *memory, size_t bytes) {
  int result = enter("cuMemAlloc", std::to_string(bytes));
  if (!hasContext("cuMemAlloc"))
    return kInvalidContext;
  if (result != 0 || bytes == 0)
    return result ? result : kInvalidValue;
  void *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(data, 0, bytes);
  auto address = reinterpret_cast<uintptr_t>(data);
  std::lock_guard<std::mutex> lock(state().mutex);
  state().memory[address] = bytes;
  *memory = address;
  return 0;
}

int cuMemFree_v2(uint64_t memory) {
  int result = enter("cuMemFree");
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().memory.erase(memory) == 0) {
    state().complaints.push_back("cuMemFree of no memory");
    return kInvalidValue;
  }
  std::free(reinterpret_cast<void *>(memory));
  return result;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  int result = enter("cuMemcpyHtoD", std::to_string(bytes));
  if (result == 0)
    std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return result;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  int result = enter("cuMemcpyDtoH", std::to_string(bytes));
  if (result == 0)
    std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return result;
}

// No launch may call these; they are here so that a call would be seen.
int cuStreamSynchronize(void *stream) {
  int result = enter("cuStreamSynchronize");
  return isPoisoned ? kIllegalAddress : result;
}
int cuCtxSynchronize(void) { return enter("cuCtxSynchronize"); }

/// Knows what is newer than the names above; FAKE_CUDA_PROC=off makes it a
/// driver that does not know it.
int cuGetProcAddress_v2(const char *name, void **function, int version,
                        uint64_t flags, int *status) {
  *function = nullptr;
  const char *setting = std::getenv("FAKE_CUDA_PROC");
  if (setting && std::strcmp(setting, "off") == 0)
    return kNotFound;
  if (std::strcmp(name, "cuCtxGetId") == 0)
    *function = reinterpret_cast<void *>(&cuCtxGetId_);
  return *function ? 0 : kNotFound;
}

} // extern "C"
