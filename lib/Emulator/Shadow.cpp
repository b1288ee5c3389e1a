//===- Shadow.cpp - Who touched memory last -------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Shadow.h"

#include "llvm/Support/ErrorHandling.h"

using namespace linattn::emulator;

Shadow::Shadow(uint64_t bytes, bool acrossBlocks)
    : size(bytes), acrossBlocks(acrossBlocks), lists(1) {
  allocate();
}

void Shadow::allocate() {
  // Zeros mean untouched, and calloc gets them for free, page by page.
  uint64_t count = size / granule + 1;
  cells.reset(static_cast<Cell *>(std::calloc(count, sizeof(Cell))));
  if (!cells)
    llvm::report_bad_alloc_error("no memory for the emulator's race check");
}

void Shadow::refine() {
  std::unique_ptr<Cell[], Free> pairs = std::move(cells);
  granule = 1;
  allocate();
  for (uint64_t i = 0; i < size; ++i) {
    cells[i] = pairs[i / 2];
    if (i % 2 == 0 || cells[i].moreReads == 0)
      continue;
    // A copy, since the list may move.
    std::vector<Access> readers = lists[cells[i].moreReads];
    cells[i].moreReads = lists.size();
    lists.push_back(std::move(readers));
  }
}

bool Shadow::isConcurrent(const ThreadClock &clock,
                          const Access &earlier) const {
  if (earlier.moment == 0)
    return false;
  if (earlier.moment <= clock.base)
    return acrossBlocks;
  return earlier.thread != clock.thread &&
         earlier.moment > clock.seen[earlier.thread];
}

void Shadow::noteConflict(const ThreadClock &clock, const Access &earlier,
                          Result &result) const {
  if (result.conflict)
    return;
  result.conflict = true;
  result.otherThread = earlier.thread;
  result.otherBlock = earlier.moment <= clock.base;
}

/// Keeps the accesses that a later write must be ordered after: every reader
/// since the last write, unless a newer kept reader is ordered after it.
void Shadow::addReader(const ThreadClock &clock, Cell &cell, Access access) {
  if (!isConcurrent(clock, cell.read)) {
    cell.read = access;
    return;
  }
  if (cell.moreReads == 0) {
    if (freeLists.empty()) {
      freeLists.push_back(lists.size());
      lists.emplace_back();
    }
    cell.moreReads = freeLists.back();
    freeLists.pop_back();
  }
  std::vector<Access> &readers = lists[cell.moreReads];
  for (Access &other : readers) {
    // One reader of another block suffices.
    bool sameReader = other.thread == access.thread ||
                      (other.moment <= clock.base && acrossBlocks);
    if (sameReader || !isConcurrent(clock, other)) {
      other = access;
      return;
    }
  }
  readers.push_back(access);
}

void Shadow::read(const ThreadClock &clock, Cell &cell, Result &result) {
  if (cell.write.moment <= (acrossBlocks ? 0 : clock.base))
    result.uninitialized = true;
  else if (cell.write.pending)
    result.pending = true;
  else if (isConcurrent(clock, cell.write))
    noteConflict(clock, cell.write, result);
  auto thread = static_cast<uint16_t>(clock.thread);
  if (cell.read.moment == clock.now() && cell.read.thread == thread)
    return;
  addReader(clock, cell, {clock.now(), thread, false, false});
}

void Shadow::write(const ThreadClock &clock, Cell &cell, bool atomic,
                   Result &result) {
  if (cell.write.pending && cell.write.moment > clock.base)
    result.pending = true;
  else if (!(atomic && cell.write.atomic) && isConcurrent(clock, cell.write))
    noteConflict(clock, cell.write, result);
  if (isConcurrent(clock, cell.read))
    noteConflict(clock, cell.read, result);
  if (cell.moreReads != 0) {
    std::vector<Access> &readers = lists[cell.moreReads];
    for (const Access &reader : readers)
      if (isConcurrent(clock, reader))
        noteConflict(clock, reader, result);
    readers.clear();
    freeLists.push_back(cell.moreReads);
    cell.moreReads = 0;
  }
  cell.read = {};
  cell.write = {clock.now(), static_cast<uint16_t>(clock.thread), atomic,
                false};
}

Shadow::Result Shadow::access(const ThreadClock &clock, AccessKind kind,
                              uint64_t offset, uint64_t bytes) {
  if (granule > 1 && (offset % granule != 0 || bytes % granule != 0))
    refine();
  Result result;
  result.offset = offset;
  uint64_t end = (offset + bytes + granule - 1) / granule;
  for (uint64_t i = offset / granule; i < end; ++i) {
    const Access &written = cells[i].write;
    if (kind == AccessKind::AsyncRead && written.moment > clock.base &&
        written.moment > clock.fenced[written.thread]) {
      result.unfenced = true;
      result.otherThread = written.thread;
    }
    if (isRead(kind))
      read(clock, cells[i], result);
    else
      write(clock, cells[i], kind == AccessKind::Atomic, result);
  }
  return result;
}

Shadow::Result Shadow::beginCopy(const ThreadClock &clock, uint64_t offset,
                                 uint64_t bytes) {
  Result result = access(clock, AccessKind::Write, offset, bytes);
  for (uint64_t i = offset / granule; i < (offset + bytes) / granule; ++i)
    cells[i].write.pending = true;
  return result;
}

Shadow::Result Shadow::beginBulkCopy(const ThreadClock &clock, uint64_t offset,
                                     uint64_t bytes) {
  bool unfenced = false;
  unsigned writer = 0;
  for (uint64_t i = offset / granule; i < (offset + bytes) / granule; ++i) {
    const Access &written = cells[i].write;
    if (written.moment > clock.base &&
        written.moment > clock.fenced[written.thread]) {
      unfenced = true;
      writer = written.thread;
    }
  }
  Result result = beginCopy(clock, offset, bytes);
  // An access that is not ordered at all has reported that already.
  if (unfenced && !result.conflict && !result.pending) {
    result.unfenced = true;
    result.otherThread = writer;
  }
  return result;
}

void Shadow::completeCopy(const ThreadClock &clock, uint64_t offset,
                          uint64_t bytes) {
  // The data may have arrived at any time until now: others must synchronise
  // with this moment, not with the issue.
  for (uint64_t i = offset / granule; i < (offset + bytes) / granule; ++i)
    cells[i].write = {clock.now(), static_cast<uint16_t>(clock.thread), false,
                      false};
}
