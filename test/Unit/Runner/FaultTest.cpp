//===- FaultTest.cpp - A system that refuses ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Memory of the runner itself, functions of the driver, files and the clock
// fail one call at a time. Each time there is an error, nothing is left behind,
// and the next kernel is right. This binary has its own operator new; calls of
// the system go through functions of its own by the linker's option --wrap.
//
//===----------------------------------------------------------------------===//

#include "RunnerTestUtils.h"
#include "linattn-c/Runtime.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <new>
#include <sys/types.h>
#include <unistd.h>

using namespace linattn::test;

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

namespace {

/// The faults that the wrapped functions inject.
struct SystemFaults {
  bool noMemoryFile = false, noTemporaryFile = false;
  /// At most so many bytes per call; -1: all.
  ssize_t mostWritten = -1;
  Fault writes;
  /// A thread of the runtime's reads the clock as well.
  std::atomic<int64_t> clockAhead{0};
} faults;

} // namespace

extern "C" {
ssize_t __real_write(int file, const void *data, size_t bytes);
int __real_memfd_create(const char *name, unsigned flags);
int __real_mkstemp(char *path);
int __real_clock_gettime(clockid_t clock, timespec *time);

ssize_t __wrap_write(int file, const void *data, size_t bytes) {
  if (faults.writes.strikes()) {
    errno = ENOSPC;
    return -1;
  }
  if (faults.mostWritten >= 0)
    bytes = std::min(bytes, static_cast<size_t>(faults.mostWritten));
  return __real_write(file, data, bytes);
}

int __wrap_memfd_create(const char *name, unsigned flags) {
  if (!faults.noMemoryFile)
    return __real_memfd_create(name, flags);
  errno = ENOSYS;
  return -1;
}

int __wrap_mkstemp(char *path) {
  if (!faults.noTemporaryFile)
    return __real_mkstemp(path);
  errno = EROFS;
  return -1;
}

int __wrap_clock_gettime(clockid_t clock, timespec *time) {
  int result = __real_clock_gettime(clock, time);
  time->tv_sec += faults.clockAhead;
  return result;
}
}

namespace {

class FaultTest : public RunnerTest {
protected:
  void SetUp() override {
    RunnerTest::SetUp();
    linattn_set_thread_local_num_threads(1);
  }
  void TearDown() override {
    linattn_set_thread_local_num_threads(0);
    linattn_set_thread_local_deadline(0);
    faults.noMemoryFile = faults.noTemporaryFile = false;
    faults.mostWritten = -1;
    faults.clockAhead = 0;
    RunnerTest::TearDown();
  }

  /// Everything that one does with a bundle; the first error.
  static linattn_error *useKernel(const std::string &file,
                                  const std::vector<linattn_view> &views) {
    linattn_kernel *kernel = nullptr;
    linattn_error *error =
        linattn_kernel_load(file.data(), file.size(), &kernel);
    size_t bytes = 0;
    auto count = static_cast<int32_t>(views.size());
    if (!error)
      error = linattn_kernel_prepare(kernel);
    if (!error)
      error =
          linattn_kernel_workspace_size(kernel, views.data(), count, &bytes);
    if (!error)
      error = linattn_kernel_launch(kernel, views.data(), count, workspace,
                                    bytes, nullptr);
    linattn_kernel_free(kernel);
    return error;
  }

  /// Views of a bundle's operands, which `operands` hold.
  std::vector<linattn_view> makeViews(const std::string &name) {
    KernelPtr kernel = loadNamed(name);
    operands = makeOperands(kernel.get(), 5);
    return getViews(operands);
  }

  std::vector<Operand> operands;
  alignas(256) inline static char workspace[1 << 22];
};

TEST_F(FaultTest, EveryAllocationOfTheRunner) {
  for (const char *name : {"product_cpu", "retention"}) {
    SCOPED_TRACE(name);
    std::string file = readBundle(name);
    std::vector<linattn_view> views = makeViews(name);
    // The first call makes what stays: the driver, its errors' names.
    ASSERT_EQ(take(useKernel(file, views)), "");
    int64_t count = 0;
    {
      FaultScope scope(allocationFault, 0);
      ASSERT_EQ(useKernel(file, views), nullptr);
      count = allocationFault.seen;
    }
    ASSERT_GT(count, 10);
    for (int64_t n = 1; n <= count; ++n) {
      fake.reset();
      int64_t live = getLiveBlocks();
      linattn_error *error = nullptr;
      {
        FaultScope scope(allocationFault, n);
        error = useKernel(file, views);
      }
      // An end that finds no memory goes on without.
      if (error) {
        EXPECT_EQ(linattn_error_get_kind(error), LINATTN_ERROR_OUT_OF_MEMORY)
            << linattn_error_message(error);
      }
      linattn_error_free(error);
      fake.reset();
      EXPECT_EQ(getLiveBlocks(), live) << "allocation " << n << " of " << count;
      if (HasFailure())
        return;
    }
    EXPECT_EQ(take(useKernel(file, views)), "");
  }
}

TEST_F(FaultTest, EveryFunctionOfTheDriver) {
  for (const char *name : {"layer", "chain", "softmax"}) {
    SCOPED_TRACE(name);
    std::string file = readBundle(name);
    std::vector<linattn_view> views = makeViews(name);
    // The first kernel of a process opens the driver.
    ASSERT_EQ(take(useKernel(file, views)), "");
    fake.takeCalls();
    fake.reset();
    ASSERT_EQ(take(useKernel(file, views)), "");
    std::vector<std::string> calls = fake.takeCalls();
    int64_t loaded = 0;
    std::map<std::string, int> skip;
    for (const std::string &call : calls) {
      std::string function = call.substr(0, call.find(' '));
      int number = skip[function]++;
      SCOPED_TRACE(function + " " + std::to_string(number));
      fake.reset();
      fake.fail(function.c_str(), 1, number);
      std::string error = take(useKernel(file, views));
      // The end of a kernel has no error to return. In a context that is gone
      // there is nothing to unload.
      bool isEnd = function == "cuModuleUnload" ||
                   function == "cuCtxPushCurrent" ||
                   function == "cuCtxPopCurrent";
      if (!isEnd) {
        EXPECT_NE(error.find(function), std::string::npos) << error;
      }
      for (const std::string &made : fake.takeCalls()) {
        if (function == "cuCtxPushCurrent")
          continue;
        loaded += made.rfind("cuModuleLoadDataEx", 0) == 0 &&
                  !(function == "cuModuleLoadDataEx");
        loaded -= made.rfind("cuModuleUnload", 0) == 0;
      }
      fake.reset();
      ASSERT_EQ(take(useKernel(file, views)), "");
    }
    EXPECT_LE(loaded, 0) << "modules that stay loaded";
  }
}

TEST_F(FaultTest, MemoryFilesAndTemporaryOnes) {
  std::string file = readBundle("product_cpu");
  std::vector<linattn_view> views = makeViews("product_cpu");
  for (bool inFolder : {false, true}) {
    faults.noMemoryFile = inFolder;
    // Whatever is written at once, all is written.
    for (ssize_t most : {ssize_t(-1), ssize_t(1000), ssize_t(77)}) {
      faults.mostWritten = most;
      EXPECT_EQ(take(useKernel(file, views)), "");
    }
    int64_t count = 0;
    {
      FaultScope scope(faults.writes, 0);
      EXPECT_EQ(take(useKernel(file, views)), "");
      count = faults.writes.seen;
    }
    ASSERT_GT(count, 0);
    for (int64_t n : {int64_t(1), count / 2 + 1, count}) {
      FaultScope scope(faults.writes, n);
      std::string error = take(useKernel(file, views));
      EXPECT_NE(error.find("cannot be written: No space left on device"),
                std::string::npos)
          << error;
    }
    faults.mostWritten = -1;
  }
  faults.noTemporaryFile = true;
  EXPECT_NE(
      take(useKernel(file, views)).find("no file for a kernel: Read-only"),
      std::string::npos);
  faults.noMemoryFile = faults.noTemporaryFile = false;
  EXPECT_EQ(take(useKernel(file, views)), "");
}

TEST_F(FaultTest, FilesThatEndEarly) {
  std::string file = readBundle("product_cpu");
  std::string path = ::testing::TempDir() + "linattn-short.lab";
  for (size_t size = 0; size < file.size();
       size += size < 200 ? 1 : file.size() / 50) {
    std::ofstream(path, std::ios::binary).write(file.data(), size);
    linattn_kernel *kernel = nullptr;
    std::string error = take(linattn_kernel_load_file(path.c_str(), &kernel));
    EXPECT_EQ(error.rfind(path + ": ", 0), 0u) << size << ": " << error;
    EXPECT_EQ(kernel, nullptr);
  }
  ::unlink(path.c_str());
  linattn_kernel *kernel = nullptr;
  for (const std::string &other : {path, ::testing::TempDir()})
    EXPECT_NE(take(linattn_kernel_load_file(other.c_str(), &kernel)), "");
}

TEST_F(FaultTest, AClockThatJumps) {
  std::string file = readBundle("product_cpu");
  std::vector<linattn_view> views = makeViews("product_cpu");
  timespec time;
  __real_clock_gettime(CLOCK_MONOTONIC, &time);
  linattn_set_thread_local_deadline((time.tv_sec + 3600) * 1000000000);
  EXPECT_EQ(take(useKernel(file, views)), "");
  faults.clockAhead = 7200;
  EXPECT_NE(take(useKernel(file, views)).find("ended by its deadline"),
            std::string::npos);
  faults.clockAhead = 0;
  EXPECT_EQ(take(useKernel(file, views)), "");
}

} // namespace
