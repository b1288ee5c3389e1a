//===- OptimizeModule.h - LLVM's optimizer on one module --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_OPTIMIZEMODULE_H
#define LINATTN_SUPPORT_OPTIMIZEMODULE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace linattn {

/// Runs `pipeline`, in the syntax of opt's -passes, on `module`, with the
/// instructions and costs of `machine`. Fails, without changing the module, if
/// the pipeline does not parse.
llvm::Error optimizeModule(llvm::Module &module, llvm::TargetMachine &machine,
                           llvm::StringRef pipeline);

} // namespace linattn

#endif // LINATTN_SUPPORT_OPTIMIZEMODULE_H
