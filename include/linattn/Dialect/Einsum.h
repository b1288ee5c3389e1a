//===- Einsum.h - Building linalg ops from subscripts -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_EINSUM_H
#define LINATTN_DIALECT_EINSUM_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::linattn {

/// Builds the contraction `subscripts` ("bhik,bhjk->bhij") as a linalg.generic
/// that adds lhs·rhs into `init`, in init's element type.
Value einsum(OpBuilder &b, Location loc, StringRef subscripts, Value lhs,
             Value rhs, Value init);

/// Builds a linalg.generic from subscripts ("bhik,bhi->bhik"). The last group
/// is `init`; letters that it lacks are reduced. `body` gets the scalars of all
/// inputs and of init. An input with fewer heads `h` than init is read in
/// place, each head for its group; head counts must be static then.
Value elementwise(OpBuilder &b, Location loc, StringRef subscripts,
                  ValueRange inputs, Value init,
                  function_ref<Value(OpBuilder &, Location, ValueRange)> body);

/// A tensor of the sizes, filled with `value`.
Value filled(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> sizes,
             Type elementType, double value);

/// Extends or truncates a scalar float to `type`.
Value convertFloat(OpBuilder &b, Location loc, Value value, Type type);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_EINSUM_H
