//===- Interrupt.h - Interrupts and deadlines -------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_INTERRUPT_H
#define LINATTN_RUNTIME_INTERRUPT_H

#include "linattn-c/Runtime.h"

#include <atomic>

/// Compiled code loads it between chunks, and calls `linattn_poll` where it is
/// not 0, which means that some call of this process is to end.
extern "C" std::atomic<int32_t> linattn_poll_flag;

namespace linattn::runtime {

/// Ends one call early, on all of its threads. It takes the settings of the
/// thread that creates it.
class Watch {
public:
  Watch();
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  /// Whether the deadline has passed before the call began.
  bool isLate() const;

  /// Why the call is to end, or LINATTN_CALL_DONE. On the caller's thread, this
  /// may run the thread's check for interrupts.
  int32_t getReason();

private:
  friend class Deadlines;

  void stop(int32_t why) {
    int32_t none = LINATTN_CALL_DONE;
    reason.compare_exchange_strong(none, why);
  }

  std::atomic<int32_t> reason{LINATTN_CALL_DONE};
  /// Of CLOCK_MONOTONIC, in nanoseconds; 0: none.
  int64_t deadline;
  int32_t (*check)(void);
  /// Identifies the caller's thread.
  const void *owner;
  // The next entry of `Deadlines`.
  Watch *next = nullptr;
  Watch **link = nullptr;
  bool expired = false;
  /// Whether every poll reads the clock, because no thread waits for the
  /// deadline.
  bool readsClock = false;
};

} // namespace linattn::runtime

#endif // LINATTN_RUNTIME_INTERRUPT_H
