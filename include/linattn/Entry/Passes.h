//===- Passes.h - Passes on the entry of a compiled function ----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ENTRY_PASSES_H
#define LINATTN_ENTRY_PASSES_H

#include "linattn/Entry/EntryLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::linattn {

#define GEN_PASS_DECL
#include "linattn/Entry/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "linattn/Entry/Passes.h.inc"

} // namespace mlir::linattn

#endif // LINATTN_ENTRY_PASSES_H
