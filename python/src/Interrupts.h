//===- Interrupts.h - Signals and deadlines of calls ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_INTERRUPTS_H
#define LINATTN_PYTHON_INTERRUPTS_H

#include "llvm/Support/Error.h"
#include <nanobind/nanobind.h>

namespace linattn::python {

/// Releases the interpreter's lock. On the main thread, kernels handle signals
/// meanwhile: handlers run between chunks, and a kernel ends if one raises.
class ReleaseScope {
public:
  ReleaseScope();
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope &) = delete;

private:
  bool watches;
  PyThreadState *thread;
};

/// Throws the Python error of an `InterruptedError`: a TimeoutError, or the
/// exception of a signal handler.
[[noreturn]] void throwInterrupted(llvm::Error error);

void registerInterrupts(nanobind::module_ &module);

} // namespace linattn::python

#endif // LINATTN_PYTHON_INTERRUPTS_H
