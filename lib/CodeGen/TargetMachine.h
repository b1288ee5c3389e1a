//===- TargetMachine.h - The machine that code is for -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CODEGEN_TARGETMACHINE_H
#define LINATTN_LIB_CODEGEN_TARGETMACHINE_H

#include "linattn/CodeGen/CodeGen.h"

#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace linattn::detail {

/// LLVM's code generator for a named machine; without a name, for this machine
/// or the one that LINATTN_CPU names. An error if LLVM does not know it.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const Machine &named = {});

} // namespace linattn::detail

#endif // LINATTN_LIB_CODEGEN_TARGETMACHINE_H
