//===- Call.h - Calls of compiled code that may be left ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_CALL_H
#define LINATTN_RUNTIME_CALL_H

#include "Interrupt.h"

namespace linattn::runtime {

/// Calls `code(context)`, which `leave` may end on this thread. Memory that the
/// code has allocated and not freed is freed then. No frame in between may hold
/// an object with a destructor. `watch` is that of the call.
linattn_call_result callGuarded(void (*code)(void *context), void *context,
                                Watch *watch);

/// The watch of the innermost `callGuarded` of this thread; null outside.
Watch *getWatch();

/// Returns from the innermost `callGuarded` of this thread.
[[noreturn]] void leave(linattn_call_result result);

/// The first failure that several threads report.
class FirstFailure {
public:
  bool isSet() const { return state.load(std::memory_order_relaxed) != 0; }

  void set(linattn_call_result result) {
    int expected = 0;
    if (state.compare_exchange_strong(expected, 1))
      first = result;
  }

  /// Call this after all threads have been joined.
  linattn_call_result get() const { return first; }

private:
  std::atomic<int> state{0};
  linattn_call_result first{};
};

} // namespace linattn::runtime

#endif // LINATTN_RUNTIME_CALL_H
