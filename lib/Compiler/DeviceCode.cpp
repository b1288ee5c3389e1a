//===- DeviceCode.cpp - Kernels of a GPU, through the runner --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceCode.h"
#include "KernelImpl.h"
#include "linattn/Bundle/Bundle.h"
#include "linattn/Support/RunnerErrors.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

using namespace linattn;
using namespace linattn::detail;

/// The chip of a compute capability. Code for sm_90a runs on 9.0 only, and code
/// for the current device needs to run nowhere else.
static std::string getChip(int32_t major, int32_t minor) {
  std::string chip = "sm_" + std::to_string(10 * major + minor);
  return chip == "sm_90" ? "sm_90a" : chip;
}

llvm::Error linattn::detail::describeDevice(CompilerOptions &options) {
  const char *named = std::getenv("LINATTN_CHIP");
  bool isNamed = named && *named;
  int32_t ordinal, major, minor, multiprocessors;
  int64_t bandwidth;
  llvm::Error error =
      takeError(linattn_device_current(&ordinal, &major, &minor));
  if (!error)
    error = takeError(linattn_device_properties(&multiprocessors, &bandwidth));
  if (error) {
    // Code for a named chip can be compiled without a device.
    if (!isNamed)
      return error;
    llvm::consumeError(std::move(error));
    options.chip = named;
    return llvm::Error::success();
  }
  options.chip = isNamed ? named : getChip(major, minor);
  ScheduleHints &hints = options.hints;
  if (hints.multiprocessors == 0)
    hints.multiprocessors = multiprocessors;
  if (hints.bandwidth == 0)
    hints.bandwidth = bandwidth / 1000000000;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static std::string findPtxas() {
  if (const char *named = std::getenv("LINATTN_PTXAS"))
    return named;
  llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas");
  return found ? *found : "";
}

llvm::Expected<CompiledCode>
linattn::detail::compileForDevice(const Source &source) {
  BundleOptions options;
  options.target = BundleOptions::Target::NVVM;
  options.chips = {source.options.chip};
  options.hints = source.options.hints;
  options.copy = source.options.copy;
  options.scanMma = source.options.scanMma.value_or(options.scanMma);
  options.math = source.options.math.value_or(Math::Strict);
  options.ptxas = findPtxas();
  options.needsPtxas = false;
  options.trusted = source.options.trusted;
  options.differentiate = source.options.differentiate;
  auto bundle =
      compileBundle(source.text, source.entry, source.fileName, options);
  if (!bundle)
    return bundle.takeError();
  // The bundle contains the checks of sizes.
  return CompiledCode{std::move(bundle->signature), /*checks=*/{},
                      std::move(bundle->remarks), std::move(bundle->file)};
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

namespace {

/// The views of a call, in the runner's format.
class RunnerViews {
public:
  RunnerViews(llvm::ArrayRef<BufferView> inputs,
              llvm::ArrayRef<BufferView> outputs) {
    for (llvm::ArrayRef<BufferView> group : {inputs, outputs})
      for (const BufferView &view : group)
        views.push_back({view.data, view.shape.data(), view.strides.data(),
                         static_cast<int32_t>(view.shape.size()),
                         static_cast<int32_t>(view.dtype)});
  }

  const linattn_view *data() const { return views.data(); }
  int32_t size() const { return static_cast<int32_t>(views.size()); }

private:
  llvm::SmallVector<linattn_view, 16> views;
};

} // namespace

static_assert(static_cast<int>(DType::F16) == LINATTN_F16 &&
              static_cast<int>(DType::Index) == LINATTN_INDEX);

llvm::Expected<std::unique_ptr<DeviceCode>>
DeviceCode::load(llvm::StringRef bundle) {
  linattn_kernel *kernel = nullptr;
  if (llvm::Error error =
          takeError(linattn_kernel_load(bundle.data(), bundle.size(), &kernel)))
    return std::move(error);
  return std::unique_ptr<DeviceCode>(new DeviceCode(kernel));
}

DeviceCode::~DeviceCode() {
  // Waits for the device before memory is freed.
  for (auto &[place, workspace] : workspaces)
    linattn_error_free(linattn_device_free(workspace.memory));
  linattn_kernel_free(kernel);
}

llvm::Expected<llvm::SmallVector<Kernel::Shape, 2>>
DeviceCode::computeShapes(const Signature &signature,
                          llvm::ArrayRef<BufferView> inputs) const {
  size_t count = 0;
  for (const ValueInfo &result : signature.results)
    count += result.getRank();
  llvm::SmallVector<int64_t, 16> extents(count);
  RunnerViews views(inputs, {});
  if (llvm::Error error = takeError(linattn_kernel_result_shapes(
          kernel, views.data(), views.size(), extents.data())))
    return std::move(error);
  llvm::SmallVector<Kernel::Shape, 2> shapes;
  const int64_t *next = extents.data();
  for (const ValueInfo &result : signature.results) {
    shapes.emplace_back(next, next + result.getRank());
    next += result.getRank();
  }
  return shapes;
}

llvm::Expected<size_t>
DeviceCode::getWorkspaceSize(llvm::ArrayRef<BufferView> inputs,
                             llvm::ArrayRef<BufferView> outputs) {
  size_t bytes = 0;
  if (llvm::Error error = takeError(linattn_kernel_prepare(kernel)))
    return std::move(error);
  RunnerViews views(inputs, outputs);
  if (llvm::Error error = takeError(linattn_kernel_workspace_size(
          kernel, views.data(), views.size(), &bytes)))
    return std::move(error);
  return bytes;
}

llvm::Error DeviceCode::run(llvm::ArrayRef<BufferView> inputs,
                            llvm::ArrayRef<BufferView> outputs,
                            const RunOptions &options) {
  RunnerViews views(inputs, outputs);
  auto launch = [&](void *workspace, size_t bytes) {
    return takeError(linattn_kernel_launch(kernel, views.data(), views.size(),
                                           workspace, bytes, options.stream));
  };
  if (options.workspace)
    return launch(options.workspace, options.workspaceBytes);
  llvm::Expected<size_t> needed = getWorkspaceSize(inputs, outputs);
  if (!needed)
    return needed.takeError();
  if (*needed == 0)
    return launch(nullptr, 0);
  int32_t ordinal, major, minor;
  if (llvm::Error error =
          takeError(linattn_device_current(&ordinal, &major, &minor)))
    return error;
  std::lock_guard<std::mutex> lock(mutex);
  Workspace &own = workspaces[{ordinal, options.stream}];
  if (own.bytes < *needed) {
    if (llvm::Error error = takeError(linattn_device_free(own.memory)))
      return error;
    own = {};
    if (llvm::Error error =
            takeError(linattn_device_allocate(*needed, &own.memory)))
      return error;
    own.bytes = *needed;
  }
  return launch(own.memory, own.bytes);
}
