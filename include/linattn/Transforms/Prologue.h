//===- Prologue.h - What a kernel makes of its operands -*- C++ -*- C++ -*-===//
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

/// On the ops that make the rows of a scan's operands: its kernel makes these
/// rows where it packs them, and nothing stores them.
constexpr StringLiteral kPrologueAttrName = "linattn.prologue";

/// The only linalg.generic that writes an allocation; null if there are none or
/// several.
linalg::GenericOp findWriter(Value memref);
/// The only fill of an allocation; null if there are none or several.
linalg::FillOp findFill(Value memref);
/// The sum that ends a body, out + f(…); null if it ends in something else.
arith::AddFOp getRowSum(linalg::GenericOp op);

/// The op that makes an operand, or the numbers of its tokens, where a kernel
/// is to make them; else null.
linalg::GenericOp findPrologue(Value memref);

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_PROLOGUE_H
