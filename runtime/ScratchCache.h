//===- ScratchCache.h - Memory that a thread's calls reuse ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// malloc gives large blocks back to the system, which clears their pages when
// the next call touches them: that may cost more than the call computes. So
// large blocks stay with the thread that has freed them. Only this thread sees
// them, so that nothing is locked, and a forked child has those of the thread
// that forked.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_SCRATCHCACHE_H
#define LINATTN_RUNTIME_SCRATCHCACHE_H

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace linattn::runtime {

class ScratchCache {
public:
  /// malloc caches smaller blocks itself.
  static constexpr size_t smallest = size_t(64) << 10;
  /// The bound for all blocks of a thread: the memory of the gradient of a
  /// delta rule for 4096 tokens of 8 heads of 128 numbers.
  static constexpr size_t most = size_t(256) << 20;

  ~ScratchCache() {
    clear();
    // Destructors of other objects of the thread may still run kernels.
    isClosed = true;
  }

  /// The smallest kept block of at least `bytes` bytes, and at most twice as
  /// many. Stores its size in `bytes`. Null if there is none.
  void *take(size_t &bytes) {
    size_t best = count;
    for (size_t i = 0; i < count; ++i)
      if (blocks[i].bytes >= bytes && blocks[i].bytes / 2 <= bytes &&
          (best == count || blocks[i].bytes < blocks[best].bytes))
        best = i;
    if (best == count)
      return nullptr;
    Block block = blocks[best];
    remove(best);
    bytes = block.bytes;
    return block.memory;
  }

  /// Keeps a block of malloc. The oldest blocks are freed to make room.
  void put(void *memory, size_t bytes) {
    if (bytes < smallest || bytes > most || isClosed)
      return std::free(memory);
    while (count == slots || total + bytes > most)
      drop(0);
#if defined(__SANITIZE_ADDRESS__)
    ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
    blocks[count++] = {memory, bytes};
    total += bytes;
  }

  void clear() {
    while (count > 0)
      drop(count - 1);
  }

private:
  struct Block {
    void *memory;
    size_t bytes;
  };
  static constexpr size_t slots = 32;

  void remove(size_t i) {
    total -= blocks[i].bytes;
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(blocks[i].memory, blocks[i].bytes);
#endif
    std::copy(blocks + i + 1, blocks + count, blocks + i);
    --count;
  }

  void drop(size_t i) {
    void *memory = blocks[i].memory;
    remove(i);
    std::free(memory);
  }

  /// Ordered by the time of freeing, oldest first.
  Block blocks[slots] = {};
  size_t count = 0, total = 0;
  bool isClosed = false;
};

} // namespace linattn::runtime

#endif // LINATTN_RUNTIME_SCRATCHCACHE_H
