//===- WriteGuard.h - One writer of a state at a time -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels update states in place without the interpreter's lock. Two of them in
// one state, or in one row of a pool, would each lose what the other writes.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_WRITEGUARD_H
#define LINATTN_PYTHON_WRITEGUARD_H

#include "linattn/Compiler/BufferView.h"

namespace linattn::python {

/// Announces that a call writes a state in place, as long as it lives. Views
/// must outlive it.
class WriteGuard {
public:
  WriteGuard() = default;
  ~WriteGuard();
  WriteGuard(const WriteGuard &) = delete;

  /// False if another call writes there now. `rows` are those of a pool that
  /// are written; all of it if null.
  [[nodiscard]] bool enter(const BufferView &state, const BufferView *rows);

private:
  friend bool overlap(const WriteGuard &a, const WriteGuard &b);

  const char *begin = nullptr, *end = nullptr;
  const BufferView *rows = nullptr;
  bool entered = false;
};

} // namespace linattn::python

#endif // LINATTN_PYTHON_WRITEGUARD_H
