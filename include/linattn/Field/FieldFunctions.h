//===- FieldFunctions.h - Field arithmetic for compiled code ----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_FIELD_FIELDFUNCTIONS_H
#define LINATTN_FIELD_FIELDFUNCTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace linattn {

/// The names that start with it belong to the functions of fields.
inline constexpr llvm::StringLiteral kFieldPrefix = "linattn_field";

/// The name of a function in one field: `linattn_field0_add`.
std::string getFieldSymbol(unsigned field, llvm::StringRef function);

struct FieldFunction {
  std::string symbol;
  void *address;
};

/// The functions on elements (`int64_t`, see PrimeField.h) that compiled code
/// calls, those of each field under names of their own. They live as long as
/// the process:
///
/// ```
/// neg, inv, exp, log, abs   x -> element
/// add, sub, mul, div        x, y -> element
/// max, min                  x, y -> element, by the order of signed residues
/// cmp                       x, y, outcomes that hold -> bool
/// from_int                  int64_t -> element
/// to_int                    x -> int64_t
/// pow_int                   x, int64_t -> element
/// random                    x, int64_t -> element, a random function per
/// number random2                   x, y, int64_t -> element
/// ```
llvm::ArrayRef<FieldFunction> getFieldFunctions();

/// The outcomes of a comparison, as bits of `cmp`'s third argument.
enum FieldOutcome : int64_t {
  kFieldEqual = 1,
  kFieldGreater = 2,
  kFieldLess = 4,
  kFieldUnordered = 8
};

} // namespace linattn

#endif // LINATTN_FIELD_FIELDFUNCTIONS_H
