//===- WriteGuard.cpp - One writer of a state at a time -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WriteGuard.h"

#include "llvm/ADT/STLExtras.h"
#include <mutex>

using namespace linattn;
using namespace linattn::python;

namespace {

/// The calls that write now. Usually there is one.
struct Writers {
  std::mutex mutex;
  llvm::SmallVector<const WriteGuard *, 8> guards;
};

} // namespace

static Writers &getWriters() {
  // Never destroyed: threads may write until the process ends.
  static auto *writers = new Writers;
  return *writers;
}

static llvm::SmallVector<int64_t> listRows(const BufferView &rows) {
  llvm::SmallVector<int64_t> list;
  for (int64_t i = 0, e = rows.getNumElements(); i < e; ++i) {
    int64_t at = i * rows.strides[0];
    int64_t row = rows.dtype == DType::I32
                      ? static_cast<const int32_t *>(rows.data)[at]
                      : static_cast<const int64_t *>(rows.data)[at];
    if (row >= 0) // Padding has no row.
      list.push_back(row);
  }
  llvm::sort(list);
  return list;
}

bool linattn::python::overlap(const WriteGuard &a, const WriteGuard &b) {
  if (a.end <= b.begin || b.end <= a.begin)
    return false;
  if (!a.rows || !b.rows || a.begin != b.begin)
    return true;
  llvm::SmallVector<int64_t> first = listRows(*a.rows),
                             second = listRows(*b.rows);
  return llvm::any_of(first, [&](int64_t row) {
    return std::binary_search(second.begin(), second.end(), row);
  });
}

bool WriteGuard::enter(const BufferView &state, const BufferView *poolRows) {
  begin = end = static_cast<const char *>(state.data);
  int64_t bytes = getByteSize(state.dtype);
  if (state.getNumElements() == 0)
    return true;
  for (auto [extent, stride] : llvm::zip(state.shape, state.strides))
    (stride < 0 ? begin : end) += (extent - 1) * stride * bytes;
  end += bytes;
  rows = poolRows;
  Writers &writers = getWriters();
  std::lock_guard<std::mutex> lock(writers.mutex);
  for (const WriteGuard *other : writers.guards)
    if (overlap(*this, *other))
      return false;
  writers.guards.push_back(this);
  entered = true;
  return true;
}

WriteGuard::~WriteGuard() {
  if (!entered)
    return;
  Writers &writers = getWriters();
  std::lock_guard<std::mutex> lock(writers.mutex);
  llvm::erase(writers.guards, this);
}
