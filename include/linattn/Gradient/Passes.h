//===- Passes.h - Passes of gradients ---------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_GRADIENT_PASSES_H
#define LINATTN_GRADIENT_PASSES_H

#include "linattn/Dialect/LinAttn.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace mlir::linattn {

/// The suffix of a vector-Jacobian product's name.
inline constexpr llvm::StringLiteral kVjpSuffix = "_vjp";
/// On a function: differentiate it for the listed operands.
inline constexpr llvm::StringLiteral kDifferentiateAttrName =
    "linattn.differentiate";
/// On a function: its vector-Jacobian product takes the function's results as
/// arguments behind the operands, instead of recomputing them.
inline constexpr llvm::StringLiteral kKeepResultsAttrName =
    "linattn.keep_results";
/// On a function: it is a vector-Jacobian product.
inline constexpr llvm::StringLiteral kGradientAttrName = "linattn.gradient";

#define GEN_PASS_DECL
#include "linattn/Gradient/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "linattn/Gradient/Passes.h.inc"

} // namespace mlir::linattn

#endif // LINATTN_GRADIENT_PASSES_H
