//===- Program.h - Formulas of sizes ----------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_PROGRAM_H
#define LINATTN_RUNTIME_PROGRAM_H

#include "linattn-c/Runner.h"
#include <vector>

namespace linattn::runner {

/// The operations of a formula, on 64 bits. All wrap around, and products
/// report overflow; a quotient by 0 is 0.
enum class Operation : uint8_t {
  Const,
  Size,   ///< of dimension b of operand a
  Stride, ///< in elements
  Add,
  Sub,
  Mul,
  Div, ///< rounds to zero
  Rem,
  FloorDiv,
  CeilDiv,
  Mod, ///< of FloorDiv
  Min,
  Max,
  And,
  Or,
  Xor,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  Select,  ///< a ? b : c
  Address, ///< of operand a
  Index,   ///< what a loop counts, from value a on; b identifies the loop
};

struct Instruction {
  Operation operation;
  int32_t a = 0, b = 0, c = 0;
  int64_t constant = 0;
};

/// Straight-line code over integers: instruction i computes value i from those
/// before it. Operands are checked when one is read from a file.
struct Program {
  std::vector<Instruction> instructions;

  /// `values` has room for one number per instruction. Returns false if a
  /// product overflows 64 bits, which makes the values that depend on it
  /// invalid.
  bool evaluate(const linattn_view *views, int64_t *values) const;
  /// Evaluates only the instructions in the list.
  void evaluate(const linattn_view *views, const std::vector<int32_t> &some,
                int64_t *values) const;
  /// The instructions that depend on value `index`, in order.
  std::vector<int32_t> findUsers(int32_t index) const;

private:
  bool evaluate(const linattn_view *views, size_t number,
                int64_t *values) const;
};

} // namespace linattn::runner

#endif // LINATTN_RUNTIME_PROGRAM_H
