//===- EntryLayout.h - Memory layout of kernel arguments --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ENTRY_ENTRYLAYOUT_H
#define LINATTN_ENTRY_ENTRYLAYOUT_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::linattn {

/// The innermost stride that compiled code assumes of its caller's buffers: 1,
/// any, or 1 for buffers of four dimensions (tokens and states) and any for
/// others (gates).
enum class InnermostStride { Unit, Dynamic, Tokens };

/// The strides that compiled code assumes of buffers: `innermost` of all but
/// those listed in `transposed`, by the numbers of arguments and behind them of
/// results. Of these the dimension before the last one has stride 1, as tokens
/// [B, H, T, D] have that lie in memory as [B, H, D, T].
struct EntryLayout {
  EntryLayout(InnermostStride innermost = InnermostStride::Unit,
              ArrayRef<int64_t> transposed = {})
      : innermost(innermost), transposed(transposed) {}

  InnermostStride innermost;
  SmallVector<int64_t> transposed;
};

/// The suffix of the function that computes result shapes.
inline constexpr llvm::StringLiteral kShapesSuffix = "__shapes";

/// The attribute of that function which lists the messages of its checks, with
/// `{0}`, `{1}`, … for sizes. Where there are checks, the shapes are followed
/// by the number of the first check that failed, −1 if none did, and by
/// `kMaxCheckedSizes` sizes for its message.
inline constexpr llvm::StringLiteral kChecksAttrName = "linattn.checks";
inline constexpr unsigned kMaxCheckedSizes = 4;

/// The attribute of an entry that lists which buffers may coincide. It has a
/// number for each argument: if the argument is a destination that may share
/// the buffer of another argument, which it overwrites element by element, the
/// number of that argument; else −1.
inline constexpr llvm::StringLiteral kInPlaceAttrName = "linattn.in_place";

/// The memref type through which a kernel sees a caller's buffer: any offset
/// and strides, except for an innermost stride of 1 where `innermost` says so.
MemRefType getEntryMemRefType(ArrayRef<int64_t> shape, Type elementType,
                              InnermostStride innermost,
                              Attribute memorySpace = {});

/// The same for a buffer of two dimensions or more that is transposed.
MemRefType getTransposedMemRefType(ArrayRef<int64_t> shape, Type elementType);

} // namespace mlir::linattn

#endif // LINATTN_ENTRY_ENTRYLAYOUT_H
