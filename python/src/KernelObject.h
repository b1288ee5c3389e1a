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
#include <nanobind/nanobind.h>

namespace linattn::python {

/// Throws a ValueError with the message of a failure.
[[noreturn]] void throwError(llvm::Error error);

template <typename T>
T unwrap(llvm::Expected<T> value) {
  if (!value)
    throwError(value.takeError());
  return std::move(*value);
}

/// The thread count of a call: None is the process's setting.
int32_t parseNumThreads(nanobind::handle numThreads);

} // namespace linattn::python

#endif // LINATTN_PYTHON_KERNELOBJECT_H
