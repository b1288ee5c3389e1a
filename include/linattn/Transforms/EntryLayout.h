//===- EntryLayout.h - Memory layout of kernel arguments --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_ENTRYLAYOUT_H
#define LINATTN_TRANSFORMS_ENTRYLAYOUT_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::linattn {

/// What compiled code may assume about the innermost stride of the buffers it
/// is called with.
enum class InnermostStride { Unit, Dynamic };

/// The suffix of the function that computes result shapes.
inline constexpr llvm::StringLiteral kShapesSuffix = "__shapes";

/// The memref type through which a kernel sees a caller's buffer: any offset
/// and strides, except for an innermost stride of 1 if `innermost` says so.
MemRefType getEntryMemRefType(ArrayRef<int64_t> shape, Type elementType,
                              InnermostStride innermost,
                              Attribute memorySpace = {});

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_ENTRYLAYOUT_H
