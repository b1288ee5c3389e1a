//===- OperandsTest.cpp - Operands that do not fit a GPU kernel -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunnerTestUtils.h"

#include <cstring>

using namespace linattn::test;

namespace {

using Calls = std::vector<std::string>;

class OperandsTest : public RunnerTest {
protected:
  void SetUp() override {
    RunnerTest::SetUp();
    kernel = loadNamed("layer");
    ASSERT_EQ(take(linattn_kernel_prepare(kernel.get())), "");
    x = makeOperands(kernel.get(), 10);
    fake.reset();
  }
  /// The error; nothing has been launched.
  std::string run() {
    std::string error = launch(kernel.get(), x);
    EXPECT_EQ(fake.takeCalls(), Calls{});
    fake.setContext(1);
    return error;
  }
  KernelPtr kernel;
  std::vector<Operand> x;
};

TEST_F(OperandsTest, Count) {
  x.pop_back();
  EXPECT_EQ(run(), "'layer': expected 6 arguments and results, but got 5");
}

TEST_F(OperandsTest, Type) {
  x[2].dtype = LINATTN_F16;
  EXPECT_EQ(run(), "argument 2 (%v): expected elements of type bf16, but got "
                   "f16");
  x[2].dtype = 77;
  EXPECT_EQ(run(), "argument 2 (%v): expected elements of type bf16, but got "
                   "type 77");
}

TEST_F(OperandsTest, Shape) {
  x[1].shape[1] = 4;
  EXPECT_EQ(run(), "argument 1 (%k): expected shape 2x8x?x64, but got "
                   "2x4x10x64");
  x[1] = Operand(LINATTN_BF16, {2, 8, 64});
  EXPECT_EQ(run(), "argument 1 (%k): expected shape 2x8x?x64, but got 2x8x64");
  x[1] = Operand(LINATTN_BF16, {2, 8, 11, 64});
  EXPECT_EQ(run(), "'layer': expected query and key to have the same sequence "
                   "length, but got 10 and 11");
  x[1] = Operand(LINATTN_BF16, {2, 8, 10, 64});
  x[4] = Operand(LINATTN_BF16, {2, 8, 12, 64});
  EXPECT_EQ(run(), "result 0: expected shape 2x8x10x64, but got 2x8x12x64");
}

TEST_F(OperandsTest, Strides) {
  x[0].strides[3] = 2;
  EXPECT_EQ(run(),
            "argument 0 (%q): expected an innermost stride of 1, but got 2");
  x[0].strides = {8 * 10 * 64, 10 * 64, 60, 1};
  EXPECT_EQ(run(), "argument 0 (%q): expected strides that are multiples of 8 "
                   "elements (16 bytes), but got 60");
  x[0].strides = {8 * 10 * 64, 10 * 64, 64, 1};
  x[0].data += 2;
  std::string error = run();
  EXPECT_EQ(error.rfind("argument 0 (%q): expected an address that is a "
                        "multiple of 16 bytes, but got ",
                        0),
            0u)
      << error;
  x[0].data += 1;
  EXPECT_EQ(run(), "argument 0 (%q): expected a pointer aligned to 2 bytes");
  x[4].strides[2] = 0;
  x[0].data -= 3;
  EXPECT_EQ(run(), "result 0: expected strides that give every element its own "
                   "place in memory");
}

TEST_F(OperandsTest, StridesOfNothingDoNotMatter) {
  x = makeOperands(kernel.get(), 1);
  x[0].strides[2] = 7;
  EXPECT_EQ(launch(kernel.get(), x), "");
}

TEST_F(OperandsTest, MemoryOfItsOwn) {
  x[2].data = nullptr;
  EXPECT_EQ(run(), "argument 2 (%v): expected a buffer of shape 2x8x10x64, but "
                   "got a null pointer");
  x[2] = x[4];
  EXPECT_EQ(run(), "result 0: expected a buffer of its own, but it overlaps "
                   "argument 2 (%v)");
  x[2] = Operand(LINATTN_BF16, {2, 8, 10, 64});
  // A state may be updated in place, element by element. The memory behind
  // it belongs to it, and to no other operand.
  Operand larger(LINATTN_F32, {3, 8, 64, 64});
  x[3].memory = larger.memory;
  x[3].data = larger.data;
  x[5] = x[3];
  EXPECT_EQ(launch(kernel.get(), x), "");
  fake.reset();
  x[5].data += 64 * 64 * 4;
  EXPECT_EQ(run(), "result 1: expected a buffer of its own, but it overlaps "
                   "argument 3 (%s)");
}

TEST_F(OperandsTest, ShapesOfResults) {
  std::vector<linattn_view> views = getViews(x);
  int64_t extents[8] = {};
  EXPECT_EQ(take(linattn_kernel_result_shapes(kernel.get(), views.data(), 4,
                                              extents)),
            "");
  int64_t expected[8] = {2, 8, 10, 64, 2, 8, 64, 64};
  EXPECT_EQ(memcmp(extents, expected, sizeof(expected)), 0);
  EXPECT_EQ(take(linattn_kernel_result_shapes(kernel.get(), views.data(), 3,
                                              extents)),
            "'layer': expected 4 arguments, but got 3");
}

TEST_F(OperandsTest, StridesMayBeLeftOut) {
  std::vector<linattn_view> views = getViews(x);
  for (linattn_view &view : views)
    view.strides = nullptr;
  EXPECT_EQ(launch(kernel.get(), x), "");
  Calls given = fake.takeCalls();
  EXPECT_EQ(take(linattn_kernel_launch(kernel.get(), views.data(), views.size(),
                                       nullptr, 0, nullptr)),
            "");
  EXPECT_EQ(fake.takeCalls(), given);
}

} // namespace
