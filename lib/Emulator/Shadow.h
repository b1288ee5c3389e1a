//===- Shadow.h - Who touched memory last -----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_SHADOW_H
#define LINATTN_LIB_EMULATOR_SHADOW_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace linattn::emulator {

enum class AccessKind : uint8_t {
  Read,
  Write,
  Atomic,
  AsyncRead, ///< By `wgmma`, which sees only writes that a fence made known.
};
inline bool isRead(AccessKind kind) {
  return kind == AccessKind::Read || kind == AccessKind::AsyncRead;
}

/// A thread's vector clock: the newest moment of every thread of its block with
/// which it has synchronised. Moments grow from block to block, so that those
/// of earlier blocks are recognised without clearing.
struct ThreadClock {
  unsigned thread = 0;
  /// Moments up to this one belong to earlier blocks.
  uint32_t base = 0;
  uint32_t *seen = nullptr;
  /// The moments up to which writes of other threads have passed a
  /// fence.proxy.async. They follow those seen, so that both are copied
  /// together.
  uint32_t *fenced = nullptr;

  /// Beside threads, bulk copies have clocks, in slots by their barrier.
  static constexpr unsigned kBulkSlots = 8;
  static size_t slots(size_t numThreads) { return numThreads + kBulkSlots; }
  static size_t entries(size_t numThreads) { return 2 * slots(numThreads); }
  uint32_t now() const { return seen[thread]; }
};

/// The record of each pair of bytes of a memory, or of each byte once a single
/// one has been accessed: its last writer and the readers since. Two
/// accesses conflict if one writes and no synchronisation orders them (the
/// happens-before rule of vector clocks).
class Shadow {
public:
  /// `acrossBlocks`: blocks of one launch are unordered and share this memory,
  /// as global memory; otherwise every block starts with memory of its own.
  Shadow(uint64_t bytes, bool acrossBlocks);

  struct Result {
    bool conflict = false;
    bool uninitialized = false;
    bool pending = false;
    bool unfenced = false;
    unsigned otherThread = 0; ///< Of the conflict.
    bool otherBlock = false;
    uint64_t offset = 0; ///< Of the first bytes concerned.
  };

  /// Records an access of `bytes` from `offset` on, which must be within the
  /// memory.
  Result access(const ThreadClock &clock, AccessKind kind, uint64_t offset,
                uint64_t bytes);

  /// An asynchronous copy: a write that is pending until it completes.
  Result beginCopy(const ThreadClock &clock, uint64_t offset, uint64_t bytes);
  /// The same by a proxy, which sees only writes that a fence has published to
  /// it.
  Result beginBulkCopy(const ThreadClock &clock, uint64_t offset,
                       uint64_t bytes);
  void completeCopy(const ThreadClock &clock, uint64_t offset, uint64_t bytes);

private:
  struct Access {
    uint32_t moment; ///< 0: none.
    uint16_t thread;
    bool atomic;
    bool pending;
  };
  struct Cell {
    Access write, read;
    uint32_t moreReads; ///< Index into the lists; 0: none.
  };

  /// Whether `earlier` is not ordered before the thread's current access.
  bool isConcurrent(const ThreadClock &clock, const Access &earlier) const;
  void noteConflict(const ThreadClock &clock, const Access &earlier,
                    Result &result) const;
  void read(const ThreadClock &clock, Cell &cell, Result &result);
  void write(const ThreadClock &clock, Cell &cell, bool atomic, Result &result);
  void addReader(const ThreadClock &clock, Cell &cell, Access access);
  /// Gives every byte its own cell from now on: neighbours in one cell would
  /// appear to race.
  void refine();
  void allocate();

  struct Free {
    void operator()(Cell *cells) const { std::free(cells); }
  };
  uint64_t size;
  /// Bytes that one cell stands for: the smallest elements of most kernels.
  uint64_t granule = 2;
  std::unique_ptr<Cell[], Free> cells;
  bool acrossBlocks;
  /// Readers beyond one per cell, and the unused lists.
  std::vector<std::vector<Access>> lists;
  std::vector<uint32_t> freeLists;
};

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_SHADOW_H
