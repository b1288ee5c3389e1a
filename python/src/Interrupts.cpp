//===- Interrupts.cpp - Signals and deadlines of calls --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A signal handler of Python runs on the main thread, with the interpreter's
// lock, and when the interpreter gets round to it: after the call, of a kernel.
// But the interpreter can write the signal's number to a file at once, the
// wakeup descriptor. A thread of ours has the kernel of the main thread look
// around when it has run for some time; the main thread then takes the lock,
// runs the handlers, and sets a pipe as the wakeup descriptor until the end of
// the call. Each byte makes the kernel look again.
//
//===----------------------------------------------------------------------===//

#include "Interrupts.h"
#include "linattn-c/Runtime.h"
#include "linattn/Support/Interrupted.h"

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

namespace {

/// Watches the calls of the main thread of one process.
class CallWatcher {
public:
  /// Begins a call. Usually this is a single increment.
  void begin() {
    if (depth++ > 0)
      return;
    calls.store(calls.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
    if (sleeps.load(std::memory_order_relaxed))
      wake();
  }

  /// Ends a call, while holding the interpreter's lock.
  void end() {
    if (--depth > 0)
      return;
    calls.store(calls.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
    if (!hasDescriptor.load(std::memory_order_relaxed))
      return;
    setDescriptor(former);
    hasDescriptor = false;
  }

  /// Runs the handlers of signals. Returns whether one raises.
  bool look() {
    PyGILState_STATE state = PyGILState_Ensure();
    if (!hasDescriptor) {
      former = setDescriptor(ends[1]);
      listener = former;
      hasDescriptor = former != kNone;
    }
    bool raised = PyErr_CheckSignals() != 0;
    PyGILState_Release(state);
    return raised;
  }

private:
  /// Stands for a wakeup descriptor that could not be set.
  static constexpr int kNone = -2;
  static constexpr int tickMs = 20, ticksBeforeSleep = 50;

  /// Sets the wakeup descriptor and returns the previous one.
  static int setDescriptor(int descriptor) {
    // A handler may have raised already.
    nb::error_scope outer;
    try {
      return nb::cast<int>(nb::module_::import_("signal").attr("set_wakeup_fd")(
          descriptor, nb::arg("warn_on_full_buffer") = false));
    } catch (nb::python_error &) {
      return kNone;
    }
  }

  void wake() {
    if (!started) {
      started = true;
      usable = start();
    }
    constexpr unsigned char noSignal = 0;
    if (usable && ::write(ends[1], &noSignal, 1) == 1)
      return;
    sleeps = !usable;
  }

  bool start() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      return false;
    // A signal handler must not block.
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    sigset_t all, outer;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &outer);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, size_t(1) << 17);
    pthread_t thread;
    auto run = [](void *self) -> void * {
      static_cast<CallWatcher *>(self)->run();
      return nullptr;
    };
    bool runs = pthread_create(&thread, &attributes, run, this) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &outer, nullptr);
    return runs;
  }

  [[noreturn]] void run() {
    uint64_t last = 0;
    int quietTicks = 0;
    for (;;) {
      pollfd pipe{ends[0], POLLIN, 0};
      int ready = poll(&pipe, 1, sleeps ? -1 : tickMs);
      if (ready > 0) {
        quietTicks = 0;
        passOn();
        continue;
      }
      uint64_t now = calls.load(std::memory_order_relaxed);
      quietTicks = now == last ? quietTicks + 1 : 0;
      // An odd number means that a call is in progress.
      if (now == last && now % 2 == 1 && !hasDescriptor)
        linattn_interrupt();
      else if (now % 2 == 0 && quietTicks > ticksBeforeSleep)
        sleeps = true;
      last = now;
    }
  }

  void passOn() {
    unsigned char signals[64];
    ssize_t count = ::read(ends[0], signals, sizeof(signals));
    sleeps = false;
    ssize_t kept = 0;
    for (ssize_t i = 0; i < count; ++i)
      if (signals[i])
        signals[kept++] = signals[i];
    if (kept == 0)
      return;
    linattn_interrupt();
    if (listener < 0)
      return;
    ssize_t written = ::write(listener, signals, kept);
    (void)written;
  }

  int ends[2] = {-1, -1};
  /// Twice the number of finished calls, plus one while a call is in progress.
  std::atomic<uint64_t> calls{0};
  std::atomic<bool> sleeps{true}, hasDescriptor{false};
  /// The previous wakeup descriptor, or a negative number.
  std::atomic<int> listener{-1};
  // State of the main thread.
  int depth = 0, former = -1;
  bool started = false, usable = false;
};

CallWatcher *watcher = new CallWatcher;
unsigned long mainThread = 0;

void becomeMainThread() {
  mainThread = PyThread_get_thread_ident();
  linattn_set_interrupt_check(
      [] { return static_cast<int32_t>(watcher->look()); });
}

} // namespace

ReleaseScope::ReleaseScope()
    : watches(PyThread_get_thread_ident() == mainThread) {
  if (watches)
    watcher->begin();
  thread = PyEval_SaveThread();
}

ReleaseScope::~ReleaseScope() {
  PyEval_RestoreThread(thread);
  if (watches)
    watcher->end();
}

void linattn::python::throwInterrupted(llvm::Error error) {
  bool timedOut = false;
  std::string message;
  llvm::handleAllErrors(std::move(error), [&](const InterruptedError &why) {
    timedOut = why.getReason() == InterruptedError::Deadline;
    message = why.message();
  });
  // Otherwise the handler has set the error.
  if (!PyErr_Occurred())
    PyErr_SetString(timedOut ? PyExc_TimeoutError : PyExc_KeyboardInterrupt,
                    message.c_str());
  throw nb::python_error();
}

void linattn::python::registerInterrupts(nb::module_ &module) {
  module.def("set_main_thread", becomeMainThread,
             "Marks this thread as the one that handles signals.");
  module.def(
      "set_deadline",
      [](int64_t nanoseconds) {
        return linattn_set_thread_local_deadline(nanoseconds);
      },
      nb::arg("nanoseconds"),
      "Sets when calls of this thread end, by time.monotonic_ns(), 0 for "
      "never; returns the former setting.");
  // The forking thread is the main thread of the child, and the only one.
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, [] {
      watcher = new CallWatcher;
      becomeMainThread();
    });
  });
}
