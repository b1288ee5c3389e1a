//===- CallTest.cpp - Calls that are left where memory is missing ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code that is called here stands for compiled code: it holds nothing that
// needs to be destroyed.
//
//===----------------------------------------------------------------------===//

#include "../FaultyMemory.h"
#include "FloatMode.h"

#include "gtest/gtest.h"
#include <cstring>
#include <malloc.h>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using linattn::test::FaultyMemory;

namespace {

/// Restores the thread's setting.
class CallTest : public ::testing::Test {
protected:
  void TearDown() override { linattn_set_thread_local_num_threads(0); }
};

int64_t &asNumber(void **arguments) {
  return *static_cast<int64_t *>(arguments[0]);
}

TEST_F(CallTest, ReturnsWhereTheCodeDoes) {
  int64_t number = 0;
  void *arguments[] = {&number};
  linattn_call_result result = linattn_call(
      [](void **arguments) { asNumber(arguments) = 7; }, arguments);
  EXPECT_EQ(result.status, LINATTN_CALL_DONE);
  EXPECT_EQ(number, 7);
}

/// Allocates five times, and frees the second one between.
void allocateFive(void **arguments) {
  void *memory[5];
  for (int i = 0; i < 5; ++i) {
    memory[i] = linattn_allocate(100 + i, 64);
    std::memset(memory[i], 0xff, 100 + i);
    asNumber(arguments) += 1;
    if (i == 3)
      linattn_free(memory[1]);
  }
  for (int i : {0, 4, 2, 3})
    linattn_free(memory[i]);
}

TEST_F(CallTest, EveryAllocationMayFail) {
  FaultyMemory memory;
  for (int64_t n = 1; n <= 6; ++n) {
    memory.failAt(n);
    int64_t reached = 0;
    void *arguments[] = {&reached};
    linattn_call_result result = linattn_call(allocateFive, arguments);
    EXPECT_EQ(result.status,
              n <= 5 ? LINATTN_CALL_OUT_OF_MEMORY : LINATTN_CALL_DONE);
    EXPECT_EQ(result.bytes, n <= 5 ? static_cast<uint64_t>(99 + n) : 0);
    EXPECT_EQ(reached, n - 1);
    EXPECT_EQ(memory.getLive(), 0) << n;
  }
}

#if defined(__x86_64__)
/// Compiled code that is left has set a mode and not restored its caller's.
TEST_F(CallTest, RestoresTheFloatingPointMode) {
  FaultyMemory memory;
  memory.failAt(1);
  linattn::FloatMode before = linattn::getFloatMode();
  linattn_call_result result = linattn_call(
      [](void **) {
        linattn::setFloatMode(linattn::getFloatMode() ^ 0x8040);
        linattn_allocate(100, 64);
      },
      nullptr);
  EXPECT_EQ(result.status, LINATTN_CALL_OUT_OF_MEMORY);
  EXPECT_EQ(linattn::getFloatMode(), before);
}
#endif

TEST_F(CallTest, BytesThatNoAllocatorHas) {
  for (uint64_t bytes : {UINT64_MAX, UINT64_MAX - 63, uint64_t(1) << 63,
                         (uint64_t(1) << 63) - 64}) {
    void *arguments[] = {&bytes};
    linattn_call_result result = linattn_call(
        [](void **arguments) {
          linattn_allocate(*static_cast<uint64_t *>(arguments[0]), 64);
        },
        arguments);
    EXPECT_EQ(result.status, LINATTN_CALL_OUT_OF_MEMORY);
    EXPECT_EQ(result.bytes, bytes);
  }
}

TEST_F(CallTest, AlignsAsRequested) {
  FaultyMemory memory;
  void *arguments[] = {nullptr};
  linattn_call(
      [](void **) {
        for (uint64_t alignment : {8, 64, 4096})
          for (uint64_t bytes : {0, 1, 100, 5000}) {
            void *memory = linattn_allocate(bytes, alignment);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u);
            std::memset(memory, 1, bytes);
            linattn_free(memory);
          }
        linattn_free(nullptr);
      },
      arguments);
  EXPECT_EQ(memory.getLive(), 0);
}

// The caller goes on, and frees what it had.
TEST_F(CallTest, AnInnerCallIsLeftAlone) {
  FaultyMemory memory;
  memory.failAt(3);
  int64_t status = -1;
  void *arguments[] = {&status};
  linattn_call_result result = linattn_call(
      [](void **arguments) {
        void *outer = linattn_allocate(1, 64);
        asNumber(arguments) = linattn_call(
                                  [](void **) {
                                    linattn_allocate(1, 64);
                                    linattn_allocate(1, 64);
                                  },
                                  arguments)
                                  .status;
        linattn_free(outer);
      },
      arguments);
  EXPECT_EQ(result.status, LINATTN_CALL_DONE);
  EXPECT_EQ(status, LINATTN_CALL_OUT_OF_MEMORY);
  EXPECT_EQ(memory.getLive(), 0);
}

/// A caller with a block and twenty tasks with one each; tasks that end count.
void runTasks(void **arguments) {
  void *outer = linattn_allocate(8, 64);
  linattn_parallel_for(
      20,
      [](void *done, int64_t i) {
        void *memory = linattn_allocate(1000 + i, 64);
        std::memset(memory, 1, 1000 + i);
        // A loop inside of a task runs on its thread.
        linattn_parallel_for(
            3, [](void *, int64_t) { linattn_free(linattn_allocate(5, 64)); },
            nullptr);
        linattn_free(memory);
        static_cast<std::atomic<int> *>(done)->fetch_add(1);
      },
      arguments[0]);
  linattn_free(outer);
}

TEST_F(CallTest, ATaskMayFail) {
  FaultyMemory memory;
  for (int threads : {1, 2, 4}) {
    linattn_set_thread_local_num_threads(threads);
    for (int64_t n = 1; n <= 82; ++n) {
      memory.failAt(n);
      std::atomic<int> done{0};
      void *arguments[] = {&done};
      linattn_call_result result = linattn_call(runTasks, arguments);
      bool fails = n <= 81;
      EXPECT_EQ(result.status,
                fails ? LINATTN_CALL_OUT_OF_MEMORY : LINATTN_CALL_DONE);
      EXPECT_EQ(memory.getLive(), 0) << n << ", " << threads << " threads";
      if (fails)
        EXPECT_LT(done, 20);
      else
        EXPECT_EQ(done, 20);
    }
  }
}

TEST_F(CallTest, OutsideOfACallTheProcessEnds) {
  EXPECT_DEATH(linattn_allocate(UINT64_MAX, 64), "no memory outside of a call");
}

//===----------------------------------------------------------------------===//
// Scratch that a thread keeps
//===----------------------------------------------------------------------===//

constexpr uint64_t kMiB = uint64_t(1) << 20;

// A sanitizer has a malloc of its own, which does not say.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define LINATTN_COUNTS_MEMORY
/// Memory of malloc that is in use, the blocks that are kept among it.
uint64_t getMemoryInUse() {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
#endif

/// Where a block of so many bytes is that is freed again.
void *touch(uint64_t bytes) {
  void *memory = linattn_allocate(bytes, 64);
  std::memset(memory, 1, bytes);
  linattn_free(memory);
  return memory;
}

class ScratchTest : public CallTest {
protected:
  void SetUp() override { linattn_release_memory(); }
  void TearDown() override {
    linattn_release_memory();
    CallTest::TearDown();
  }
};

TEST_F(ScratchTest, LargeBlocksAreUsedAgain) {
  void *first = touch(3 * kMiB);
  EXPECT_EQ(touch(3 * kMiB), first);
  EXPECT_EQ(touch(2 * kMiB), first) << "no less than half of it";
  // Two at once are two blocks, and both stay.
  void *one = linattn_allocate(3 * kMiB, 64);
  void *other = linattn_allocate(3 * kMiB, 64);
  EXPECT_NE(one, other);
  linattn_free(one);
  linattn_free(other);
  std::set<void *> again{linattn_allocate(3 * kMiB, 64),
                         linattn_allocate(3 * kMiB, 64)};
  EXPECT_EQ(again, (std::set<void *>{one, other}));
  for (void *memory : again)
    linattn_free(memory);
}

TEST_F(ScratchTest, AnotherAlignmentFits) {
  touch(kMiB);
  for (uint64_t alignment : {64, 4096, 65536}) {
    void *memory = linattn_allocate(kMiB, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0u);
    std::memset(memory, 1, kMiB);
    linattn_free(memory);
  }
}

#if defined(LINATTN_COUNTS_MEMORY)
TEST_F(ScratchTest, IsBoundedAndGivenBack) {
  uint64_t before = getMemoryInUse();
  std::vector<void *> blocks;
  for (int i = 0; i < 200; ++i)
    blocks.push_back(linattn_allocate(kMiB, 64));
  for (void *memory : blocks)
    linattn_free(memory);
  touch(300 * kMiB); // More than may stay.
  uint64_t kept = getMemoryInUse() - before;
  EXPECT_GT(kept, 16 * kMiB);
  EXPECT_LE(kept, 257 * kMiB);
  linattn_release_memory();
  EXPECT_LT(getMemoryInUse(), before + kMiB);
}

TEST_F(ScratchTest, EndsWithItsThread) {
  uint64_t before = getMemoryInUse(), within = 0;
  std::thread([&] {
    touch(8 * kMiB);
    within = getMemoryInUse();
  }).join();
  EXPECT_GE(within - before, 8 * kMiB);
  EXPECT_LT(getMemoryInUse(), before + kMiB);
}

#endif

// Blocks of a call that was left stay, too.
TEST_F(ScratchTest, ACallThatIsLeftKeepsItsBlocks) {
  void *memory = nullptr;
  void *arguments[] = {&memory};
  linattn_call_result result = linattn_call(
      [](void **arguments) {
        *static_cast<void **>(arguments[0]) = linattn_allocate(kMiB, 64);
        linattn_allocate(UINT64_MAX, 64);
      },
      arguments);
  EXPECT_EQ(result.status, LINATTN_CALL_OUT_OF_MEMORY);
  EXPECT_EQ(touch(kMiB), memory);
}

TEST_F(ScratchTest, NothingStaysOfAnotherAllocator) {
  touch(kMiB);
  FaultyMemory memory;
  touch(kMiB);
  touch(kMiB);
  EXPECT_EQ(memory.getCount(), 2);
  EXPECT_EQ(memory.getLive(), 0);
}

TEST_F(ScratchTest, AForkedChildHasItsOwn) {
  void *memory = touch(kMiB);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool same = touch(kMiB) == memory;
    linattn_release_memory();
    touch(kMiB);
    _exit(same ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(touch(kMiB), memory);
}

} // namespace
