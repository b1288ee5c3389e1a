//===- LargeMemory.cpp - Memory for states and results --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Support/LargeMemory.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <unistd.h>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif

using namespace linattn;

namespace {

constexpr size_t line = 64, hugePage = size_t(2) << 20;

/// Unused blocks of whole huge pages, oldest first.
class Kept {
public:
  /// Null if there is none of that size.
  void *take(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found =
        std::find_if(blocks.rbegin(), blocks.rend(),
                     [&](const Block &block) { return block.bytes == bytes; });
    if (found == blocks.rend())
      return nullptr;
    void *memory = found->memory;
    total -= bytes;
    blocks.erase(std::next(found).base());
    return memory;
  }

  void put(void *memory, size_t bytes) {
    if (bytes > mostLargeMemoryKept)
      return std::free(memory);
#if defined(__linux__)
    // The pages stay unless the system needs them.
    (void)madvise(memory, bytes, MADV_FREE);
#endif
    std::lock_guard<std::mutex> lock(mutex);
    blocks.push_back({memory, bytes});
    total += bytes;
    size_t old = 0;
    for (; total > mostLargeMemoryKept; ++old) {
      total -= blocks[old].bytes;
      std::free(blocks[old].memory);
    }
    blocks.erase(blocks.begin(), blocks.begin() + old);
  }

  size_t getTotal() {
    std::lock_guard<std::mutex> lock(mutex);
    return total;
  }

private:
  struct Block {
    void *memory;
    size_t bytes;
  };

  std::mutex mutex;
  std::vector<Block> blocks;
  size_t total = 0;
};

/// Never destroyed: arrays may be freed after the destructors of static
/// objects.
Kept &getKept() {
  static Kept &kept = *new Kept;
  return kept;
}

} // namespace

void *linattn::allocateLarge(size_t bytes) {
  bool isHuge = bytes >= hugePage;
  if (isHuge) {
    if (bytes > std::numeric_limits<size_t>::max() - hugePage)
      return nullptr; // Rounded up, it would be a small request.
    // Requests of nearly the same size share their blocks.
    bytes = llvm::alignTo(bytes, hugePage);
    if (void *memory = getKept().take(bytes))
      return memory;
  }
  void *memory = nullptr;
  if (posix_memalign(&memory, isHuge ? hugePage : line, std::max(bytes, line)))
    return nullptr;
#if defined(__linux__)
  // A hint: without huge pages the memory is ordinary.
  if (isHuge)
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

void linattn::freeLarge(void *memory, size_t bytes) {
  if (memory && bytes >= hugePage)
    return getKept().put(memory, llvm::alignTo(bytes, hugePage));
  std::free(memory);
}

/// The memory that the system can still give a process: Linux's available
/// memory, or all of it elsewhere.
static uint64_t getAvailableMemory() {
  if (auto file = llvm::MemoryBuffer::getFileAsStream("/proc/meminfo")) {
    auto [before, after] = (*file)->getBuffer().split("MemAvailable:");
    uint64_t kilobytes;
    if (!after.ltrim().consumeInteger(10, kilobytes))
      return kilobytes << 10;
  }
  return uint64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

bool linattn::canAllocate(size_t bytes) {
  // The system overcommits memory.
  constexpr size_t much = size_t(256) << 20;
  if (bytes > much && bytes > getAvailableMemory())
    return false;
  void *memory = std::malloc(bytes);
  // Volatile, so that the compiler cannot remove the accesses.
  void *volatile seen = memory;
  std::free(seen);
  return memory != nullptr;
}

LargeBytes::LargeBytes(const LargeBytes &other) {
  if (!other.memory)
    return;
  memory = allocateLarge(other.bytes);
  if (!memory)
    llvm::report_bad_alloc_error("no memory for a copy of a state");
  bytes = other.bytes;
  std::memcpy(memory, other.memory, bytes);
}

size_t linattn::getLargeMemoryKept() { return getKept().getTotal(); }
