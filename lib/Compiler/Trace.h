//===- Trace.h - Print values as they are computed --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_COMPILER_TRACE_H
#define LINATTN_LIB_COMPILER_TRACE_H

#include "linattn/Support/DType.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace linattn::detail {

/// Lists the functions that traced code calls, by symbol.
void forEachTracePrinter(
    llvm::function_ref<void(llvm::StringRef symbol, void *address)> visit);

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_TRACE_H
