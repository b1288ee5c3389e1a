//===- AmxTest.cpp - Permission for the tiles of AMX ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn-c/Runtime.h"

#include "gtest/gtest.h"
#include <thread>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace {

bool cpuHasTiles() {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & 1u << 24;
#else
  return false;
#endif
}

TEST(Amx, IsRefusedWithoutTiles) {
  if (cpuHasTiles())
    GTEST_SKIP() << "this machine has tiles";
  EXPECT_EQ(linattn_request_amx(), 0);
}

TEST(Amx, HasOneAnswerForAllThreads) {
  int32_t here = linattn_request_amx(), there = -1;
  std::thread([&] { there = linattn_request_amx(); }).join();
  EXPECT_EQ(here, there);
  EXPECT_EQ(here, linattn_request_amx());
}

} // namespace
