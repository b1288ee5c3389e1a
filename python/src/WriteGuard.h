//===- WriteGuard.h - One writer of a state at a time -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Kernels update states in place without the interpreter's lock. Two kernels on
// one state, or on one row of a pool, would overwrite each other's result.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_WRITEGUARD_H
#define LINATTN_PYTHON_WRITEGUARD_H

#include "linattn/Compiler/BufferView.h"

namespace linattn::python {

/// Registers a call that writes a state in place, for the lifetime of the
/// guard. Views must outlive it.
class WriteGuard {
public:
  WriteGuard() = default;
  ~WriteGuard();
  WriteGuard(const WriteGuard &) = delete;

  /// Returns false if another call writes there now. `rows` are the written
  /// rows of a pool; null stands for the whole state.
  [[nodiscard]] bool enter(const BufferView &state, const BufferView *rows);

private:
  friend bool overlap(const WriteGuard &a, const WriteGuard &b);

  const char *begin = nullptr, *end = nullptr;
  const BufferView *rows = nullptr;
  bool entered = false;
};

} // namespace linattn::python

#endif // LINATTN_PYTHON_WRITEGUARD_H
