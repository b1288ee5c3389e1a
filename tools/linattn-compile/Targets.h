//===- Targets.h - Machines that objects are for ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TOOLS_COMPILE_TARGETS_H
#define LINATTN_TOOLS_COMPILE_TARGETS_H

#include "linattn/Bundle/Object.h"

namespace linattn {

/// Sets the triple, the CPU and its features, and initializes the code
/// generator. Without a name, the CPU has the common vectors of its
/// architecture; `native` is this machine. `vectorBits` is the least length of
/// its vectors, or 0.
llvm::Error setMachine(llvm::StringRef target, llvm::StringRef cpu,
                       llvm::StringRef features, int64_t vectorBits,
                       ObjectOptions &options);

/// Links an object to a shared library.
llvm::Expected<std::string> linkObject(llvm::StringRef object,
                                       const std::string &linker,
                                       const ObjectOptions &options);

} // namespace linattn

#endif // LINATTN_TOOLS_COMPILE_TARGETS_H
