//===- CudaKernel.cpp - Kernels on the GPU --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"
#include "Failure.h"
#include "Kernel.h"
#include "linattn/Support/DType.h"

#include <algorithm>
#include <atomic>
#include <cstring>
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
/// The alignment of device allocations.
constexpr int64_t kWorkspaceAlignment = 256;
constexpr int64_t kMaxGrid[3] = {2147483647, 65535, 65535};
constexpr int64_t kMaxBlock = 1024;
/// A bundle with more launches in a loop is damaged.
constexpr int64_t kMaxIterations = 1 << 24;

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

/// A kernel in one context. Immutable.
struct Loaded {
  uint64_t key = 0;
  CUcontext context = nullptr;
  const Variant *variant = nullptr;
  std::vector<CUmodule> modules;
  /// The function of each launch.
  std::vector<CUfunction> functions;
  /// For each buffer the address of its constants, or 0.
  std::vector<CUdeviceptr> constants;
  const Loaded *next = nullptr;

  /// Frees it in its own context.
  void release(const Driver &driver) const {
    for (CUmodule module : modules)
      driver.cuModuleUnload(module);
    for (CUdeviceptr memory : constants)
      if (memory != 0)
        driver.cuMemFree(memory);
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
  const Loaded *find(uint64_t key) const {
    const Loaded *it = loaded.load(std::memory_order_acquire);
    while (it && it->key != key)
      it = it->next;
    return it;
  }
  const Loaded &findPrepared(const ContextScope &scope) const {
    const Loaded *found = find(scope.getKey());
    if (!found)
      fail("'" + bundle.entry +
           "': expected the kernel to be prepared in this context");
    return *found;
  }

  const Variant &choose(const Chip &device) const;

  std::mutex mutex;
  /// Readers take no mutex: entries are added in front, and none is removed.
  std::atomic<const Loaded *> loaded{nullptr};
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

  // Releases what is loaded if a later step fails.
  struct Guard {
    const Driver &driver;
    std::unique_ptr<Loaded> entry = std::make_unique<Loaded>();
    ~Guard() {
      if (entry)
        entry->release(driver);
    }
  } guard{driver};
  Loaded &entry = *guard.entry;
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
  for (const Loaded *it = loaded.load(); it;) {
    const Driver &driver = Driver::get();
    CUcontext popped;
    // If the context is gone, so are its modules.
    if (driver.cuCtxPushCurrent(it->context) == 0) {
      it->release(driver);
      driver.cuCtxPopCurrent(&popped);
    }
    const Loaded *next = it->next;
    delete it;
    it = next;
  }
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

namespace {

/// One call of the plan.
class Call {
public:
  Call(const Bundle &bundle, const Loaded &entry, const linattn_view *views)
      : bundle(bundle), variant(*entry.variant), entry(entry), views(views),
        values(variant.program.instructions.size()),
        offsets(variant.buffers.size()) {
    if (!variant.program.evaluate(views, values.get()))
      fail("'" + bundle.entry +
           "': expected sizes whose products fit in 64 bits");
    placeBuffers();
  }

  size_t getWorkspaceSize() const { return workspaceBytes; }

  void setWorkspace(void *workspace, size_t bytes) {
    auto address = reinterpret_cast<uintptr_t>(workspace);
    if (workspaceBytes == 0)
      return;
    if (bytes < workspaceBytes || !workspace)
      fail("'" + bundle.entry + "': expected a workspace of " +
           std::to_string(workspaceBytes) + " bytes, but got " +
           std::to_string(workspace ? bytes : 0));
    if (address % kWorkspaceAlignment != 0)
      fail("'" + bundle.entry + "': expected a workspace aligned to " +
           std::to_string(kWorkspaceAlignment) + " bytes");
    workspaceBase = address;
  }

  void run(const Driver &driver, CUstream stream) {
    runRange(driver, stream, 0, variant.launches.size(), 0,
             variant.loops.size());
  }

private:
  void runRange(const Driver &driver, CUstream stream, size_t launch,
                size_t lastLaunch, size_t loop, size_t lastLoop);
  void run(const Driver &driver, const Launch &launch, CUfunction function,
           CUstream stream);

  /// First fit, in the order of the program: buffers that are not in use at
  /// once share memory, since launches of a stream are ordered.
  void placeBuffers() {
    for (size_t i = 0; i < variant.buffers.size(); ++i) {
      const Buffer &buffer = variant.buffers[i];
      offsets[i] = 0;
      if (buffer.isConstant() || buffer.last < buffer.first)
        continue;
      uint64_t size = getSize(buffer);
      // Moves past every conflicting buffer at this place, until there is none.
      for (bool isFree = false; !isFree;) {
        isFree = true;
        for (int32_t other : buffer.conflicts) {
          uint64_t end = offsets[other] + getSize(variant.buffers[other]);
          if (offsets[i] < end && offsets[other] < offsets[i] + size) {
            offsets[i] = end;
            isFree = false;
          }
        }
      }
      workspaceBytes = std::max(workspaceBytes, offsets[i] + size);
    }
  }

  uint64_t getSize(const Buffer &buffer) {
    int64_t bytes = values[buffer.bytes];
    if (bytes < 0 || bytes > (int64_t(1) << 48))
      fail("'" + bundle.entry +
           "': expected a workspace that fits an address space");
    return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
           kWorkspaceAlignment;
  }

  uint64_t getArgument(const KernelArgument &argument);
  uint64_t getPointer(const KernelArgument &argument);
  unsigned getExtent(const Launch &launch, const char *what, int axis,
                     int64_t value, int64_t most);

  const Bundle &bundle;
  const Variant &variant;
  const Loaded &entry;
  const linattn_view *views;
  StackArray<int64_t, 512> values;
  /// Offsets of the buffers in the workspace.
  StackArray<uint64_t, 32> offsets;
  uint64_t workspaceBytes = 0, workspaceBase = 0;
};

} // namespace

uint64_t Call::getPointer(const KernelArgument &argument) {
  size_t numOperands = bundle.operands.size(), buffer = argument.buffer;
  bool isOperand = buffer < numOperands;
  uint64_t address;
  int64_t elementBytes;
  if (isOperand) {
    address = reinterpret_cast<uintptr_t>(views[buffer].data);
    elementBytes = getByteSize(static_cast<DType>(views[buffer].dtype));
  } else {
    size_t other = buffer - numOperands;
    address = variant.buffers[other].isConstant()
                  ? entry.constants[other]
                  : workspaceBase + offsets[other];
    elementBytes = variant.buffers[other].elementBytes;
  }
  if (argument.value >= 0)
    address += static_cast<uint64_t>(values[argument.value]) * elementBytes;
  auto align = static_cast<uint64_t>(argument.align);
  if (align <= static_cast<uint64_t>(elementBytes))
    return address; // As every element is.
  auto what = [&] {
    return isOperand ? describeOperand(bundle, buffer)
                     : std::string("a buffer of the workspace");
  };
  if (address % align != 0)
    fail(what() + ": expected an address that is a multiple of " +
         std::to_string(align) + " bytes, but got " + std::to_string(address));
  for (const KernelArgument::Dimension &dim : argument.dimensions) {
    uint64_t bytes = static_cast<uint64_t>(values[dim.stride]) * elementBytes;
    if (values[dim.extent] > 1 && bytes % align != 0)
      fail(what() + ": expected strides that are multiples of " +
           std::to_string(align / elementBytes) + " elements (" +
           std::to_string(align) + " bytes), but got " +
           std::to_string(values[dim.stride]));
  }
  return address;
}

uint64_t Call::getArgument(const KernelArgument &argument) {
  using Kind = KernelArgument::Kind;
  switch (argument.kind) {
  case Kind::Pointer:
    return getPointer(argument);
  case Kind::I32:
    if (values[argument.value] != static_cast<int32_t>(values[argument.value]))
      fail("'" + bundle.entry + "': expected sizes below 2^31, but got " +
           std::to_string(values[argument.value]));
    [[fallthrough]];
  case Kind::I64:
    return static_cast<uint64_t>(values[argument.value]);
  case Kind::Bits:
    return argument.bits;
  case Kind::Scalar: {
    const linattn_view &view = views[argument.buffer];
    uint64_t bits = 0;
    std::memcpy(&bits, view.data, getByteSize(static_cast<DType>(view.dtype)));
    return bits;
  }
  }
  return 0;
}

unsigned Call::getExtent(const Launch &launch, const char *what, int axis,
                         int64_t value, int64_t most) {
  if (value < 0 || value > most)
    fail("kernel '" + launch.kernel + "': expected at most " +
         std::to_string(most) + " " + what + " in " + "xyz"[axis] +
         ", but got " + std::to_string(value));
  return static_cast<unsigned>(value);
}

void Call::run(const Driver &driver, const Launch &launch, CUfunction function,
               CUstream stream) {
  unsigned grid[3], block[3];
  bool isEmpty = false;
  for (int i = 0; i < 3; ++i) {
    grid[i] =
        getExtent(launch, "blocks", i, values[launch.grid[i]], kMaxGrid[i]);
    block[i] =
        getExtent(launch, "threads", i, values[launch.block[i]], kMaxBlock);
    isEmpty |= grid[i] == 0 || block[i] == 0;
  }
  if (isEmpty)
    return;
  size_t count = launch.arguments.size();
  StackArray<uint64_t, 128> numbers(count);
  StackArray<void *, 128> parameters(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = getArgument(launch.arguments[i]);
    parameters[i] = &numbers[i];
  }
  CUresult result = driver.cuLaunchKernel(
      function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
      static_cast<unsigned>(launch.sharedBytes), stream, parameters.get(),
      nullptr);
  if (result != 0)
    driver.check(result, "cuLaunchKernel", "kernel '" + launch.kernel + "'");
}

void Call::runRange(const Driver &driver, CUstream stream, size_t launch,
                    size_t lastLaunch, size_t loop, size_t lastLoop) {
  while (launch < lastLaunch || loop < lastLoop) {
    if (loop == lastLoop || variant.loops[loop].first > launch) {
      run(driver, variant.launches[launch], entry.functions[launch], stream);
      ++launch;
      continue;
    }
    const Loop &it = variant.loops[loop];
    int64_t lower = values[it.lower], upper = values[it.upper];
    int64_t step = values[it.step];
    if (step <= 0 ||
        (lower < upper &&
         (lower < 0 || (upper - lower - 1) / step >= kMaxIterations)))
      fail("'" + bundle.entry + "': expected a loop of at most " +
           std::to_string(kMaxIterations) + " iterations, but got one from " +
           std::to_string(lower) + " to " + std::to_string(upper) + " by " +
           std::to_string(step));
    for (int64_t i = lower; i < upper; i += step) {
      values[it.index] = i;
      variant.program.evaluate(views, it.variable, values.get());
      runRange(driver, stream, it.first, it.first + it.count, loop + 1,
               loop + 1 + it.inner);
    }
    launch = it.first + it.count;
    loop += 1 + it.inner;
  }
}

size_t CudaKernel::getWorkspaceSize(CallViews &views) const {
  ContextScope scope(Driver::get());
  const Loaded &entry = findPrepared(scope);
  return Call(bundle, entry, views.get()).getWorkspaceSize();
}

void CudaKernel::launch(CallViews &views, void *workspace,
                        size_t workspaceBytes, void *stream) const {
  const Driver &driver = Driver::get();
  ContextScope scope(driver);
  const Loaded &entry = findPrepared(scope);
  Call call(bundle, entry, views.get());
  call.setWorkspace(workspace, workspaceBytes);
  call.run(driver, static_cast<CUstream>(stream));
}

std::unique_ptr<linattn_kernel>
linattn::runner::createCudaKernel(Bundle bundle) {
  return std::make_unique<CudaKernel>(std::move(bundle));
}
