//===- CudaKernel.cpp - Kernels on the GPU --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaCall.h"
#include "Failure.h"
#include "Kernel.h"

#include <algorithm>
#include <atomic>
#include <mutex>

using namespace linattn;
using namespace linattn::runner;

namespace {

// The values of the driver's enumerations that are used here.
constexpr int kMaxSharedOptin = 97, kMajor = 75, kMinor = 76;
constexpr int kMaxDynamicShared = 8;
constexpr int kInfoLog = 3, kInfoLogBytes = 4, kErrorLog = 5,
              kErrorLogBytes = 6, kOptimization = 7;
/// Shared memory of a block, in bytes, that needs no attribute.
constexpr int64_t kSharedWithoutAsking = 48 * 1024;

/// A device, by the name of its chip.
struct Chip {
  int major = 0, minor = 0;
  /// sm_90a runs on 9.0 only.
  bool isExact = false;

  static Chip parse(const std::string &name) {
    Chip chip;
    if (name.compare(0, 3, "sm_") != 0)
      fail("expected a chip such as sm_90, but got " + name);
    char *end = nullptr;
    long number = std::strtol(name.c_str() + 3, &end, 10);
    chip.major = static_cast<int>(number / 10);
    chip.minor = static_cast<int>(number % 10);
    chip.isExact = *end != '\0';
    return chip;
  }

  /// Whether PTX for this chip can be compiled for a device.
  bool runsOn(const Chip &device) const {
    bool isSame = major == device.major && minor == device.minor;
    bool isOlder = major < device.major ||
                   (major == device.major && minor <= device.minor);
    return isExact ? isSame : isOlder;
  }

  /// Whether its machine code runs on a device.
  bool runsAssembledOn(const Chip &device) const {
    return runsOn(device) && major == device.major;
  }
};

class CudaKernel final : public linattn_kernel {
public:
  explicit CudaKernel(Bundle bundle) : linattn_kernel(std::move(bundle)) {}
  ~CudaKernel() override;

  void prepare() override;
  size_t getWorkspaceSize(CallViews &views) const override;
  void launch(CallViews &views, void *workspace, size_t workspaceBytes,
              void *stream) const override;

private:
  const LoadedKernel *find(uint64_t key) const {
    const LoadedKernel *it = loaded.load(std::memory_order_acquire);
    while (it && it->key != key)
      it = it->next;
    return it;
  }
  const LoadedKernel &findPrepared(const ContextScope &scope) const {
    const LoadedKernel *found = find(scope.getKey());
    if (!found)
      fail("'" + bundle.entry +
           "': expected the kernel to be prepared in this context");
    return *found;
  }

  const Variant &choose(const Chip &device) const;

  std::mutex mutex;
  /// Readers take no mutex: entries are added in front, and none is removed.
  std::atomic<const LoadedKernel *> loaded{nullptr};
};

} // namespace

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

static int getAttribute(const Driver &driver, CUdevice device, int attribute) {
  int value = 0;
  driver.check(driver.cuDeviceGetAttribute(&value, attribute, device),
               "cuDeviceGetAttribute");
  return value;
}

/// The driver's log of a compilation; it may be empty.
static std::string formatLog(const std::string &log) {
  std::string text(log.c_str());
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  return text;
}

static CUresult loadImage(const Driver &driver, const char *image,
                          CUmodule &module, std::string &log) {
  std::string info(8192, '\0'), errors(8192, '\0');
  auto number = [](uintptr_t value) { return reinterpret_cast<void *>(value); };
  int options[] = {kInfoLog, kInfoLogBytes, kErrorLog, kErrorLogBytes,
                   kOptimization};
  void *values[] = {info.data(), number(info.size() - 1), errors.data(),
                    number(errors.size() - 1), number(4)};
  CUresult result =
      driver.cuModuleLoadDataEx(&module, image, 5, options, values);
  log = formatLog(errors);
  if (log.empty())
    log = formatLog(info);
  return result;
}

/// The machine code for this device if the bundle has it, else the PTX.
static CUmodule loadModule(const Driver &driver, const Module &module,
                           const Chip &chip, const Chip &device) {
  CUmodule handle = nullptr;
  std::string log;
  if (!module.cubin.empty() && chip.runsAssembledOn(device) &&
      loadImage(driver, module.cubin.data(), handle, log) == 0)
    return handle;
  CUresult result = loadImage(driver, module.ptx.data(), handle, log);
  driver.check(result, "cuModuleLoadDataEx", log);
  return handle;
}

const Variant &CudaKernel::choose(const Chip &device) const {
  std::string known;
  const Variant *best = nullptr;
  Chip bestChip;
  for (const Variant &variant : bundle.variants) {
    Chip chip = Chip::parse(variant.chip);
    known += (known.empty() ? "" : ", ") + variant.chip;
    bool isNewer = std::tie(chip.major, chip.minor, chip.isExact) >
                   std::tie(bestChip.major, bestChip.minor, bestChip.isExact);
    if (!chip.runsOn(device) || (best && !isNewer))
      continue;
    best = &variant;
    bestChip = chip;
  }
  if (!best)
    fail("'" + bundle.entry + "': expected a device for " + known +
         ", but got sm_" + std::to_string(device.major * 10 + device.minor));
  return *best;
}

static void checkShared(const Driver &driver, CUdevice device,
                        const Launch &launch) {
  int most = getAttribute(driver, device, kMaxSharedOptin);
  if (launch.sharedBytes > most)
    fail("kernel '" + launch.kernel + "': expected a device with " +
         std::to_string(launch.sharedBytes) +
         " bytes of shared memory for a block, but got " +
         std::to_string(most));
}

static void loadConstants(const Driver &driver, const Buffer &buffer,
                          CUdeviceptr &memory) {
  if (!buffer.isConstant() || buffer.contents.empty())
    return;
  driver.check(driver.cuMemAlloc(&memory, buffer.contents.size()), "cuMemAlloc",
               "for constants");
  driver.check(driver.cuMemcpyHtoD(memory, buffer.contents.data(),
                                   buffer.contents.size()),
               "cuMemcpyHtoD");
}

void CudaKernel::prepare() {
  const Driver &driver = Driver::get();
  ContextScope scope(driver);
  std::lock_guard<std::mutex> lock(mutex);
  if (find(scope.getKey()))
    return;
  CUdevice device = 0;
  driver.check(driver.cuCtxGetDevice(&device), "cuCtxGetDevice");
  Chip chip;
  chip.major = getAttribute(driver, device, kMajor);
  chip.minor = getAttribute(driver, device, kMinor);

  // Releases loaded modules if a later step fails.
  struct Guard {
    const Driver &driver;
    std::unique_ptr<LoadedKernel> entry = std::make_unique<LoadedKernel>();
    ~Guard() {
      if (entry)
        entry->release(driver);
    }
  } guard{driver};
  LoadedKernel &entry = *guard.entry;
  entry.key = scope.getKey();
  entry.context = scope.getContext();
  entry.variant = &choose(chip);
  // Reserved first, so that every loaded module can be stored.
  entry.modules.reserve(entry.variant->modules.size());
  for (const Module &module : entry.variant->modules)
    entry.modules.push_back(
        loadModule(driver, module, Chip::parse(entry.variant->chip), chip));
  for (const Launch &launch : entry.variant->launches) {
    CUfunction function = nullptr;
    driver.check(driver.cuModuleGetFunction(&function,
                                            entry.modules[launch.module],
                                            launch.kernel.c_str()),
                 "cuModuleGetFunction", "kernel '" + launch.kernel + "'");
    if (launch.sharedBytes > kSharedWithoutAsking) {
      checkShared(driver, device, launch);
      driver.check(
          driver.cuFuncSetAttribute(function, kMaxDynamicShared,
                                    static_cast<int>(launch.sharedBytes)),
          "cuFuncSetAttribute", "kernel '" + launch.kernel + "'");
    }
    entry.functions.push_back(function);
  }
  for (const Buffer &buffer : entry.variant->buffers)
    loadConstants(driver, buffer, entry.constants.emplace_back(0));
  entry.next = loaded.load(std::memory_order_relaxed);
  loaded.store(guard.entry.release(), std::memory_order_release);
}

CudaKernel::~CudaKernel() {
  for (const LoadedKernel *it = loaded.load(); it;) {
    const Driver &driver = Driver::get();
    CUcontext popped;
    // If the context is gone, so are its modules.
    if (driver.cuCtxPushCurrent(it->context) == 0) {
      it->release(driver);
      driver.cuCtxPopCurrent(&popped);
    }
    const LoadedKernel *next = it->next;
    delete it;
    it = next;
  }
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

size_t CudaKernel::getWorkspaceSize(CallViews &views) const {
  ContextScope scope(Driver::get());
  const LoadedKernel &entry = findPrepared(scope);
  return CudaCall(bundle, entry, views.get()).getWorkspaceSize();
}

void CudaKernel::launch(CallViews &views, void *workspace,
                        size_t workspaceBytes, void *stream) const {
  const Driver &driver = Driver::get();
  ContextScope scope(driver);
  const LoadedKernel &entry = findPrepared(scope);
  CudaCall call(bundle, entry, views.get());
  call.setWorkspace(workspace, workspaceBytes);
  call.run(driver, static_cast<CUstream>(stream));
}

std::unique_ptr<linattn_kernel>
linattn::runner::createCudaKernel(Bundle bundle) {
  return std::make_unique<CudaKernel>(std::move(bundle));
}
