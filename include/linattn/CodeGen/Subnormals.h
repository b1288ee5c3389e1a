//===- Subnormals.h - Whether subnormal numbers are zeros -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gate that closes multiplies a state by e⁻²⁰ token after token, and an
// operation on the subnormal numbers that are left takes a hundred cycles more
// than one on others. They are 10³⁰ times smaller than anything they are added
// to: a kernel with results of f32 or 16 bits takes them for zeros. One with
// results of f64 keeps them; f64 in between (the sums of ABC, the modes of the
// LRU) ends in results that cannot show it.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CODEGEN_SUBNORMALS_H
#define LINATTN_CODEGEN_SUBNORMALS_H

namespace llvm {
class Function;
class Module;
} // namespace llvm

namespace linattn::detail {

enum class Subnormals {
  /// Subnormal numbers are zeros, unless a result is f64.
  Automatic,
  /// Subnormal numbers are kept, as in IEEE 754.
  Kept,
};

/// Renames the visible function `body` and gives its name to a wrapper. The
/// wrapper sets the thread's floating-point mode (rounding to nearest, no
/// traps, subnormal numbers zeros if `flush`), calls the body, and restores the
/// caller's mode. Only x86-64 and AArch64 get a wrapper.
void emitFloatMode(llvm::Function &body, bool flush);

} // namespace linattn::detail

#endif // LINATTN_CODEGEN_SUBNORMALS_H
