//===- Program.h - Calls that run without Python ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All but the memory of a call: a kernel, and how each of its views lies in one
// of the buffers that another runtime passes.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_PROGRAM_H
#define LINATTN_PYTHON_PROGRAM_H

#include "linattn/Compiler/Kernel.h"

#include <memory>
#include <vector>

namespace linattn::python {

/// A kernel and the layouts of its views in contiguous buffers.
class Program {
public:
  /// Stands for a view that is 0 everywhere.
  static constexpr int64_t kZeros = -1;

  /// A view without its address.
  struct Slot {
    /// The number of the buffer, or `kZeros`.
    int64_t buffer;
    BufferView view;
  };

  /// A buffer of a call.
  struct Memory {
    void *data;
    DType dtype;
    int64_t numElements;
  };

  Program(Kernel kernel, std::vector<Slot> inputs, std::vector<Slot> outputs,
          int32_t numThreads)
      : kernel(std::move(kernel)), inputs(std::move(inputs)),
        outputs(std::move(outputs)), numThreads(numThreads) {}

  /// Runs on buffers. A buffer of another type or size than the program expects
  /// is an error.
  llvm::Error run(llvm::ArrayRef<Memory> arguments,
                  llvm::ArrayRef<Memory> results) const;

  /// Pairs of buffers that may be the same: of an argument, and of the result
  /// that updates it.
  std::vector<std::pair<int64_t, int64_t>> findAliases() const;

private:
  Kernel kernel;
  std::vector<Slot> inputs, outputs;
  int32_t numThreads;
};

/// The program of that name. `linattn._jax` makes an unknown one. Throws with
/// the reason if there is none. Safe from any thread.
std::shared_ptr<const Program> findProgram(const std::string &name);

/// The address of the handler by which XLA calls programs.
void *getXlaHandler();

} // namespace linattn::python

#endif // LINATTN_PYTHON_PROGRAM_H
