//===- CpuKernel.cpp - Kernels on the CPU ---------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Failure.h"
#include "Kernel.h"
#include "linattn-c/Runtime.h"
#include "linattn/Support/Sizes.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace linattn;
using namespace linattn::runner;

namespace {

/// A file that is deleted when it is closed.
class ImageFile {
public:
  explicit ImageFile(std::string_view image) {
    descriptor = memfd_create("linattn-kernel", MFD_CLOEXEC);
    path = "/proc/self/fd/" + std::to_string(descriptor);
    // Some systems lack files in memory, or a /proc that names them.
    if (descriptor < 0 || access(path.c_str(), R_OK) != 0)
      useFolder();
    write(image);
  }
  ~ImageFile() {
    if (descriptor >= 0)
      close(descriptor);
    if (isNamed)
      unlink(path.c_str());
  }
  ImageFile(const ImageFile &) = delete;

  const char *getPath() const { return path.c_str(); }

private:
  void useFolder() {
    if (descriptor >= 0)
      close(descriptor);
    const char *folder = std::getenv("TMPDIR");
    path = std::string(folder && *folder ? folder : "/tmp") + "/linattnXXXXXX";
    descriptor = mkstemp(path.data());
    if (descriptor < 0)
      fail(path + ": no file for a kernel: " + std::strerror(errno));
    isNamed = true;
  }

  void write(std::string_view image) {
    while (!image.empty()) {
      ssize_t written = ::write(descriptor, image.data(), image.size());
      if (written < 0)
        fail(path + ": cannot be written: " + std::strerror(errno));
      image.remove_prefix(static_cast<size_t>(written));
    }
  }

  int descriptor = -1;
  bool isNamed = false;
  std::string path;
};

/// A shared library in memory. Several may be loaded at once.
class Library {
public:
  explicit Library(std::string_view image);
  ~Library() {
    if (handle)
      dlclose(handle);
  }
  Library(const Library &) = delete;

  void *find(const char *symbol) const {
    void *address = dlsym(handle, symbol);
    if (!address)
      fail(std::string("malformed bundle: its code lacks ") + symbol);
    return address;
  }

private:
  /// Sets a pointer of the library.
  template <typename Function>
  void set(const char *symbol, Function *function) {
    *static_cast<Function **>(find(symbol)) = function;
  }

  /// The loader identifies a library by its name, and the name of a closed
  /// descriptor may become that of another image.
  ImageFile file;
  void *handle = nullptr;
};

class CpuKernel final : public linattn_kernel {
public:
  explicit CpuKernel(Bundle parsed);

  void prepare() override {}
  size_t getWorkspaceSize(CallViews &) const override { return 0; }
  void launch(CallViews &views, void *workspace, size_t workspaceBytes,
              void *stream) const override;

private:
  std::unique_ptr<Library> library;
  void (*run)(void **arguments);
};

} // namespace

Library::Library(std::string_view image) : file(image) {
  // The code calls libm without naming the library.
  static void *math = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  (void)math;
  handle = dlopen(file.getPath(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *why = dlerror();
    fail(std::string("the code of the bundle cannot be loaded: ") +
         (why ? why : "no reason"));
  }
  set("linattn_host_parallel_for", &linattn_parallel_for);
  set("linattn_host_allocate", &linattn_allocate);
  set("linattn_host_free", &linattn_free);
  set("linattn_host_poll", &linattn_poll);
  set("linattn_host_poll_flag", linattn_get_poll_flag());
}

//===----------------------------------------------------------------------===//
// The code for this machine
//===----------------------------------------------------------------------===//

/// The level of x86-64 of this machine, the last digit of its name. AArch64 has
/// one level.
static int getLevel() {
#if defined(__aarch64__)
  return 1;
#elif defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    return 4;
  if (__builtin_cpu_supports("x86-64-v3"))
    return 3;
  return __builtin_cpu_supports("x86-64-v2") ? 2 : 1;
#else
  return 0;
#endif
}

static int getLevel(const std::string &chip) {
#if defined(__aarch64__)
  return chip == "aarch64" ? 1 : INT32_MAX;
#else
  bool isLevel = chip.size() == 9 && chip.compare(0, 8, "x86-64-v") == 0;
  return isLevel ? chip[8] - '0' : INT32_MAX;
#endif
}

static std::string describeMachine() {
#if defined(__aarch64__)
  return "aarch64";
#else
  return "x86-64-v" + std::to_string(getLevel());
#endif
}

static const Variant &choose(const Bundle &bundle) {
  const Variant *best = nullptr;
  std::string known;
  int level = getLevel();
  for (const Variant &variant : bundle.variants) {
    known += (known.empty() ? "" : ", ") + variant.chip;
    int needed = getLevel(variant.chip);
    if (needed <= level && (!best || needed > getLevel(best->chip)))
      best = &variant;
  }
  if (!best)
    fail("'" + bundle.entry + "': expected a CPU for " + known + ", but got " +
         describeMachine());
  return *best;
}

CpuKernel::CpuKernel(Bundle parsed) : linattn_kernel(std::move(parsed)) {
  const Variant &variant = choose(bundle);
  library = std::make_unique<Library>(variant.image);
  run = reinterpret_cast<void (*)(void **)>(
      library->find(variant.symbol.c_str()));
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Compiled code may test the lowest bit of a mask's byte or all of them, so
/// that values other than 0 and 1 are refused.
static bool hasOnlyZerosAndOnes(const linattn_view &view, int32_t dim,
                                const uint8_t *data) {
  if (dim == view.rank)
    return *data <= 1;
  for (int64_t i = 0; i < view.shape[dim]; ++i)
    if (!hasOnlyZerosAndOnes(view, dim + 1, data + i * view.strides[dim]))
      return false;
  return true;
}

void CpuKernel::launch(CallViews &views, void *, size_t, void *stream) const {
  if (stream)
    fail("'" + bundle.entry + "': expected no stream for a kernel on the CPU");
  if (const char *problem = linattn_get_num_threads_problem())
    fail(problem);
  size_t count = bundle.operands.size(), numFields = 0;
  for (const Operand &operand : bundle.operands)
    numFields += 3 + 2 * operand.shape.size();
  StackArray<int64_t, 256> fields(numFields);
  StackArray<void *, 32> arguments(count);
  int64_t *next = fields.get();
  for (size_t i = 0; i < count; ++i) {
    const linattn_view &view = views.get()[i];
    if (i < bundle.numArguments && view.dtype == LINATTN_I1 &&
        !hasOnlyZerosAndOnes(view, 0, static_cast<uint8_t *>(view.data)))
      fail(describeOperand(bundle, i) +
           ": expected bytes of 0 and 1, but got others");
    if (bundle.operands[i].isScalar) {
      arguments[i] = view.data;
      continue;
    }
    // Allocated and aligned pointer, offset, extents, strides.
    arguments[i] = next;
    *next++ = reinterpret_cast<intptr_t>(view.data);
    *next++ = reinterpret_cast<intptr_t>(view.data);
    *next++ = 0;
    next = std::copy(view.shape, view.shape + view.rank, next);
    next = std::copy(view.strides, view.strides + view.rank, next);
    // Code may assume a unit stride for extents of 0 and 1, too.
    if (view.rank > 0)
      next[-1] = 1;
  }
  linattn_call_result result = linattn_call(run, arguments.get());
  if (result.status == LINATTN_CALL_OUT_OF_MEMORY)
    throw MemoryFailure("'" + bundle.entry +
                        "': " + describeMissingMemory(result.bytes));
  if (result.status != LINATTN_CALL_DONE) {
    bool timedOut = result.status == LINATTN_CALL_TIMED_OUT;
    throw InterruptedFailure(
        "'" + bundle.entry +
            "': " + (timedOut ? "ended by its deadline" : "interrupted") +
            " before it was done",
        timedOut);
  }
}

std::unique_ptr<linattn_kernel>
linattn::runner::createCpuKernel(Bundle bundle) {
  return std::make_unique<CpuKernel>(std::move(bundle));
}
