//===- KernelObject.h - Compiled functions, for Python ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_KERNELOBJECT_H
#define LINATTN_PYTHON_KERNELOBJECT_H

#include "linattn/Compiler/Kernel.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <nanobind/nanobind.h>

namespace linattn::python {

/// Throws the message of a failure, which `edit` may change: a MemoryError for
/// an `OutOfMemoryError`, a TimeoutError or what a signal handler has raised
/// for an `InterruptedError`, else a ValueError.
[[noreturn]] void
throwError(llvm::Error error,
           llvm::function_ref<std::string(std::string)> edit = {});

template <typename T>
T unwrap(llvm::Expected<T> value) {
  if (!value)
    throwError(value.takeError());
  return std::move(*value);
}

/// The thread count of a call: None is the process's setting.
int32_t parseNumThreads(nanobind::handle numThreads);

/// While `explain` calls a function: keeps what the kernel has to say of these
/// inputs and returns true; the kernel is not to run then.
bool isExplained(const Kernel &kernel, llvm::ArrayRef<BufferView> inputs);
/// Ends the call of a function that would take what the kernel has not computed
/// for its new state. Does nothing where none is explained.
void endExplainedCall();

} // namespace linattn::python

#endif // LINATTN_PYTHON_KERNELOBJECT_H
