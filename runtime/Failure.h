//===- Failure.h - Errors inside the runner ---------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_FAILURE_H
#define LINATTN_RUNTIME_FAILURE_H

#include <stdexcept>
#include <string>

namespace linattn::runner {

/// Thrown inside the runner only. The C functions turn it into a value.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The failure of an allocation.
struct MemoryFailure : Failure {
  using Failure::Failure;
};

/// The failure of a call that ended early.
struct InterruptedFailure : Failure {
  InterruptedFailure(const std::string &message, bool timedOut)
      : Failure(message), timedOut(timedOut) {}
  bool timedOut;
};

[[noreturn]] inline void fail(const std::string &message) {
  throw Failure(message);
}

} // namespace linattn::runner

#endif // LINATTN_RUNTIME_FAILURE_H
