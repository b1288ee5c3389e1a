//===- Run.h - One call ----------------------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TOOLS_LINATTN_RUN_RUN_H
#define LINATTN_TOOLS_LINATTN_RUN_RUN_H

#include "linattn/Compiler/Compiler.h"
#include "linattn/Support/Npy.h"

namespace linattn {

/// The text of a program and what messages call it.
struct Program {
  std::string text;
  std::string name;
};

/// Reads a file, or the standard input for "-".
llvm::Expected<Program> readProgram(llvm::StringRef path);

/// Allocates results of the right shapes and runs the kernel once.
llvm::Expected<std::vector<NpyArray>> runOnce(const Kernel &kernel,
                                              std::vector<NpyArray> &inputs,
                                              const RunOptions &runOptions);

} // namespace linattn

#endif // LINATTN_TOOLS_LINATTN_RUN_RUN_H
