//===- Passes.h - Conversions out of linattn --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_PASSES_H
#define LINATTN_CONVERSION_PASSES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::linattn {

#define GEN_PASS_DECL
#include "linattn/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "linattn/Conversion/Passes.h.inc"

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_PASSES_H
