//===- CpuTest.cpp - Bundles with code for CPUs ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../FaultyMemory.h"
#include "FloatMode.h"
#include "RunnerTestUtils.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

using namespace linattn::test;

namespace {

float *floats(Operand &operand) {
  return reinterpret_cast<float *>(operand.data);
}

/// The layer of Inputs/attention.mlir, in float64.
std::vector<double> computeAttention(std::vector<Operand> &x, int64_t tokens) {
  constexpr int64_t kHeads = 16, kSize = 64;
  auto map = [](double v) { return v > 0 ? v + 1 : std::exp(v); };
  std::vector<double> out(kHeads * tokens * kSize);
  for (int64_t h = 0; h < kHeads; ++h)
    for (int64_t t = 0; t < tokens; ++t) {
      int64_t row = (h * tokens + t) * kSize;
      double sum = 0;
      for (int64_t s = 0; s <= t; ++s) {
        int64_t other = (h * tokens + s) * kSize;
        double weight = 0;
        for (int64_t d = 0; d < kSize; ++d)
          weight += map(floats(x[0])[row + d]) * map(floats(x[1])[other + d]);
        sum += weight;
        for (int64_t d = 0; d < kSize; ++d)
          out[row + d] += weight * floats(x[2])[other + d];
      }
      for (int64_t d = 0; d < kSize; ++d)
        out[row + d] /= sum + 1e-6;
    }
  return out;
}

void fill(std::vector<Operand> &operands, int64_t tokens) {
  for (size_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 16 * tokens * 64; ++j)
      floats(operands[i])[j] = std::sin(0.37 * j + i);
}

TEST(CpuTest, Computes) {
  KernelPtr kernel = loadNamed("attention_cpu");
  ASSERT_TRUE(kernel);
  EXPECT_STREQ(linattn_kernel_target(kernel.get()), "cpu");
  // Nothing needs to be prepared, and may be.
  EXPECT_EQ(take(linattn_kernel_prepare(kernel.get())), "");
  for (int64_t tokens : {0, 1, 5, 70}) {
    std::vector<Operand> x = makeOperands(kernel.get(), tokens);
    fill(x, tokens);
    ASSERT_EQ(launch(kernel.get(), x), "");
    std::vector<double> expected = computeAttention(x, tokens);
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs(floats(x[3])[i] - expected[i]));
    EXPECT_LE(worst, 1e-5) << tokens;
  }
}

TEST(CpuTest, ThreadsDoNotMatter) {
  KernelPtr kernel = loadNamed("attention_cpu");
  constexpr int64_t kTokens = 50;
  std::vector<Operand> x = makeOperands(kernel.get(), kTokens);
  fill(x, kTokens);
  linattn_set_thread_local_num_threads(1);
  ASSERT_EQ(launch(kernel.get(), x), "");
  linattn_set_thread_local_num_threads(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      std::vector<Operand> y = x;
      y[3] = Operand(LINATTN_F32, x[3].shape);
      EXPECT_EQ(launch(kernel.get(), y), "");
      EXPECT_EQ(memcmp(y[3].data, x[3].data, 16 * kTokens * 64 * 4), 0);
    });
  for (std::thread &thread : threads)
    thread.join();
  linattn_set_thread_local_num_threads(0);
}

TEST(CpuTest, StateInPlace) {
  KernelPtr kernel = loadNamed("layer_cpu");
  std::vector<Operand> x = makeOperands(kernel.get(), 4);
  for (Operand &operand : x)
    memset(operand.data, 0, 2 * 8 * 4 * 64 * 2);
  for (int64_t i = 0; i < 2 * 8 * 64 * 64; ++i)
    floats(x[3])[i] = i;
  x[5] = x[3];
  // Keys of 0 leave it as it is.
  ASSERT_EQ(launch(kernel.get(), x), "");
  for (int64_t i = 0; i < 2 * 8 * 64 * 64; ++i)
    ASSERT_EQ(floats(x[3])[i], i);
}

TEST(CpuTest, ScalarsAndMasks) {
  KernelPtr kernel = loadNamed("scaled_cpu");
  std::vector<Operand> x = makeOperands(kernel.get(), 2);
  EXPECT_EQ(linattn_kernel_operand(kernel.get(), 2)->is_scalar, 1);
  for (int i = 0; i < 6; ++i) {
    floats(x[0])[i] = i;
    x[1].data[i] = i % 2;
  }
  floats(x[2])[0] = 10;
  ASSERT_EQ(launch(kernel.get(), x), "");
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(floats(x[3])[i], i % 2 ? 10 * i : i);
  x[1].data[3] = 2;
  EXPECT_EQ(launch(kernel.get(), x),
            "argument 1 (%mask): expected bytes of 0 and 1, but got others");
}

/// Launches and expects the floating-point mode to be as before.
std::string launchInMode(const KernelPtr &kernel,
                         const std::vector<Operand> &operands) {
  linattn::FloatMode before = linattn::getFloatMode();
  std::string error = launch(kernel.get(), operands);
  EXPECT_EQ(linattn::getFloatMode(), before);
  return error;
}

TEST(CpuTest, SubnormalNumbersAreZerosInF32) {
  KernelPtr kernel = loadNamed("scaled_cpu");
  std::vector<Operand> x = makeOperands(kernel.get(), 2);
  for (int i = 0; i < 6; ++i) {
    floats(x[0])[i] = 1e-20f;
    x[1].data[i] = 1;
  }
  floats(x[2])[0] = 1e-20f;
  for (int32_t threads : {1, 4}) {
    linattn_set_thread_local_num_threads(threads);
    ASSERT_EQ(launchInMode(kernel, x), "");
    for (int i = 0; i < 6; ++i)
      EXPECT_EQ(floats(x[3])[i], 0);
  }
  linattn_set_thread_local_num_threads(0);
  x[1].data[3] = 2;
  EXPECT_NE(launchInMode(kernel, x), "");
}

TEST(CpuTest, SubnormalNumbersAreKeptInF64) {
  KernelPtr kernel = loadNamed("product_cpu");
  std::vector<Operand> x = makeOperands(kernel.get(), 100);
  auto doubles = [&](size_t i) {
    return reinterpret_cast<double *>(x[i].data);
  };
  std::fill_n(doubles(0), 100, 1e-160);
  *doubles(1) = 1e-160;
  for (int32_t threads : {1, 4}) {
    linattn_set_thread_local_num_threads(threads);
    ASSERT_EQ(launchInMode(kernel, x), "");
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(doubles(2)[i], 1e-320);
  }
  linattn_set_thread_local_num_threads(0);
}

TEST(CpuTest, BundlesSideBySide) {
  KernelPtr scaled = loadNamed("scaled_cpu"),
            product = loadNamed("product_cpu");
  std::vector<Operand> x = makeOperands(product.get(), 1);
  for (Operand &operand : x)
    *reinterpret_cast<double *>(operand.data) = 3;
  ASSERT_EQ(launch(product.get(), x), "");
  EXPECT_EQ(*reinterpret_cast<double *>(x[2].data), 9);
  std::vector<Operand> y = makeOperands(scaled.get(), 1);
  for (int i = 0; i < 3; ++i) {
    floats(y[0])[i] = 4;
    y[1].data[i] = 1;
  }
  floats(y[2])[0] = 5;
  ASSERT_EQ(launch(scaled.get(), y), "");
  EXPECT_EQ(floats(y[3])[2], 20);
}

TEST(CpuTest, EveryAllocationMayFail) {
  FaultyMemory memory;
  KernelPtr kernel = loadNamed("attention_cpu");
  constexpr int64_t kTokens = 50;
  std::vector<Operand> x = makeOperands(kernel.get(), kTokens);
  fill(x, kTokens);
  linattn_set_thread_local_num_threads(1);
  ASSERT_EQ(launch(kernel.get(), x), "");
  int64_t count = memory.getCount();
  ASSERT_GT(count, 0);
  std::vector<char> expected(x[3].data, x[3].data + 16 * kTokens * 64 * 4);
  for (int32_t threads : {1, 2}) {
    linattn_set_thread_local_num_threads(threads);
    for (int64_t n = 1; n <= count; ++n) {
      memory.failAt(n);
      EXPECT_EQ(
          launch(kernel.get(), x)
              .rfind("'attention': expected memory for a workspace of ", 0),
          0u);
      EXPECT_EQ(memory.getLive(), 0);
      memory.failAt(0);
      ASSERT_EQ(launch(kernel.get(), x), "");
      EXPECT_EQ(memcmp(x[3].data, expected.data(), expected.size()), 0);
      EXPECT_EQ(memory.getLive(), 0);
    }
  }
  linattn_set_thread_local_num_threads(0);
}

/// A check that has itself called again at the next opportunity.
int64_t numChecks = 0, checksToEnd = 0;
int32_t checkAgain() {
  linattn_interrupt();
  return ++numChecks == checksToEnd;
}

TEST(CpuTest, LaunchesThatAreEnded) {
  FaultyMemory memory;
  KernelPtr kernel = loadNamed("attention_cpu");
  constexpr int64_t kTokens = 800;
  std::vector<Operand> x = makeOperands(kernel.get(), kTokens);
  fill(x, kTokens);
  linattn_set_thread_local_num_threads(1);
  ASSERT_EQ(launch(kernel.get(), x), "");
  std::vector<char> expected(x[3].data, x[3].data + 16 * kTokens * 64 * 4);
  linattn_set_interrupt_check(checkAgain);
  linattn_interrupt();
  checksToEnd = numChecks = 0;
  ASSERT_EQ(launch(kernel.get(), x), "");
  EXPECT_EQ(memcmp(x[3].data, expected.data(), expected.size()), 0);
  // Every chunk of its 16 heads looks, and not the runtime alone.
  int64_t count = numChecks;
  EXPECT_GT(count, 200);
  for (int32_t threads : {1, 2})
    for (int64_t n : {int64_t(1), count / 4, count / 2}) {
      linattn_set_thread_local_num_threads(threads);
      linattn_set_interrupt_check(checkAgain);
      linattn_interrupt();
      numChecks = 0;
      checksToEnd = n;
      std::string message = launch(kernel.get(), x);
      // Of two threads only the caller's counts, and the other one may have
      // done all tasks.
      if (threads == 1) {
        EXPECT_EQ(message, "'attention': interrupted before it was done");
      }
      EXPECT_EQ(memory.getLive(), 0);
      linattn_set_interrupt_check(nullptr);
      ASSERT_EQ(launch(kernel.get(), x), "");
      EXPECT_EQ(memcmp(x[3].data, expected.data(), expected.size()), 0);
    }
  linattn_set_thread_local_num_threads(0);
  linattn_set_thread_local_deadline(1);
  EXPECT_EQ(launch(kernel.get(), x),
            "'attention': ended by its deadline before it was done");
  linattn_set_thread_local_deadline(0);
  EXPECT_EQ(launch(kernel.get(), x), "");
}

TEST(CpuTest, SizesThatOverflow) {
  KernelPtr kernel = loadNamed("scaled_cpu");
  std::vector<Operand> x = makeOperands(kernel.get(), 2);
  std::vector<linattn_view> views = getViews(x);
  // An expanded array: many elements in the memory of one.
  std::vector<int64_t> shape{int64_t(1) << 61, 3}, strides{0, 1};
  ASSERT_EQ(views[0].rank, 2);
  for (size_t i : {0, 1, 3}) {
    views[i].shape = shape.data();
    views[i].strides = strides.data();
  }
  EXPECT_EQ(take(linattn_kernel_launch(kernel.get(), views.data(), 4, nullptr,
                                       0, nullptr)),
            "argument 0 (%x): expected an array of at most "
            "9223372036854775807 bytes, but got shape 2305843009213693952x3 "
            "with elements of 4 bytes");
  // Few elements, far apart.
  shape = {2, 3};
  strides = {int64_t(1) << 61, 1};
  EXPECT_EQ(take(linattn_kernel_launch(kernel.get(), views.data(), 4, nullptr,
                                       0, nullptr)),
            "argument 0 (%x): expected an array of at most "
            "9223372036854775807 bytes, but got shape 2x3 and strides "
            "2305843009213693952, 1 with elements of 4 bytes");
}

// A contiguous tensor of 2^64 elements and more, whose first stride would wrap
// around to that of an expanded array.
TEST(CpuTest, StridesThatOverflow) {
  struct {
    void *data = nullptr;
    int32_t device = 1, deviceId = 0, rank = 3;
    uint8_t code = 2, bits = 32;
    uint16_t lanes = 1;
    int64_t *shape = nullptr, *strides = nullptr;
    uint64_t offset = 0;
  } tensor;
  float element = 1;
  std::vector<int64_t> shape{2, int64_t(1) << 32, int64_t(1) << 32},
      strides{0, int64_t(1) << 32, 1};
  tensor.data = &element;
  tensor.shape = shape.data();
  linattn_view view{};
  view.dtype = LINATTN_F32;
  view.rank = 3;
  view.shape = shape.data();
  view.strides = strides.data();
  EXPECT_EQ(linattn_view_follow_dlpack(&view, &tensor, 0), 0);
  tensor.strides = strides.data();
  EXPECT_EQ(linattn_view_follow_dlpack(&view, &tensor, 0), 1);
  EXPECT_EQ(view.data, &element);
}

TEST(CpuTest, Errors) {
  KernelPtr kernel = loadNamed("attention_cpu");
  std::vector<Operand> x = makeOperands(kernel.get(), 2);
  EXPECT_EQ(launch(kernel.get(), x, nullptr, 0, &x),
            "'attention': expected no stream for a kernel on the CPU");
  x[1] = Operand(LINATTN_F32, {2, 8, 3, 64});
  EXPECT_NE(launch(kernel.get(), x).find("same sequence length"),
            std::string::npos);
}

} // namespace
