//===- Prologue.h - Ops that kernels apply to operands ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_PROLOGUE_H
#define LINATTN_TRANSFORMS_PROLOGUE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::linattn {

/// On the ops that compute the rows of a scan's operands: the scan's kernel
/// computes these rows where it packs them, and no buffer stores them.
constexpr StringLiteral kPrologueAttrName = "linattn.prologue";

/// The only linalg.generic that writes an allocation; null if there are none or
/// several.
linalg::GenericOp findWriter(Value memref);
/// The only fill of an allocation; null if there are none or several.
linalg::FillOp findFill(Value memref);
/// The addition that ends the body of a sum, out + f(…); null for other bodies.
arith::AddFOp getRowSum(linalg::GenericOp op);

/// The op that computes the rows of an operand, or one number per token, inside
/// the kernel; null if no op is marked.
linalg::GenericOp findPrologue(Value memref);

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_PROLOGUE_H
