//===- RunnerTestUtils.h - Kernels, operands and the fake driver ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_RUNNER_RUNNERTESTUTILS_H
#define LINATTN_TEST_UNIT_RUNNER_RUNNERTESTUTILS_H

#include "linattn-c/Runner.h"

#include "gtest/gtest.h"
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace linattn::test {

/// The functions of FakeDriver.h, in the library that the runner has open too.
struct FakeDriver {
  static FakeDriver &get();

  void (*reset)();
  const char *(*calls)();
  const char *(*complaints)();
  void (*fail)(const char *function, int result, int skip);
  void (*setDevice)(int major, int minor, int sharedBytes);
  void (*setContext)(int number);
  void (*record)(int on);

  /// The calls since the last reset, and a reset.
  std::vector<std::string> takeCalls();
};

/// The text of an error, which is freed; empty for none.
std::string take(linattn_error *error);

/// One of the bundles that the build compiles.
std::string readBundle(const std::string &name);

/// Makes the checksum that of the contents, as no accident does.
void sign(std::string &file);

/// How often this thread has taken memory with `new`.
int64_t getAllocations();

/// How many blocks that any thread has taken are not freed.
int64_t getLiveBlocks();

/// Which call of a function from now on fails, none if 0; all are counted while
/// `armed`.
struct Fault {
  std::atomic<bool> armed{false};
  std::atomic<int64_t> failing{0}, seen{0};

  bool strikes() { return armed && ++seen == failing; }
};

/// Of `new`, in all threads.
extern Fault allocationFault;

class FaultScope {
public:
  FaultScope(Fault &fault, int64_t failing) : fault(fault) {
    fault.seen = 0;
    fault.failing = failing;
    fault.armed = true;
  }
  ~FaultScope() { fault.armed = false; }

private:
  Fault &fault;
};

struct KernelDeleter {
  void operator()(linattn_kernel *kernel) const { linattn_kernel_free(kernel); }
};
using KernelPtr = std::unique_ptr<linattn_kernel, KernelDeleter>;

/// Null, and `error` set, where it cannot be loaded.
KernelPtr load(const std::string &file, std::string &error);
KernelPtr loadNamed(const std::string &name);

/// A view with its own shape, strides and memory.
struct Operand {
  Operand(int32_t dtype, std::vector<int64_t> shape);

  linattn_view view() const;

  int32_t dtype;
  std::vector<int64_t> shape, strides;
  std::shared_ptr<char> memory;
  char *data;
};

/// The operands of a bundle, arguments and results, whose open sizes are all
/// `size`.
std::vector<Operand> makeOperands(const linattn_kernel *kernel, int64_t size);

std::vector<linattn_view> getViews(const std::vector<Operand> &operands);

/// The error of a launch on these operands.
std::string launch(const linattn_kernel *kernel,
                   const std::vector<Operand> &operands,
                   void *workspace = nullptr, size_t workspaceBytes = 0,
                   void *stream = nullptr);

/// A test in context 1 of a driver without a past.
class RunnerTest : public ::testing::Test {
protected:
  void SetUp() override {
    fake.reset();
    fake.setContext(1);
  }
  void TearDown() override {
    EXPECT_STREQ(fake.complaints(), "");
    fake.reset();
  }
  FakeDriver &fake = FakeDriver::get();
};

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_RUNNER_RUNNERTESTUTILS_H
