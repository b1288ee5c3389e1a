//===- Run.h - One call -----------------------------------------*- C++ -*-===//
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

/// The text of a program, and its name in messages.
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

/// The buffers of a call: the arrays themselves, or for a device copies
/// in its memory.
class CallBuffers {
public:
  static llvm::Expected<CallBuffers> create(const Kernel &kernel,
                                            std::vector<NpyArray> &inputs,
                                            std::vector<NpyArray> &outputs);
  CallBuffers(CallBuffers &&) = default;
  ~CallBuffers();

  /// Returns once the results are complete.
  llvm::Error run(const Kernel &kernel, const RunOptions &options);
  /// Copies results into the arrays, unless the kernel has written these
  /// itself.
  llvm::Error fetch(std::vector<NpyArray> &outputs);

private:
  CallBuffers() = default;
  llvm::Error moveToDevice(BufferView &view);

  llvm::SmallVector<BufferView> inputs, outputs;
  std::vector<void *> memory;
};

} // namespace linattn

#endif // LINATTN_TOOLS_LINATTN_RUN_RUN_H
