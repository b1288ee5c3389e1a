//===- CompileFlags.h - Options of tools that compile ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TOOLS_COMPILEFLAGS_H
#define LINATTN_TOOLS_COMPILEFLAGS_H

#include "linattn/Compiler/Compiler.h"

#include "llvm/Support/CommandLine.h"

namespace linattn {

/// The base of a tool's command line.
struct CompileFlags {
  explicit CompileFlags(llvm::StringRef name) : category(name) {}

  llvm::cl::OptionCategory category;
  llvm::cl::opt<Math> math{
      "math",
      llvm::cl::desc(
          "Arithmetic (default: strict; linattn-run reads LINATTN_MATH)"),
      llvm::cl::values(
          clEnumValN(Math::Strict, "strict",
                     "every operation as written, in its order"),
          clEnumValN(Math::Fast, "fast",
                     "fused and reassociated; on GPUs products take 16 bits of "
                     "f32")),
      llvm::cl::init(Math::Strict), llvm::cl::cat(category)};
  llvm::cl::opt<bool> trusted{
      "trusted",
      llvm::cl::desc("Let the module call any function and hold assembly, and "
                     "compile it in this process"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> explain{"explain",
                              llvm::cl::desc("Print the compiler's remarks"),
                              llvm::cl::cat(category)};
};

} // namespace linattn

#endif // LINATTN_TOOLS_COMPILEFLAGS_H
