//===- ParallelTest.cpp - The thread pool's contract ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FloatMode.h"
#include "linattn-c/Runtime.h"

#include "gtest/gtest.h"
#include <atomic>
#include <mutex>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

/// Counts how often each index was visited, and by whom.
struct Visits {
  explicit Visits(int64_t n) : counts(n) {}

  static void visit(void *opaque, int64_t i) {
    auto *visits = static_cast<Visits *>(opaque);
    ++visits->counts[i];
    std::lock_guard<std::mutex> lock(visits->mutex);
    visits->threads.insert(std::this_thread::get_id());
  }

  void run() { linattn_parallel_for(counts.size(), visit, this); }

  bool allOnce() const {
    for (const std::atomic<int> &count : counts)
      if (count != 1)
        return false;
    return true;
  }

  std::vector<std::atomic<int>> counts;
  std::mutex mutex;
  std::set<std::thread::id> threads;
};

/// Restores the thread's setting.
class ParallelTest : public ::testing::Test {
protected:
  void TearDown() override {
    linattn_set_thread_local_num_threads(0);
    linattn_set_num_threads(0);
    linattn_set_thread_local_pool({nullptr, nullptr});
  }
};

TEST_F(ParallelTest, VisitsEveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    linattn_set_thread_local_num_threads(threads);
    for (int64_t n : {0, 1, 2, 7, 1000}) {
      Visits visits(n);
      visits.run();
      EXPECT_TRUE(visits.allOnce()) << n << " tasks, " << threads << " threads";
      EXPECT_LE(visits.threads.size(), static_cast<size_t>(threads));
    }
  }
}

TEST_F(ParallelTest, NegativeCountsDoNothing) {
  linattn_parallel_for(-3, [](void *, int64_t) { FAIL(); }, nullptr);
}

TEST_F(ParallelTest, OneTaskOrOneThreadRunsOnTheCaller) {
  linattn_set_thread_local_num_threads(4);
  Visits one(1);
  one.run();
  EXPECT_EQ(one.threads, std::set<std::thread::id>{std::this_thread::get_id()});
  linattn_set_thread_local_num_threads(1);
  Visits many(100);
  many.run();
  EXPECT_EQ(many.threads,
            std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST_F(ParallelTest, NestedLoopsRunInline) {
  linattn_set_thread_local_num_threads(4);
  struct Outer {
    std::atomic<int> inner{0};
    std::atomic<bool> moved{false};
  } outer;
  linattn_parallel_for(
      8,
      [](void *opaque, int64_t) {
        struct Context {
          Outer *outer;
          std::thread::id thread;
        } context{static_cast<Outer *>(opaque), std::this_thread::get_id()};
        linattn_parallel_for(
            10,
            [](void *inner, int64_t) {
              auto *context = static_cast<Context *>(inner);
              ++context->outer->inner;
              if (std::this_thread::get_id() != context->thread)
                context->outer->moved = true;
            },
            &context);
      },
      &outer);
  EXPECT_EQ(outer.inner, 80);
  EXPECT_FALSE(outer.moved);
}

/// Every thread computes in the mode of the caller, and only while it does.
TEST_F(ParallelTest, TasksHaveTheModeOfTheCaller) {
#if defined(__x86_64__) || defined(__aarch64__)
  linattn_set_thread_local_num_threads(4);
  auto countZeros = [] {
    std::atomic<int> zeros{0};
    linattn_parallel_for(
        64,
        [](void *opaque, int64_t) {
          volatile float tiny = 1e-20f;
          *static_cast<std::atomic<int> *>(opaque) += tiny * tiny == 0;
        },
        &zeros);
    return zeros.load();
  };
  EXPECT_EQ(countZeros(), 0);
#if defined(__x86_64__)
  constexpr linattn::FloatMode kFlush = 0x8040;
#else
  constexpr linattn::FloatMode kFlush = 1 << 24;
#endif
  linattn::FloatMode before = linattn::getFloatMode();
  {
    linattn::FloatModeScope scope(before | kFlush);
    EXPECT_EQ(countZeros(), 64);
  }
  EXPECT_EQ(linattn::getFloatMode(), before);
  EXPECT_EQ(countZeros(), 0);
#else
  GTEST_SKIP() << "expected a machine with a floating-point mode";
#endif
}

TEST_F(ParallelTest, ConcurrentCallersAllFinish) {
  std::vector<std::thread> callers;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] {
      linattn_set_thread_local_num_threads(2);
      for (int repetition = 0; repetition < 50; ++repetition) {
        Visits visits(20);
        visits.run();
        good += visits.allOnce();
      }
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(good, 400);
}

TEST_F(ParallelTest, ACallersPoolTakesTheLoops) {
  struct Pool {
    int loops = 0;
    static void run(void *opaque, int64_t n, void (*task)(void *, int64_t),
                    void *ctx) {
      ++static_cast<Pool *>(opaque)->loops;
      std::vector<std::thread> threads;
      for (int64_t i = 0; i < n; ++i)
        threads.emplace_back(task, ctx, i);
      for (std::thread &thread : threads)
        thread.join();
    }
  } pool;
  linattn_set_thread_local_num_threads(2);
  linattn_pool former = linattn_set_thread_local_pool({Pool::run, &pool});
  EXPECT_EQ(former.run, nullptr);
  Visits visits(5);
  visits.run();
  EXPECT_TRUE(visits.allOnce());
  EXPECT_EQ(pool.loops, 1);
  EXPECT_GT(visits.threads.size(), 1u);
  // Alone on its thread, a loop needs no pool.
  linattn_set_thread_local_num_threads(1);
  Visits inlined(5);
  inlined.run();
  EXPECT_TRUE(inlined.allOnce());
  EXPECT_EQ(pool.loops, 1);
  EXPECT_EQ(linattn_set_thread_local_pool(former).pool, &pool);
}

TEST_F(ParallelTest, SettingsNest) {
  linattn_set_num_threads(3);
  EXPECT_EQ(linattn_get_num_threads(), 3);
  EXPECT_EQ(linattn_set_thread_local_num_threads(5), 0);
  EXPECT_EQ(linattn_get_num_threads(), 5);
  EXPECT_EQ(linattn_set_thread_local_num_threads(0), 5);
  EXPECT_EQ(linattn_get_num_threads(), 3);
  linattn_set_num_threads(0);
  EXPECT_GE(linattn_get_num_threads(), 1);
}

TEST_F(ParallelTest, WorksInAForkedChild) {
  linattn_set_thread_local_num_threads(2);
  Visits before(50);
  before.run();
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Visits visits(50);
    visits.run();
    _exit(visits.allOnce() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

} // namespace
