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

/// At least `bytes` bytes, aligned to a cache line, to be freed by `freeLarge`
/// or `std::free`; null if memory runs out. From 2 MiB on, allocations are
/// aligned to a huge page and request such pages: a state that every token
/// passes over is then physically contiguous, which the second cache holds
/// better than scattered pages.
void *allocateLarge(size_t bytes);

/// Frees memory of `allocateLarge` with the same `bytes`, from any thread.
/// Blocks of 2 MiB or more are kept for the next request of their size, because
/// the system clears the pages of new memory, at up to a tenth of the cost of
/// the computation on them. At most `mostLargeMemoryKept` bytes are kept, the
/// most recently freed, and the system may reclaim their pages under pressure.
void freeLarge(void *memory, size_t bytes);

constexpr size_t mostLargeMemoryKept = size_t(128) << 20;

/// Bytes that `freeLarge` keeps.
size_t getLargeMemoryKept();

/// Whether that many bytes can be allocated and written now. For callers that
/// cannot handle a failed allocation.
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

  /// Returns nothing if memory runs out.
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
