//===- RunnerTestUtils.cpp - Kernels, operands and the fake driver --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunnerTestUtils.h"
#include "linattn/Support/BundleFormat.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <new>
#include <sstream>

using namespace linattn::test;

/// Before the runner looks for a driver.
static const int fakeIsChosen =
    setenv("LINATTN_CUDA_DRIVER", LINATTN_FAKE_DRIVER, /*overwrite=*/1);

static thread_local int64_t allocations = 0;
static std::atomic<int64_t> liveBlocks{0};
Fault linattn::test::allocationFault;

int64_t linattn::test::getAllocations() { return allocations; }
int64_t linattn::test::getLiveBlocks() { return liveBlocks; }

static void *allocate(size_t bytes) {
  ++allocations;
  if (allocationFault.strikes())
    return nullptr;
  void *memory = std::malloc(bytes ? bytes : 1);
  liveBlocks += memory != nullptr;
  return memory;
}

// As the library's own, which others of its kind call.
void *operator new(size_t bytes) {
  if (void *memory = allocate(bytes))
    return memory;
  throw std::bad_alloc();
}
void *operator new[](size_t bytes) { return operator new(bytes); }
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  return allocate(bytes);
}
void operator delete(void *memory) noexcept {
  liveBlocks -= memory != nullptr;
  std::free(memory);
}
void operator delete[](void *memory) noexcept { operator delete(memory); }
void operator delete(void *memory, size_t) noexcept { operator delete(memory); }
void operator delete[](void *memory, size_t) noexcept {
  operator delete(memory);
}

FakeDriver &FakeDriver::get() {
  static FakeDriver driver = [] {
    FakeDriver found;
    void *library = dlopen(LINATTN_FAKE_DRIVER, RTLD_NOW);
    auto find = [&](auto &function, const char *name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(
          library ? dlsym(library, name) : nullptr);
      if (!function)
        std::abort();
    };
    find(found.reset, "fakeCudaReset");
    find(found.calls, "fakeCudaCalls");
    find(found.complaints, "fakeCudaComplaints");
    find(found.fail, "fakeCudaFail");
    find(found.setDevice, "fakeCudaSetDevice");
    find(found.setContext, "fakeCudaSetContext");
    find(found.record, "fakeCudaRecord");
    return found;
  }();
  return driver;
}

std::vector<std::string> FakeDriver::takeCalls() {
  std::vector<std::string> lines;
  std::istringstream stream(calls());
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  EXPECT_STREQ(complaints(), "");
  reset();
  return lines;
}

std::string linattn::test::take(linattn_error *error) {
  std::string text = error ? linattn_error_message(error) : "";
  linattn_error_free(error);
  return text;
}

std::string linattn::test::readBundle(const std::string &name) {
  std::ifstream stream(std::string(LINATTN_BUNDLES) + "/" + name + ".lab",
                       std::ios::binary);
  std::ostringstream file;
  file << stream.rdbuf();
  return file.str();
}

void linattn::test::sign(std::string &file) {
  BundleHeader header;
  std::memcpy(&header, file.data(), sizeof(header));
  header.fileSize = file.size();
  std::memcpy(file.data(), &header, sizeof(header));
  header.checksum = getBundleChecksum(file.data(), file.size());
  std::memcpy(file.data(), &header, sizeof(header));
}

KernelPtr linattn::test::load(const std::string &file, std::string &error) {
  linattn_kernel *kernel = nullptr;
  error = take(linattn_kernel_load(file.data(), file.size(), &kernel));
  return KernelPtr(kernel);
}

KernelPtr linattn::test::loadNamed(const std::string &name) {
  std::string error;
  KernelPtr kernel = load(readBundle(name), error);
  EXPECT_EQ(error, "");
  return kernel;
}

static int64_t getBytes(int32_t dtype) {
  switch (dtype) {
  case LINATTN_I1:
  case LINATTN_I8:
    return 1;
  case LINATTN_F16:
  case LINATTN_BF16:
  case LINATTN_I16:
    return 2;
  case LINATTN_F32:
  case LINATTN_I32:
    return 4;
  default:
    return 8;
  }
}

Operand::Operand(int32_t dtype, std::vector<int64_t> extents)
    : dtype(dtype), shape(std::move(extents)), strides(shape.size()) {
  int64_t count = 1;
  for (size_t d = shape.size(); d-- > 0; count *= shape[d])
    strides[d] = count;
  size_t bytes = (count * getBytes(dtype) + 256) / 256 * 256;
  memory.reset(static_cast<char *>(std::aligned_alloc(256, bytes)), std::free);
  data = memory.get();
}

linattn_view Operand::view() const {
  return {data, shape.data(), strides.data(),
          static_cast<int32_t>(shape.size()), dtype};
}

std::vector<Operand> linattn::test::makeOperands(const linattn_kernel *kernel,
                                                 int64_t size) {
  std::vector<Operand> operands;
  for (int32_t i = 0;; ++i) {
    const linattn_operand *operand = linattn_kernel_operand(kernel, i);
    if (!operand)
      return operands;
    std::vector<int64_t> shape(operand->shape, operand->shape + operand->rank);
    std::replace(shape.begin(), shape.end(), int64_t(-1), size);
    operands.emplace_back(operand->dtype, shape);
  }
}

std::vector<linattn_view>
linattn::test::getViews(const std::vector<Operand> &operands) {
  std::vector<linattn_view> views;
  for (const Operand &operand : operands)
    views.push_back(operand.view());
  return views;
}

std::string linattn::test::launch(const linattn_kernel *kernel,
                                  const std::vector<Operand> &operands,
                                  void *workspace, size_t workspaceBytes,
                                  void *stream) {
  std::vector<linattn_view> views = getViews(operands);
  return take(linattn_kernel_launch(kernel, views.data(),
                                    static_cast<int32_t>(views.size()),
                                    workspace, workspaceBytes, stream));
}
