//===- FaultyMemory.h - An allocator that fails when told -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_FAULTYMEMORY_H
#define LINATTN_TEST_UNIT_FAULTYMEMORY_H

#include "linattn-c/Runtime.h"

#include <atomic>
#include <cstdlib>

namespace linattn::test {

/// While it lives, the memory of compiled code is counted, and one allocation
/// may fail. One at a time.
class FaultyMemory {
public:
  FaultyMemory() {
    failing = seen = live = 0;
    linattn_set_allocator(allocate, release);
  }
  ~FaultyMemory() { linattn_set_allocator(nullptr, nullptr); }
  FaultyMemory(const FaultyMemory &) = delete;

  /// The n-th allocation from now on fails; 0 for none. Counts anew.
  void failAt(int64_t n) {
    failing = n;
    seen = 0;
  }
  int64_t getCount() const { return seen; }
  int64_t getLive() const { return live; }

private:
  static void *allocate(size_t bytes) {
    if (++seen == failing)
      return nullptr;
    ++live;
    return std::malloc(bytes);
  }
  static void release(void *memory) {
    --live;
    std::free(memory);
  }

  inline static std::atomic<int64_t> failing, seen, live;
};

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_FAULTYMEMORY_H
