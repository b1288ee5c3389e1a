//===- ForeignCode.h - Refuse foreign code in a module ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module computes on tensors. One of unknown origin calls no function
// of the process it is compiled into and holds no assembly.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CODEGEN_FOREIGNCODE_H
#define LINATTN_CODEGEN_FOREIGNCODE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
} // namespace llvm

namespace linattn::detail {

/// Returns an error at the first op of a dialect below tensors, vectors and
/// memrefs, which could express arbitrary machine code.
llvm::Error checkSource(mlir::ModuleOp module);

/// Returns an error where the code calls a function that is neither its own nor
/// one that the pipelines call (of the runtime, memory or mathematics).
llvm::Error checkSymbols(const llvm::Module &module);

} // namespace linattn::detail

#endif // LINATTN_CODEGEN_FOREIGNCODE_H
