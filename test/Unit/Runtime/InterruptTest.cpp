//===- InterruptTest.cpp - Calls that end before they are done ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code that is called here stands for compiled code: it never returns by
// itself, and holds nothing that needs to be destroyed.
//
//===----------------------------------------------------------------------===//

#include "Interrupt.h"
#include "../FaultyMemory.h"

#include "gtest/gtest.h"
#include <ctime>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using linattn::test::FaultyMemory;

namespace {

int64_t inMilliseconds(int64_t count) {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000 + time.tv_nsec + count * 1000000;
}

/// As compiled loops do.
void loopForever(void **) {
  linattn_allocate(100, 64);
  for (;;)
    if (__atomic_load_n(linattn_get_poll_flag(), __ATOMIC_RELAXED))
      linattn_poll();
}

void doNothing(void **) {}

/// A loop of which task `endless` never ends by itself.
void loopInTask(void **arguments) {
  linattn_parallel_for(
      8,
      [](void *endless, int64_t i) {
        if (i == *static_cast<int64_t *>(endless))
          loopForever(nullptr);
      },
      arguments[0]);
}

std::atomic<int> checks{0};
std::atomic<int32_t> answer{0};

class InterruptTest : public ::testing::Test {
protected:
  void SetUp() override {
    checks = 0;
    answer = 1;
  }
  void TearDown() override {
    linattn_set_thread_local_deadline(0);
    linattn_set_interrupt_check(nullptr);
    linattn_set_thread_local_num_threads(0);
    // Nothing is left over for other calls.
    EXPECT_EQ(*linattn_get_poll_flag(), 0);
  }

  static void useCheck() {
    linattn_set_interrupt_check([] {
      ++checks;
      return answer.load();
    });
  }
};

TEST_F(InterruptTest, ADeadlineEndsACall) {
  FaultyMemory memory;
  EXPECT_EQ(linattn_set_thread_local_deadline(inMilliseconds(20)), 0);
  EXPECT_EQ(linattn_call(loopForever, nullptr).status, LINATTN_CALL_TIMED_OUT);
  EXPECT_EQ(memory.getLive(), 0);
  // It has passed: the next call does not begin.
  EXPECT_EQ(linattn_call(loopForever, nullptr).status, LINATTN_CALL_TIMED_OUT);
  EXPECT_GT(linattn_set_thread_local_deadline(0), 0);
  EXPECT_EQ(linattn_call(doNothing, nullptr).status, LINATTN_CALL_DONE);
}

TEST_F(InterruptTest, EveryDeadlineCounts) {
  // The later ones come first.
  std::vector<std::thread> threads;
  std::atomic<int> ended{0};
  for (int64_t i = 0; i < 4; ++i)
    threads.emplace_back([&ended, i] {
      linattn_set_thread_local_deadline(inMilliseconds(40 - 10 * i));
      linattn_call_result result = linattn_call(loopForever, nullptr);
      ended += result.status == LINATTN_CALL_TIMED_OUT;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(ended, 4);
}

TEST_F(InterruptTest, CallsInTimeAreLeftAlone) {
  linattn_set_thread_local_deadline(inMilliseconds(3600000));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(linattn_call(doNothing, nullptr).status, LINATTN_CALL_DONE);
}

TEST_F(InterruptTest, TasksOfOtherThreadsEndToo) {
  linattn_set_thread_local_num_threads(4);
  for (int64_t endless = 0; endless < 8; ++endless) {
    void *arguments[] = {&endless};
    linattn_set_thread_local_deadline(inMilliseconds(5));
    EXPECT_EQ(linattn_call(loopInTask, arguments).status,
              LINATTN_CALL_TIMED_OUT);
  }
}

TEST_F(InterruptTest, AnInterruptAsksTheCheck) {
  useCheck();
  std::thread other([] { linattn_interrupt(); });
  EXPECT_EQ(linattn_call(loopForever, nullptr).status,
            LINATTN_CALL_INTERRUPTED);
  other.join();
  EXPECT_EQ(checks, 1);
}

TEST_F(InterruptTest, TheCheckMayLetTheCallGoOn) {
  useCheck();
  answer = 0;
  std::thread other([] {
    for (int count = 1; count <= 3; ++count) {
      linattn_interrupt();
      while (checks < count)
        std::this_thread::yield();
    }
    answer = 1;
    linattn_interrupt();
  });
  EXPECT_EQ(linattn_call(loopForever, nullptr).status,
            LINATTN_CALL_INTERRUPTED);
  other.join();
  EXPECT_EQ(checks, 4);
}

// The thread that calls has no task left; another one has an endless one.
TEST_F(InterruptTest, TheCheckRunsWhileTheCallerWaits) {
  useCheck();
  linattn_set_thread_local_num_threads(2);
  for (int64_t endless : {0, 7}) {
    checks = 0;
    void *arguments[] = {&endless};
    std::thread other([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      linattn_interrupt();
    });
    EXPECT_EQ(linattn_call(loopInTask, arguments).status,
              LINATTN_CALL_INTERRUPTED);
    other.join();
    EXPECT_EQ(checks, 1);
  }
}

TEST_F(InterruptTest, CallsWithoutACheckAreNotConcerned) {
  linattn_interrupt();
  auto poll = [](void **) {
    for (int i = 0; i < 100; ++i)
      linattn_poll();
  };
  EXPECT_EQ(linattn_call(poll, nullptr).status, LINATTN_CALL_DONE);
  // With one it is the next call; it takes the flag back.
  useCheck();
  EXPECT_EQ(linattn_call(poll, nullptr).status, LINATTN_CALL_INTERRUPTED);
  EXPECT_EQ(linattn_call(poll, nullptr).status, LINATTN_CALL_DONE);
  EXPECT_EQ(checks, 1);
}

TEST_F(InterruptTest, TheCheckMayCallKernels) {
  linattn_set_thread_local_num_threads(2);
  linattn_set_interrupt_check([] {
    ++checks;
    linattn_call(
        [](void **) {
          linattn_parallel_for(4, [](void *, int64_t) { ++checks; }, nullptr);
        },
        nullptr);
    return 1;
  });
  linattn_interrupt();
  int64_t endless = 7;
  void *arguments[] = {&endless};
  EXPECT_EQ(linattn_call(loopInTask, arguments).status,
            LINATTN_CALL_INTERRUPTED);
  EXPECT_EQ(checks, 5);
}

TEST_F(InterruptTest, OutsideOfACallNothingIsLeft) { linattn_poll(); }

TEST_F(InterruptTest, AForkedChildHasDeadlinesToo) {
  linattn_set_thread_local_deadline(inMilliseconds(1));
  linattn_call(loopForever, nullptr);
  pid_t child = fork();
  if (child == 0) {
    linattn_set_thread_local_deadline(inMilliseconds(5));
    _exit(linattn_call(loopForever, nullptr).status == LINATTN_CALL_TIMED_OUT
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

} // namespace
