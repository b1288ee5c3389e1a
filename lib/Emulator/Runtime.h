//===- Runtime.h - The functions that compiled kernels call -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_RUNTIME_H
#define LINATTN_LIB_EMULATOR_RUNTIME_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace linattn::emulator {

/// Lists them by symbol.
void forEachRuntimeFunction(
    llvm::function_ref<void(llvm::StringRef symbol, void *address)> visit);

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_RUNTIME_H
