//===- LargeMemory.h - Memory for states and results ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_LARGEMEMORY_H
#define LINATTN_SUPPORT_LARGEMEMORY_H

#include <cstddef>
#include <cstdlib>

namespace linattn {

/// At least `bytes` bytes that begin with a cache line, for `freeLarge` or
/// `std::free`; null if there are none. From 2 MiB on they begin with a huge
/// page, and the system is asked for such pages: a state that every token
/// passes over then lies in one piece, which the second cache holds better than
/// pages from anywhere.
void *allocateLarge(size_t bytes);

/// Gives back what `allocateLarge` gave for so many bytes; any thread may. From
/// 2 MiB on it stays at hand for the next request of its size: a system clears
/// the pages of new memory, which costs as much as a tenth of computing what
/// they are for. All that stays is at most `mostLargeMemoryKept`, the last that
/// was given back, and the system may take its pages where it runs short.
void freeLarge(void *memory, size_t bytes);

constexpr size_t mostLargeMemoryKept = size_t(128) << 20;

/// Bytes that `freeLarge` keeps at hand.
size_t getLargeMemoryKept();

/// The same for containers.
template <typename T>
struct LargeAllocator {
  using value_type = T;

  LargeAllocator() = default;
  template <typename U>
  LargeAllocator(const LargeAllocator<U> &) {}

  T *allocate(size_t count) {
    if (void *memory = allocateLarge(count * sizeof(T)))
      return static_cast<T *>(memory);
    std::abort();
  }
  void deallocate(T *memory, size_t count) {
    freeLarge(memory, count * sizeof(T));
  }

  friend bool operator==(LargeAllocator, LargeAllocator) { return true; }
  friend bool operator!=(LargeAllocator, LargeAllocator) { return false; }
};

} // namespace linattn

#endif // LINATTN_SUPPORT_LARGEMEMORY_H
