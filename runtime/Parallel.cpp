//===- Parallel.cpp - Fork and join over a thread pool --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thin layer over pthreadpool: it chooses the number of threads, keeps one
// pool per number, divides the tasks, and runs inline loops that gain nothing
// from a pool.
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "FloatMode.h"

#include <pthread.h>
#include <pthreadpool.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

using namespace linattn::runtime;

namespace {

/// A setting of more threads is a mistake.
constexpr int32_t kMaxThreads = 1024;

/// Zero: not set.
std::atomic<int32_t> processSetting{0};
thread_local int32_t threadSetting = 0;
thread_local linattn_pool threadPool{};
thread_local bool insideTask = false;

int32_t getAvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  // Respects taskset and container limits, which the plain count ignores.
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::clamp<int32_t>(CPU_COUNT(&set), 1, kMaxThreads);
  return 1;
}

/// The number in LINATTN_NUM_THREADS; 0 if it is not set, -1 if it cannot be
/// parsed.
int32_t parseSetting(const char *text) {
  if (!text || !*text)
    return 0;
  char *end = nullptr;
  long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 1)
    return -1;
  return static_cast<int32_t>(std::min<long>(value, kMaxThreads));
}

/// The setting when the first kernel ran.
int32_t getEnvironmentSetting() {
  static const int32_t setting =
      parseSetting(std::getenv("LINATTN_NUM_THREADS"));
  return setting;
}

/// The number of threads that this thread, the process or the environment has
/// set; 0 if none has.
int32_t getSetting() {
  if (threadSetting > 0)
    return threadSetting;
  int32_t setting = processSetting;
  return setting > 0 ? setting : std::max(getEnvironmentSetting(), 0);
}

/// The tasks of a loop that are assigned to one thread.
struct alignas(64) Share {
  /// The first task that has not been taken.
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

struct Pool {
  pthreadpool_t threads = nullptr;
  /// One share for each thread.
  std::unique_ptr<Share[]> shares;
};

/// The pools of this process. One parallel loop runs at a time: a second caller
/// finds the mutex locked and computes on its own thread.
struct Pools {
  std::mutex inUse;
  std::map<int32_t, Pool> byThreads;

  /// Returns a pool without threads where it cannot be created.
  Pool &get(int32_t threads) {
    Pool &pool = byThreads[threads];
    if (!pool.shares)
      pool.shares.reset(new Share[threads]);
    if (!pool.threads && canStart(threads - 1))
      pool.threads = pthreadpool_create(threads);
    return pool;
  }

private:
  /// Whether memory for the stacks of that many threads can be had: a pool
  /// waits forever for a thread that does not start.
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

/// A forked child inherits the pools without their threads. It starts over and
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
  Loop(int64_t count, void (*task)(void *, int64_t), void *ctx, Share *shares,
       int32_t numShares)
      : task(task), ctx(ctx), count(count), shares(shares),
        numShares(numShares) {
    for (int32_t i = 0; i < numShares; ++i) {
      shares[i].next =
          count / numShares * i + std::min<int64_t>(i, count % numShares);
      shares[i].end = count / numShares * (i + 1) +
                      std::min<int64_t>(i + 1, count % numShares);
    }
  }

  void (*task)(void *, int64_t);
  void *ctx;
  int64_t count;
  Share *shares;
  int32_t numShares;
  /// Every thread takes the caller's mode, because results must not depend on
  /// the thread.
  linattn::FloatMode mode = linattn::getFloatMode();
  /// The watch that may end the call early.
  Watch *watch = getWatch();
  pthread_t caller = pthread_self();
  /// The failure of the first task that ended early.
  FirstFailure failure;
  std::atomic<int64_t> done{0};
  std::atomic<bool> callerWaits{false};
  std::mutex mutex;
  std::condition_variable allDone;

  void endTasks(int64_t number) {
    if (done.fetch_add(number) + number != count || !callerWaits)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    allDone.notify_one();
  }
};

/// Hints to the core that this thread spins.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The check that every compiled loop makes between tasks.
void pollBeforeTask() {
  if (linattn_poll_flag.load(std::memory_order_relaxed))
    linattn_poll();
}

/// Waits for the tasks of other threads, once all are taken. The pool's own
/// wait would not see interrupts.
void awaitOthers(Loop &loop) {
  // The check for interrupts may run kernels, while the pool is in use.
  insideTask = true;
  auto isOver = [&] {
    if (linattn_poll_flag.load(std::memory_order_relaxed) && loop.watch)
      loop.watch->getReason();
    return loop.done.load() == loop.count;
  };
  // The other tasks usually end within this number of spins.
  constexpr int spins = 1 << 17;
  for (int i = 0; i < spins; ++i) {
    if (isOver()) {
      insideTask = false;
      return;
    }
    relax();
  }
  std::unique_lock<std::mutex> lock(loop.mutex);
  loop.callerWaits = true;
  while (!isOver())
    loop.allDone.wait_for(lock, std::chrono::milliseconds(20));
  insideTask = false;
}

// pthreadpool is built without the thread sanitizer, which does not see that a
// loop's tasks run between its start and its end.
#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void *address);
extern "C" void __tsan_release(void *address);
void publish(Loop &loop) { __tsan_release(&loop); }
void observe(Loop &loop) { __tsan_acquire(&loop); }
#else
void publish(Loop &) {}
void observe(Loop &) {}
#endif

void runGuarded(Loop &loop, int64_t i) {
  bool outer = insideTask;
  insideTask = true;
  linattn::FloatModeScope mode(loop.mode);
  struct Call {
    Loop &loop;
    int64_t i;
  } call{loop, i};
  linattn_call_result result = callGuarded(
      [](void *opaque) {
        auto *call = static_cast<Call *>(opaque);
        pollBeforeTask();
        call->loop.task(call->loop.ctx, call->i);
      },
      &call, loop.watch);
  if (result.status != LINATTN_CALL_DONE)
    loop.failure.set(result);
  insideTask = outer;
}

/// Runs the tasks of a share, and then the remaining ones of other shares.
void runShare(void *opaque, size_t number) {
  auto *loop = static_cast<Loop *>(opaque);
  observe(*loop);
  int64_t ended = 0;
  for (int32_t i = 0; i < loop->numShares; ++i) {
    Share &share = loop->shares[(number + i) % loop->numShares];
    // The counter of an exhausted share is not incremented.
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      int64_t task = share.next.fetch_add(1, std::memory_order_relaxed);
      if (task >= share.end)
        break;
      if (!loop->failure.isSet())
        runGuarded(*loop, task);
      ++ended;
    }
  }
  loop->endTasks(ended);
  bool isCaller = pthread_equal(pthread_self(), loop->caller);
  publish(*loop);
  if (isCaller)
    awaitOthers(*loop);
}

/// Runs a loop on the threads of the kernel's caller, who distributes the
/// tasks.
void runOnCallersPool(int64_t n, void (*task)(void *, int64_t), void *ctx,
                      linattn_call_result &result) {
  Loop loop(n, task, ctx, /*shares=*/nullptr, /*numShares=*/0);
  publish(loop);
  threadPool.run(
      threadPool.pool, n,
      [](void *opaque, int64_t i) {
        auto &loop = *static_cast<Loop *>(opaque);
        observe(loop);
        if (!loop.failure.isSet())
          runGuarded(loop, i);
        publish(loop);
      },
      &loop);
  observe(loop);
  result = loop.failure.get();
}

/// Runs the tasks on the pool and returns true, or returns false if no pool is
/// available. `result` receives the failure of a task.
bool runOnPool(int64_t n, void (*task)(void *, int64_t), void *ctx,
               linattn_call_result &result) {
  if (n < 2 || insideTask)
    return false;
  // It has threads of its own number; asking the system for that of the CPUs
  // would take a part of a small loop's time.
  if (threadPool.run && getSetting() != 1) {
    runOnCallersPool(n, task, ctx, result);
    return true;
  }
  int32_t setting = linattn_get_num_threads();
  auto threads = static_cast<int32_t>(std::min<int64_t>(n, setting));
  if (threads > 1) {
    Pools &shared = getPools();
    std::unique_lock<std::mutex> lock(shared.inUse, std::try_to_lock);
    if (lock.owns_lock()) {
      Pool *pool = nullptr;
      try {
        pool = &shared.get(threads);
      } catch (const std::bad_alloc &) {
        // An exception must not reach compiled code. The calling thread
        // remains.
      }
      if (pool && pool->threads) {
        Loop loop(n, task, ctx, pool->shares.get(), threads);
        // Idle workers spin briefly, so that the next loop starts early, unless
        // the user has set more threads than there are CPUs for.
        static const int32_t cpus = getAvailableCpus();
        uint32_t flags = setting > cpus ? PTHREADPOOL_FLAG_YIELD_WORKERS : 0;
        publish(loop);
        pthreadpool_parallelize_1d(pool->threads, runShare, &loop,
                                   static_cast<size_t>(threads), flags);
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
  // No object with a destructor: frames like this one are left by longjmp.
  linattn_call_result result{};
  if (runOnPool(n, task, ctx, result)) {
    if (result.status != LINATTN_CALL_DONE)
      leave(result);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    pollBeforeTask();
    task(ctx, i);
  }
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
  int32_t setting = getSetting();
  return setting > 0 ? setting : getAvailableCpus();
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
