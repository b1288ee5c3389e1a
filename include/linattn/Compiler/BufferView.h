//===- BufferView.h - Strided views of the caller's memory ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_COMPILER_BUFFERVIEW_H
#define LINATTN_COMPILER_BUFFERVIEW_H

#include "linattn/Support/DType.h"
#include "linattn/Support/Sizes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace linattn {

/// A strided view of memory that the caller owns. `data` points at the
/// element with index zero in every dimension, also when strides are negative.
/// A scalar is a view of rank 0.
struct BufferView {
  void *data = nullptr;
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  /// In elements, one per dimension; may be zero or negative.
  llvm::SmallVector<int64_t, 4> strides;
  /// The memory must not be written. Results refuse such a view.
  bool readOnly = false;

  BufferView() = default;

  /// A contiguous row-major view. Strides wrap around if the array has more
  /// bytes than there are addresses; calls refuse it.
  BufferView(void *data, DType dtype, llvm::ArrayRef<int64_t> shape)
      : data(data), dtype(dtype), shape(shape) {
    strides.resize(shape.size());
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      strides[i] = stride;
      stride = multiplyWrapping(stride, shape[i]);
    }
  }

  /// A contiguous row-major view of memory that will only be read.
  BufferView(const void *data, DType dtype, llvm::ArrayRef<int64_t> shape)
      : BufferView(const_cast<void *>(data), dtype, shape) {
    readOnly = true;
  }

  BufferView(void *data, DType dtype, llvm::ArrayRef<int64_t> shape,
             llvm::ArrayRef<int64_t> strides, bool readOnly = false)
      : data(data), dtype(dtype), shape(shape), strides(strides),
        readOnly(readOnly) {}

  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }

  /// Saturates at the largest number.
  int64_t getNumElements() const { return countElements(shape); }

  /// Whether the number of elements and the distance between any two of them
  /// can be addressed.
  bool fitsMemory() const {
    return fitsAddresses(getByteSize(dtype), shape, strides);
  }

  /// Whether elements of the innermost dimension are adjacent in memory, as
  /// vectorised code requires. Extents of 0 and 1 have no stride.
  bool hasUnitInnermostStride() const {
    return shape.empty() || shape.back() <= 1 || strides.back() == 1 ||
           getNumElements() == 0;
  }
};

} // namespace linattn

#endif // LINATTN_COMPILER_BUFFERVIEW_H
