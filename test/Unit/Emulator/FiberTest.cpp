//===- FiberTest.cpp - Switching stacks -----------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fiber.h"

#include "gtest/gtest.h"
#include <cstdint>
#include <vector>

using namespace linattn::emulator;

namespace {

/// Two contexts that count together, switching after every number.
template <typename Context>
struct PingPong {
  Context host, fiber;
  FiberStack stack{64 << 10};
  std::vector<int> seen;
  int rounds = 0;

  static void run(void *argument) {
    auto &self = *static_cast<PingPong *>(argument);
    // Values that a call must keep, in registers or on this stack.
    double sum = 0.5;
    for (int i = 0;; ++i) {
      sum += i;
      self.seen.push_back(i);
      Context::switchContext(self.fiber, self.host);
      if (sum != 0.5 + i * (i + 1) / 2)
        self.seen.push_back(-1);
    }
  }

  void play(int count) {
    fiber.prepare(stack, run, this);
    for (int i = 0; i < count; ++i)
      Context::switchContext(host, fiber);
  }
};

template <typename Context>
class FiberTest : public testing::Test {};
#if LINATTN_ASSEMBLY_FIBERS
using Contexts = testing::Types<PortableContext, AssemblyContext>;
#else
using Contexts = testing::Types<PortableContext>;
#endif
TYPED_TEST_SUITE(FiberTest, Contexts);

TYPED_TEST(FiberTest, GoesOnWhereItWas) {
  PingPong<TypeParam> game;
  game.play(100);
  ASSERT_EQ(game.seen.size(), 100u);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(game.seen[i], i);
}

TYPED_TEST(FiberTest, StartsAgainOnTheSameStack) {
  PingPong<TypeParam> game;
  game.play(3);
  game.play(2);
  EXPECT_EQ(game.seen, (std::vector<int>{0, 1, 2, 0, 1}));
}

TYPED_TEST(FiberTest, StackIsAligned) {
  struct State {
    TypeParam host, fiber;
    FiberStack stack{64 << 10};
    bool aligned = false;
    static void run(void *argument) {
      auto &self = *static_cast<State *>(argument);
      // The compiler places this at a fixed distance from an aligned frame.
      alignas(16) volatile char data[16];
      self.aligned = reinterpret_cast<uintptr_t>(&data) % 16 == 0;
      TypeParam::switchContext(self.fiber, self.host);
    }
  } state;
  state.fiber.prepare(state.stack, State::run, &state);
  TypeParam::switchContext(state.host, state.fiber);
  EXPECT_TRUE(state.aligned);
}

} // namespace
