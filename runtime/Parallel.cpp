//===- Parallel.cpp - Fork and join over a thread pool --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin layer over pthreadpool: it chooses the number of threads, keeps one
// pool per number, and runs inline whatever gains nothing from a pool.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "FloatMode.h"

#include <pthread.h>
#include <pthreadpool.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

using namespace linattn::runtime;

namespace {

/// More threads than this are a mistake in a setting, not a machine.
constexpr int32_t kMaxThreads = 1024;

/// Zero: not set by anyone.
std::atomic<int32_t> processSetting{0};
thread_local int32_t threadSetting = 0;
thread_local linattn_pool threadPool{};
thread_local bool insideTask = false;

int32_t getAvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Respect taskset and container limits, which the plain count ignores.
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::clamp<int32_t>(CPU_COUNT(&set), 1, kMaxThreads);
  return 1;
}

/// What LINATTN_NUM_THREADS says; 0 if it is not set, -1 if it is no number.
int32_t parseSetting(const char *text) {
  if (!text || !*text)
    return 0;
  char *end = nullptr;
  long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1)
    return -1;
  return static_cast<int32_t>(std::min<long>(value, kMaxThreads));
}

/// As it was when the first kernel ran.
int32_t getEnvironmentSetting() {
  static const int32_t setting =
      parseSetting(std::getenv("LINATTN_NUM_THREADS"));
  return setting;
}

int32_t getDefaultThreads() {
  int32_t setting = getEnvironmentSetting();
  return setting > 0 ? setting : getAvailableCpus();
}

/// The pools of this process. Only one parallel loop runs at a time: a second
/// caller finds the mutex taken and computes on its own thread instead.
struct Pools {
  std::mutex inUse;
  std::map<int32_t, pthreadpool_t> byThreads;

  /// Null where it cannot be made.
  pthreadpool_t get(int32_t threads) {
    auto at = byThreads.find(threads);
    if (at != byThreads.end())
      return at->second;
    pthreadpool_t pool =
        canStart(threads - 1) ? pthreadpool_create(threads) : nullptr;
    if (pool)
      byThreads.emplace(threads, pool);
    return pool;
  }

private:
  /// Whether so many threads have memory for their stacks at once: a pool waits
  /// forever for one that does not start.
  static bool canStart(int32_t threads) {
    std::mutex gate;
    std::vector<pthread_t> started;
    started.reserve(threads);
    auto wait = [](void *opaque) -> void * {
      std::lock_guard<std::mutex> lock(*static_cast<std::mutex *>(opaque));
      return nullptr;
    };
    {
      std::lock_guard<std::mutex> lock(gate);
      pthread_t thread;
      while (started.size() < static_cast<size_t>(threads) &&
             pthread_create(&thread, nullptr, wait, &gate) == 0)
        started.push_back(thread);
    }
    for (pthread_t thread : started)
      pthread_join(thread, nullptr);
    return started.size() == static_cast<size_t>(threads);
  }
};

Pools *pools = nullptr;

/// A forked child inherits the pools but not their threads. It starts over and
/// leaks the old ones, whose locks may be held forever.
void forgetPools() { pools = new Pools; }

Pools &getPools() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Never destroyed: threads may outlive static destructors.
    pools = new Pools;
    pthread_atfork(nullptr, nullptr, forgetPools);
  });
  return *pools;
}

struct Loop {
  void (*task)(void *, int64_t);
  void *ctx;
  /// The caller's: results must not depend on which thread computes them.
  linattn::FloatMode mode;
  /// Of the first task that was left.
  FirstFailure failure;
};

// pthreadpool is not built with the thread sanitizer, which cannot see that a
// loop begins before its tasks and ends after them.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void *address);
extern "C" void __tsan_release(void *address);
void publish(Loop &loop) { __tsan_release(&loop); }
void observe(Loop &loop) { __tsan_acquire(&loop); }
#else
void publish(Loop &) {}
void observe(Loop &) {}
#endif

void runTask(void *opaque, size_t i) {
  auto *loop = static_cast<Loop *>(opaque);
  observe(*loop);
  if (loop->failure.isSet())
    return;
  bool outer = insideTask;
  insideTask = true;
  linattn::FloatModeScope mode(loop->mode);
  struct Call {
    Loop *loop;
    int64_t i;
  } call{loop, static_cast<int64_t>(i)};
  linattn_call_result result = callGuarded(
      [](void *opaque) {
        auto *call = static_cast<Call *>(opaque);
        call->loop->task(call->loop->ctx, call->i);
      },
      &call);
  if (result.status != LINATTN_CALL_DONE)
    loop->failure.set(result);
  insideTask = outer;
  publish(*loop);
}

/// The same on threads of the caller of a kernel.
void runOnCallersPool(int64_t n, void (*task)(void *, int64_t), void *ctx,
                      linattn_call_result &result) {
  Loop loop{task, ctx, linattn::getFloatMode(), {}};
  publish(loop);
  threadPool.run(
      threadPool.pool, n,
      [](void *loop, int64_t i) { runTask(loop, static_cast<size_t>(i)); },
      &loop);
  observe(loop);
  result = loop.failure.get();
}

/// Runs the tasks on the pool and returns true, or false where there is none to
/// be had. The failure of a task is in `result`.
bool runOnPool(int64_t n, void (*task)(void *, int64_t), void *ctx,
               linattn_call_result &result) {
  auto threads =
      static_cast<int32_t>(std::min<int64_t>(n, linattn_get_num_threads()));
  if (threads > 1 && !insideTask && threadPool.run) {
    runOnCallersPool(n, task, ctx, result);
    return true;
  }
  if (threads > 1 && !insideTask) {
    Pools &shared = getPools();
    std::unique_lock<std::mutex> lock(shared.inUse, std::try_to_lock);
    if (lock.owns_lock()) {
      pthreadpool_t pool = nullptr;
      try {
        pool = shared.get(threads);
      } catch (const std::bad_alloc &) {
        // Compiled code cannot be unwound. Its own thread remains.
      }
      if (pool) {
        Loop loop{task, ctx, linattn::getFloatMode(), {}};
        // Idle workers spin for a moment, which makes the next loop start
        // early; not if that takes the CPU from those who work.
        static const int32_t cpus = getAvailableCpus();
        uint32_t flags = threads > cpus ? PTHREADPOOL_FLAG_YIELD_WORKERS : 0;
        publish(loop);
        pthreadpool_parallelize_1d(pool, runTask, &loop, static_cast<size_t>(n),
                                   flags);
        observe(loop);
        result = loop.failure.get();
        return true;
      }
    }
  }
  return false;
}

} // namespace

void linattn_parallel_for(int64_t n, void (*task)(void *ctx, int64_t i),
                          void *ctx) {
  // No object that needs to be destroyed: frames like this one are left.
  linattn_call_result result{};
  if (runOnPool(n, task, ctx, result)) {
    if (result.status != LINATTN_CALL_DONE)
      leave(result);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    task(ctx, i);
}

linattn_pool linattn_set_thread_local_pool(linattn_pool pool) {
  linattn_pool former = threadPool;
  threadPool = pool;
  return former;
}

void linattn_set_num_threads(int32_t count) {
  processSetting = std::clamp<int32_t>(count, 0, kMaxThreads);
}

int32_t linattn_get_num_threads(void) {
  if (threadSetting > 0)
    return threadSetting;
  int32_t setting = processSetting;
  return setting > 0 ? setting : getDefaultThreads();
}

const char *linattn_get_num_threads_problem(void) {
  if (threadSetting > 0 || processSetting > 0 || getEnvironmentSetting() >= 0)
    return nullptr;
  static const std::string problem = [] {
    const char *text = std::getenv("LINATTN_NUM_THREADS");
    return std::string("expected LINATTN_NUM_THREADS to be a positive number, "
                       "but got '") +
           (text ? text : "") + "'";
  }();
  return problem.c_str();
}

int32_t linattn_set_thread_local_num_threads(int32_t count) {
  int32_t former = threadSetting;
  threadSetting = std::clamp<int32_t>(count, 0, kMaxThreads);
  return former;
}
