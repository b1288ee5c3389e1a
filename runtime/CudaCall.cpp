//===- CudaCall.cpp - One call of a kernel on the GPU ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaCall.h"

#include "Failure.h"
#include "Kernel.h"
#include "linattn/Support/DType.h"

#include <algorithm>
#include <cstring>

using namespace linattn;
using namespace linattn::runner;

namespace {

/// The alignment of device allocations.
constexpr int64_t kWorkspaceAlignment = 256;
constexpr int64_t kMaxGrid[3] = {2147483647, 65535, 65535};
constexpr int64_t kMaxBlock = 1024;
/// A bundle with more launches in a loop is damaged.
constexpr int64_t kMaxIterations = 1 << 24;

} // namespace

CudaCall::CudaCall(const Bundle &bundle, const LoadedKernel &entry,
                   const linattn_view *views)
    : bundle(bundle), variant(*entry.variant), entry(entry), views(views),
      values(variant.program.instructions.size()),
      offsets(variant.buffers.size()) {
  if (!variant.program.evaluate(views, values.get()))
    fail("'" + bundle.entry +
         "': expected sizes whose products fit in 64 bits");
  placeBuffers();
}

void CudaCall::setWorkspace(void *workspace, size_t bytes) {
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

/// First fit, in the order of the program: buffers that are not in use at
/// once share memory, since launches of a stream are ordered.
void CudaCall::placeBuffers() {
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

uint64_t CudaCall::getSize(const Buffer &buffer) {
  int64_t bytes = values[buffer.bytes];
  if (bytes < 0 || bytes > (int64_t(1) << 48))
    fail("'" + bundle.entry +
         "': expected a workspace that fits an address space");
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
         kWorkspaceAlignment;
}

uint64_t CudaCall::getPointer(const KernelArgument &argument) {
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

uint64_t CudaCall::getArgument(const KernelArgument &argument) {
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

unsigned CudaCall::getExtent(const Launch &launch, const char *what, int axis,
                             int64_t value, int64_t most) {
  if (value < 0 || value > most)
    fail("kernel '" + launch.kernel + "': expected at most " +
         std::to_string(most) + " " + what + " in " + "xyz"[axis] +
         ", but got " + std::to_string(value));
  return static_cast<unsigned>(value);
}

void CudaCall::run(const Driver &driver, const Launch &launch,
                   CUfunction function, CUstream stream) {
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

void CudaCall::runRange(const Driver &driver, CUstream stream, size_t launch,
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
