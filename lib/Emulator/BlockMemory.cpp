//===- BlockMemory.cpp - A thread block: accesses to memory ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Block.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include <cstring>

using namespace linattn::emulator;

/// Memory for illegal accesses: reads give NaNs, writes are discarded.
static constexpr unsigned kScratchBytes = 4096;
static char *getScratch(AccessKind kind) {
  static thread_local char poison[kScratchBytes], sink[kScratchBytes];
  if (!isRead(kind))
    return sink;
  std::memset(poison, 0xff, kScratchBytes);
  return poison;
}

static bool isShared(uint64_t address) {
  return address - kSharedBase < kSharedSpan;
}

std::string Block::describe(uint64_t address) {
  if (isShared(address))
    return "shared memory + " + std::to_string(address - kSharedBase);
  return "address 0x" + llvm::utohexstr(address);
}

static const char *getVerb(AccessKind kind) {
  return isRead(kind)                ? "reads "
         : kind == AccessKind::Write ? "writes "
                                     : "updates ";
}

static std::string describeOther(const Shadow::Result &result) {
  return result.otherBlock ? "thread " + std::to_string(result.otherThread) +
                                 " of another block"
                           : "thread " + std::to_string(result.otherThread);
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

void *Block::access(Thread &thread, AccessKind kind, uint64_t address,
                    unsigned bytes, unsigned alignment, uint32_t site) {
  auto *local = reinterpret_cast<char *>(address);
  if (thread.stack->contains(local))
    return local;
  if (bytes > kScratchBytes) {
    note(Check::GlobalOutOfBounds, thread, site,
         llvm::Twine(bytes) + " bytes at once are more than can be emulated");
    stop(thread);
  }
  // The widest access of the hardware takes 16 bytes. Accesses with less
  // alignment are split.
  unsigned piece = llvm::bit_floor(std::min({bytes, alignment, 16u}));
  if (address % piece != 0)
    note(Check::Misaligned, thread, site,
         getVerb(kind) + llvm::Twine(bytes) + " bytes at " + describe(address) +
             ", which is not a multiple of " + llvm::Twine(piece));
  bool isWrite = kind != AccessKind::Read;
  if (isShared(address)) {
    char *data = accessShared(thread, kind, address, bytes, site);
    log(thread, AccessLog::Space::Shared, isWrite, address, bytes, piece, site);
    return data;
  }
  void *data = accessGlobal(thread, kind, address, bytes, site);
  log(thread, AccessLog::Space::Global, isWrite, address, bytes, piece, site);
  return data;
}

void Block::log(Thread &thread, AccessLog::Space space, bool isWrite,
                uint64_t address, unsigned bytes, unsigned piece,
                uint32_t site) {
  AccessLog &log = thread.warp->log;
  for (unsigned done = 0; done < bytes;) {
    unsigned size = std::min(piece, llvm::bit_floor(bytes - done));
    log.add(thread.lane, site, space, isWrite, address + done, size);
    done += size;
  }
  if (log.isFull(thread.lane))
    letOthersCatchUp(thread);
}

void Block::flushLog(Warp &warp) {
  warp.log.flush(report.sites);
  warp.logFull = 0;
}

void Block::letOthersCatchUp(Thread &thread) {
  Warp &warp = *thread.warp;
  warp.logFull |= 1u << thread.lane;
  if (warp.ready & ~warp.logFull)
    suspend(thread);
  else
    flushLog(warp);
}

void Block::noteShared(Thread &thread, const Shadow::Result &result,
                       bool isWrite, uint32_t site) {
  std::string where = describe(kSharedBase + result.offset);
  bool isBulk = result.otherThread >= threads.size();
  std::string other =
      isBulk ? "a bulk copy" : "thread " + std::to_string(result.otherThread);
  if (result.conflict)
    note(Check::SharedRace, thread, site,
         (isWrite ? "writes " : "reads ") + where + ", which " + other +
             " used with no barrier in between");
  if (result.pending)
    note(Check::EarlyRead, thread, site,
         (isWrite ? "writes " : "reads ") + where +
             ", where a copy may still be under way");
  if (result.unfenced)
    note(Check::MissingFence, thread, site,
         (isWrite ? "writes " : "reads ") + where + ", which thread " +
             llvm::Twine(result.otherThread) +
             " wrote with no fence.proxy.async in between");
  if (result.uninitialized)
    note(Check::UninitializedRead, thread, site,
         "reads " + where + ", which was never written");
}

char *Block::accessShared(Thread &thread, AccessKind kind, uint64_t address,
                          unsigned bytes, uint32_t site) {
  uint64_t offset = address - kSharedBase;
  if (offset > shared.size() || bytes > shared.size() - offset) {
    note(Check::SharedOutOfBounds, thread, site,
         getVerb(kind) + llvm::Twine(bytes) + " bytes at " + describe(address) +
             " of " + llvm::Twine(shared.size()));
    return getScratch(kind);
  }
  Shadow::Result result =
      sharedShadow.access(thread.clock, kind, offset, bytes);
  if (result.conflict || result.pending || result.uninitialized ||
      result.unfenced)
    noteShared(thread, result, !isRead(kind), site);
  return shared.data() + offset;
}

void *Block::accessGlobal(Thread &thread, AccessKind kind, uint64_t address,
                          unsigned bytes, uint32_t site) {
  GlobalMemory::Buffer *buffer = global.find(address);
  if (!buffer) {
    note(Check::GlobalOutOfBounds, thread, site,
         getVerb(kind) + llvm::Twine(bytes) + " bytes at " + describe(address) +
             ", in no argument's buffer");
    return getScratch(kind);
  }
  uint64_t offset = address - buffer->address;
  if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
    note(Check::GlobalOutOfBounds, thread, site,
         getVerb(kind) + llvm::Twine(bytes) + " bytes at offset " +
             llvm::Twine(static_cast<int64_t>(offset)) + " of argument " +
             llvm::Twine(buffer->argument) + ", which has " +
             llvm::Twine(buffer->bytes) + " bytes");
    return getScratch(kind);
  }
  if (kind != AccessKind::Write)
    buffer->bytesRead.insert(offset, bytes);
  if (!buffer->writable) {
    if (kind == AccessKind::Read)
      return buffer->data + offset;
    note(Check::ReadOnlyWrite, thread, site,
         getVerb(kind) + llvm::Twine(bytes) + " bytes at offset " +
             llvm::Twine(offset) + " of argument " +
             llvm::Twine(buffer->argument));
    return getScratch(kind);
  }
  if (kind != AccessKind::Read)
    buffer->bytesWritten.insert(offset, bytes);
  Shadow::Result result =
      buffer->shadow.access(thread.clock, kind, offset, bytes);
  if (result.conflict)
    note(Check::GlobalRace, thread, site,
         getVerb(kind) + llvm::Twine(bytes) + " bytes at offset " +
             llvm::Twine(offset) + " of argument " +
             llvm::Twine(buffer->argument) + ", which " +
             describeOther(result) + " used, unordered");
  return buffer->data + offset;
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

void Block::beginCopy(Thread &thread, uint64_t destination, uint64_t source,
                      unsigned bytes, unsigned sourceBytes, uint32_t site) {
  if (destination % bytes != 0 || source % bytes != 0)
    note(Check::Misaligned, thread, site,
         "copies " + llvm::Twine(bytes) + " bytes from " + describe(source) +
             " to " + describe(destination));
  const char *from = nullptr;
  if (sourceBytes > 0) {
    from = static_cast<const char *>(
        accessGlobal(thread, AccessKind::Read, source, sourceBytes, site));
    log(thread, AccessLog::Space::Global, /*isWrite=*/false, source,
        sourceBytes, bytes, site);
  }
  uint64_t offset = destination - kSharedBase;
  if (offset > shared.size() || bytes > shared.size() - offset) {
    note(Check::SharedOutOfBounds, thread, site,
         "copies " + llvm::Twine(bytes) + " bytes to " + describe(destination) +
             " of " + llvm::Twine(shared.size()));
    return;
  }
  Shadow::Result result = sharedShadow.beginCopy(thread.clock, offset, bytes);
  if (result.conflict || result.pending)
    noteShared(thread, result, /*isWrite=*/true, site);
  log(thread, AccessLog::Space::Shared, /*isWrite=*/true, destination, bytes,
      bytes, site);
  thread.copies.push_back({offset, from, bytes, sourceBytes});
}

void Block::commitCopies(Thread &thread) {
  thread.groupEnds.push_back(thread.copies.size());
}

/// Delivers the first `count` copies. Copies arrive as late as allowed, so code
/// with too few waits reads old data.
void Block::deliver(Thread &thread, size_t count) {
  for (const AsyncCopy &copy :
       llvm::ArrayRef(thread.copies).take_front(count)) {
    char *to = shared.data() + copy.sharedOffset;
    if (copy.sourceBytes > 0)
      std::memcpy(to, copy.source, copy.sourceBytes);
    std::memset(to + copy.sourceBytes, 0, copy.bytes - copy.sourceBytes);
    sharedShadow.completeCopy(thread.clock, copy.sharedOffset, copy.bytes);
  }
  thread.copies.erase(thread.copies.begin(), thread.copies.begin() + count);
}

void Block::waitCopies(Thread &thread, unsigned pendingGroups) {
  if (thread.groupEnds.size() <= pendingGroups)
    return;
  size_t complete = thread.groupEnds.size() - pendingGroups;
  size_t count = thread.groupEnds[complete - 1];
  deliver(thread, count);
  thread.groupEnds.erase(thread.groupEnds.begin(),
                         thread.groupEnds.begin() + complete);
  for (size_t &end : thread.groupEnds)
    end -= count;
}

void Block::waitAllCopies(Thread &thread) {
  deliver(thread, thread.copies.size());
  thread.groupEnds.clear();
}

void Block::fenceProxy(Thread &thread) {
  ThreadClock &clock = thread.clock;
  std::copy_n(clock.seen, ThreadClock::slots(threads.size()), clock.fenced);
  // Later writes of the thread need another fence.
  ++clock.seen[thread.index];
}
