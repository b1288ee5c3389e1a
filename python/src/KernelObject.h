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

/// Throws the Python error of a failure, with a message that `edit` may change:
/// a MemoryError for an `OutOfMemoryError`, a TimeoutError or a signal
/// handler's exception for an `InterruptedError`, else a ValueError.
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

/// While `explain` calls a function: records the kernel's remarks on these
/// inputs and returns true, in which case the kernel must not run.
bool isExplained(const Kernel &kernel, llvm::ArrayRef<BufferView> inputs);
/// While `explain` calls a function: ends the call before it uses results that
/// no kernel has computed. Otherwise it does nothing.
void endExplainedCall();

} // namespace linattn::python

#endif // LINATTN_PYTHON_KERNELOBJECT_H
