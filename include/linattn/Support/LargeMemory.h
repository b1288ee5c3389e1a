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
#include <optional>
#include <utility>

namespace linattn {

/// At least `bytes` bytes that begin with a cache line, for `freeLarge` or
/// `std::free`; null if there are none. From 2 MiB on they begin with a huge
/// page, and such pages are requested: a state that every token
/// passes over then lies in one piece, which the second cache holds better than
/// pages from anywhere.
void *allocateLarge(size_t bytes);

/// Gives back what `allocateLarge` gave for so many bytes; any thread may. From
/// 2 MiB on is kept for the next request of its size: a system clears
/// the pages of new memory, which costs as much as a tenth of computing what
/// they are for. All that stays is at most `mostLargeMemoryKept`, the last that
/// was given back, and the system may take its pages where it runs short.
void freeLarge(void *memory, size_t bytes);

constexpr size_t mostLargeMemoryKept = size_t(128) << 20;

/// Bytes that `freeLarge` keeps.
size_t getLargeMemoryKept();

/// Whether so many bytes can be had at once, now, and all be written to. For
/// what is not prepared to get none.
bool canAllocate(size_t bytes);

/// Bytes of `allocateLarge`, with an owner.
class LargeBytes {
public:
  LargeBytes() = default;
  LargeBytes(LargeBytes &&other)
      : memory(std::exchange(other.memory, nullptr)),
        bytes(std::exchange(other.bytes, 0)) {}
  /// Ends the process if memory runs out.
  LargeBytes(const LargeBytes &other);
  LargeBytes &operator=(LargeBytes other) {
    std::swap(memory, other.memory);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~LargeBytes() { freeLarge(memory, bytes); }

  /// None where there are none.
  static std::optional<LargeBytes> allocate(size_t bytes) {
    LargeBytes result;
    result.memory = allocateLarge(bytes);
    result.bytes = bytes;
    return result.memory ? std::optional(std::move(result)) : std::nullopt;
  }

  void *data() const { return memory; }
  size_t size() const { return bytes; }

private:
  void *memory = nullptr;
  size_t bytes = 0;
};

} // namespace linattn

#endif // LINATTN_SUPPORT_LARGEMEMORY_H
