//===- Interrupt.cpp - Interrupts and deadlines ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled code looks at one flag of the process. It is 0 but for the time from
// an interrupt or a deadline that passes to the end of the calls that are
// concerned; all else happens behind it.
//
//===----------------------------------------------------------------------===//

#include "Interrupt.h"

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <mutex>
#include <pthread.h>

using namespace linattn::runtime;

std::atomic<int32_t> linattn_poll_flag{0};

namespace {

/// Parts of the flag: a bit for interrupts, and a count of calls whose deadline
/// has passed.
constexpr int32_t kInterrupt = 1, kExpired = 2;

/// The number of interrupts so far.
std::atomic<uint64_t> interrupts{0};

struct Settings {
  int64_t deadline = 0;
  int32_t (*check)(void) = nullptr;
  /// The number of interrupts that the thread's check has seen.
  uint64_t seen = 0;
};
thread_local Settings settings;

/// The settings of the thread whose calls interrupts end.
std::atomic<const Settings *> interruptible{nullptr};

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000000000 + time.tv_nsec;
}

} // namespace

namespace linattn::runtime {

/// The deadlines of the calls in progress, and a thread that waits for the
/// first one.
class Deadlines {
public:
  static Deadlines &get();

  void add(Watch &watch) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!running && !start()) {
      watch.readsClock = true;
      linattn_poll_flag.fetch_add(kExpired);
      return;
    }
    watch.next = first;
    watch.link = &first;
    if (first)
      first->link = &watch.next;
    first = &watch;
    if (watch.deadline < wakesAt)
      changed.notify_one();
  }

  void remove(Watch &watch) {
    std::lock_guard<std::mutex> lock(mutex);
    if (watch.link) {
      *watch.link = watch.next;
      if (watch.next)
        watch.next->link = watch.link;
    }
    if (watch.expired || watch.readsClock)
      linattn_poll_flag.fetch_sub(kExpired);
  }

private:
  bool start() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, size_t(1) << 17);
    // Signals should go to the threads of the program.
    sigset_t all, former;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &former);
    pthread_t thread;
    running = pthread_create(
                  &thread, &attributes,
                  [](void *self) -> void * {
                    static_cast<Deadlines *>(self)->wait();
                    return nullptr;
                  },
                  this) == 0;
    pthread_sigmask(SIG_SETMASK, &former, nullptr);
    pthread_attr_destroy(&attributes);
    return running;
  }

  [[noreturn]] void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      wakesAt = INT64_MAX;
      int64_t time = now();
      for (Watch *watch = first; watch; watch = watch->next) {
        if (watch->expired)
          continue;
        if (watch->deadline > time) {
          wakesAt = std::min(wakesAt, watch->deadline);
          continue;
        }
        watch->expired = true;
        watch->stop(LINATTN_CALL_TIMED_OUT);
        linattn_poll_flag.fetch_add(kExpired);
      }
      if (wakesAt == INT64_MAX)
        changed.wait(lock);
      else
        changed.wait_for(lock, std::chrono::nanoseconds(wakesAt - time));
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  Watch *first = nullptr;
  /// The time at which the thread wakes by itself.
  int64_t wakesAt = INT64_MAX;
  bool running = false;
};

static Deadlines *deadlines = nullptr;

Deadlines &Deadlines::get() {
  static std::once_flag once;
  // Never destroyed, because its thread outlives static destructors. A forked
  // child lacks the thread and may inherit a held lock, so that it starts with
  // a new object.
  std::call_once(once, [] {
    deadlines = new Deadlines;
    pthread_atfork(nullptr, nullptr, [] { deadlines = new Deadlines; });
  });
  return *deadlines;
}

} // namespace linattn::runtime

Watch::Watch()
    : deadline(settings.deadline),
      check(interruptible.load(std::memory_order_relaxed) == &settings
                ? settings.check
                : nullptr),
      owner(&settings) {
  if (deadline)
    Deadlines::get().add(*this);
}

Watch::~Watch() {
  if (deadline)
    Deadlines::get().remove(*this);
  // The interrupt has ended this call; later calls start without it.
  if (check && linattn_poll_flag.load(std::memory_order_relaxed) & kInterrupt)
    linattn_poll_flag.fetch_and(~kInterrupt);
}

bool Watch::isLate() const { return deadline && now() >= deadline; }

int32_t Watch::getReason() {
  if (owner == &settings && check && reason == LINATTN_CALL_DONE) {
    uint64_t count = interrupts.load();
    if (count != settings.seen) {
      settings.seen = count;
      if (check())
        stop(LINATTN_CALL_INTERRUPTED);
    }
  }
  if (readsClock && isLate())
    stop(LINATTN_CALL_TIMED_OUT);
  return reason;
}

const int32_t *linattn_get_poll_flag(void) {
  static_assert(sizeof(linattn_poll_flag) == sizeof(int32_t));
  return reinterpret_cast<const int32_t *>(&linattn_poll_flag);
}

void linattn_interrupt(void) {
  interrupts.fetch_add(1);
  linattn_poll_flag.fetch_or(kInterrupt);
}

int64_t linattn_set_thread_local_deadline(int64_t nanoseconds) {
  int64_t former = settings.deadline;
  settings.deadline = std::max<int64_t>(nanoseconds, 0);
  return former;
}

void linattn_set_interrupt_check(int32_t (*check)(void)) {
  settings.check = check;
  interruptible = &settings;
}
