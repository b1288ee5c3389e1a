//===- Passes.h - Transformations of linattn IR -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_PASSES_H
#define LINATTN_TRANSFORMS_PASSES_H

#include "linattn/Entry/EntryLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::linattn {

/// When linattn-reassociate rewrites.
enum class ReassociateMode { Auto, Always, Never };

#define GEN_PASS_DECL
#include "linattn/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "linattn/Transforms/Passes.h.inc"

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_PASSES_H
