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

/// Runs without the interpreter's lock. On the main thread signals reach the
/// kernels meanwhile: their handlers run between chunks, and a kernel ends
/// where one raises.
class ReleaseScope {
public:
  ReleaseScope();
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope &) = delete;

private:
  bool watches;
  PyThreadState *thread;
};

/// Throws what an `InterruptedError` is: a TimeoutError, or what the handler of
/// a signal has raised.
[[noreturn]] void throwInterrupted(llvm::Error error);

void registerInterrupts(nanobind::module_ &module);

} // namespace linattn::python

#endif // LINATTN_PYTHON_INTERRUPTS_H
