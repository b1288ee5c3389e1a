//===- Entry.h - Functions that kernels are entered by ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_ENTRY_ENTRY_H
#define LINATTN_LIB_ENTRY_ENTRY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace mlir::linattn {

/// Checks the public functions of `module` and lists them without companions.
/// All errors are emitted at once.
FailureOr<SmallVector<func::FuncOp>> getCheckedEntries(ModuleOp module);

/// Whether `func` computes the result shapes of another function.
bool isShapesCompanion(func::FuncOp func);

/// The companion of `func`, if present.
func::FuncOp getShapesCompanion(func::FuncOp func);

/// Runs passes on an operation, as `Pass::runPipeline` does.
using RunPasses = function_ref<LogicalResult(OpPassManager &, Operation *)>;

/// The elements that a companion reads, beside sizes: those of offsets and
/// rows, and decays.
struct CheckedElements {
  bool indices = true, decays = false;
};

/// `getCheckedEntries`, each with a companion `@NAME__shapes` behind it: the
/// existing one, or a new one.
FailureOr<SmallVector<func::FuncOp>>
getEntriesWithCompanions(ModuleOp module, RunPasses run,
                         CheckedElements elements = {});

} // namespace mlir::linattn

#endif // LINATTN_LIB_ENTRY_ENTRY_H
