//===- Operands.h - Check a call's buffers ----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_OPERANDS_H
#define LINATTN_RUNTIME_OPERANDS_H

#include "Bundle.h"

namespace linattn::runner {

/// An array on the stack unless it is large: launches must not take locks of
/// the allocator.
template <typename T, size_t N>
class StackArray {
public:
  explicit StackArray(size_t size)
      : heap(size > N ? new T[size] : nullptr),
        data(heap ? heap.get() : local) {}
  StackArray(const StackArray &) = delete;

  T *get() { return data; }
  T &operator[](size_t i) { return data[i]; }

private:
  T local[N];
  std::unique_ptr<T[]> heap;
  T *data;
};

/// The views of one call. Absent strides are filled in.
class CallViews {
public:
  /// Throws a Failure that names the operand unless `count` views fit the
  /// operands of the bundle, or its arguments if `onlyArguments`.
  CallViews(const Bundle &bundle, const linattn_view *views, int32_t count,
            bool onlyArguments);

  const linattn_view *get() { return views.get(); }

  /// Writes the extents of all results, one after another. Throws unless the
  /// sizes satisfy the rules of the bundle.
  void computeShapes(int64_t *extents);

  /// Throws unless the results have these extents and do not overlap other
  /// memory.
  void checkResults(const int64_t *extents);

private:
  void checkView(size_t index);
  void checkOverlap(size_t result);

  const Bundle &bundle;
  size_t count;
  StackArray<linattn_view, 32> views;
  StackArray<int64_t, 128> strides;
};

/// "argument 1 (%k)", "result 0".
std::string describeOperand(const Bundle &bundle, size_t index);

/// "2x8x?x64", or "scalar" for rank 0.
std::string formatExtents(const int64_t *extents, size_t rank);

/// The number of extents of all results together.
size_t countResultExtents(const Bundle &bundle);

} // namespace linattn::runner

#endif // LINATTN_RUNTIME_OPERANDS_H
