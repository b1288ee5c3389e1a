//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_NPY_H
#define LINATTN_SUPPORT_NPY_H

#include "linattn/Support/DType.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace linattn {

/// An array in memory. bf16, which NumPy lacks, is stored as raw two-byte
/// elements (`V2`, as ml_dtypes does); uint16 reads as bf16 bits as well.
struct NpyArray {
  DType dtype = DType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  /// In elements; column-major if the file says so.
  llvm::SmallVector<int64_t, 4> strides;
  std::vector<char> data;
};

/// Reads versions 1 to 3 of the format, little-endian. Errors name the file and
/// the byte offset.
llvm::Expected<NpyArray> readNpy(llvm::StringRef path);
llvm::Expected<NpyArray> parseNpy(llvm::StringRef bytes, llvm::StringRef name);

/// Writes contiguous row-major elements.
llvm::Error writeNpy(llvm::StringRef path, DType dtype,
                     llvm::ArrayRef<int64_t> shape, const void *data);

} // namespace linattn

#endif // LINATTN_SUPPORT_NPY_H
