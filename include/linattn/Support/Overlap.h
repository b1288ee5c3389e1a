//===- Overlap.h - Which elements of strided memory coincide ----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Plain C++ without allocations, for the compiler's kernels and for the runner,
// which has no LLVM.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_OVERLAP_H
#define LINATTN_SUPPORT_OVERLAP_H

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace linattn {

/// `data` is the address of the element with index zero in every dimension.
struct StridedMemory {
  const void *data;
  int64_t elementBytes;
  int64_t rank;
  const int64_t *shape;
  /// In elements.
  const int64_t *strides;

  bool isEmpty() const { return std::count(shape, shape + rank, 0) > 0; }
};

/// The addresses from the first byte of some memory to past its last; empty
/// without elements.
struct ByteRange {
  explicit ByteRange(const StridedMemory &memory) {
    int64_t last = 0, first = 0;
    for (int64_t i = 0; i < memory.rank; ++i) {
      int64_t reach = (memory.shape[i] - 1) * memory.strides[i];
      (reach < 0 ? first : last) += reach;
    }
    auto base = static_cast<int64_t>(reinterpret_cast<intptr_t>(memory.data));
    begin = base + first * memory.elementBytes;
    end = memory.isEmpty() ? begin : base + (last + 1) * memory.elementBytes;
  }
  bool meets(const ByteRange &other) const {
    return begin < other.end && other.begin < end;
  }

  int64_t begin, end;
};

namespace detail {

/// The steps of some memory and the number of times each is taken, smallest
/// first.
class SortedSteps {
public:
  static constexpr int64_t kMaxRank = 64;

  /// Omits strides of extents 0 and 1, and strides of 0 unless `zeros`.
  SortedSteps(const StridedMemory &memory, int64_t unit, bool zeros) {
    for (int64_t i = 0; i < memory.rank; ++i)
      if (memory.shape[i] > 1 && (zeros || memory.strides[i] != 0))
        steps[count++] = {std::abs(memory.strides[i]) * unit, memory.shape[i]};
    std::sort(begin(), end());
  }

  std::pair<int64_t, int64_t> *begin() { return steps; }
  std::pair<int64_t, int64_t> *end() { return steps + count; }

private:
  std::pair<int64_t, int64_t> steps[kMaxRank];
  int64_t count = 0;
};

/// The bytes of some memory as runs of `runBytes` that repeat with steps which
/// are all multiples of `period` (0 if there is a single run).
struct Footprint {
  explicit Footprint(const StridedMemory &memory)
      : runBegin(ByteRange(memory).begin), runBytes(memory.elementBytes) {
    for (auto [bytes, extent] :
         SortedSteps(memory, memory.elementBytes, /*zeros=*/false)) {
      if (period == 0 && bytes == runBytes)
        runBytes *= extent;
      else
        period = std::gcd(period, bytes);
    }
  }

  int64_t runBegin, runBytes;
  int64_t period = 0;
};

} // namespace detail

/// Whether the two may share a byte. Exact for adjacent slices of one buffer,
/// such as packed queries, keys and values; otherwise conservative.
inline bool mayOverlap(const StridedMemory &a, const StridedMemory &b) {
  if (a.isEmpty() || b.isEmpty() || !ByteRange(a).meets(ByteRange(b)))
    return false;
  if (std::max(a.rank, b.rank) > detail::SortedSteps::kMaxRank)
    return true;
  detail::Footprint first(a), second(b);
  int64_t period = std::gcd(first.period, second.period);
  if (period == 0)
    return true;
  // Modulo the period each is one run; q, k and v packed side by side are
  // disjoint runs.
  int64_t distance = (second.runBegin - first.runBegin) % period;
  if (distance < 0)
    distance += period;
  return distance < first.runBytes || distance + second.runBytes > period;
}

/// Whether two indices may share an element.
inline bool mayRepeatElements(const StridedMemory &memory) {
  if (memory.rank > detail::SortedSteps::kMaxRank)
    return true;
  int64_t covered = 0;
  for (auto [stride, extent] : detail::SortedSteps(memory, 1, /*zeros=*/true)) {
    if (stride <= covered)
      return true;
    covered += stride * (extent - 1);
  }
  return false;
}

} // namespace linattn

#endif // LINATTN_SUPPORT_OVERLAP_H
