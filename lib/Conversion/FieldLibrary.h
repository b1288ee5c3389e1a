//===- FieldLibrary.h - Prime field arithmetic in IR ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_FIELDLIBRARY_H
#define LINATTN_CONVERSION_FIELDLIBRARY_H

#include "linattn/Field/PrimeField.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::linattn {

/// The prefix of the functions' names.
inline constexpr llvm::StringLiteral kFieldPrefix = "linattn_field_";

/// A module of functions on elements (`i64`, see PrimeField.h):
///
/// ```
/// neg, inv, exp, log, abs   x -> element
/// add, sub, mul, div        x, y -> element
/// max, min                  x, y -> element, by the order of signed residues
/// cmp                       x, y, predicate of arith.cmpf -> i1
/// from_int                  i64 -> element
/// pow_int                   x, i64 -> element
/// random                    x, i64 -> element, a fixed random function per i64
/// random2                   x, y, i64 -> element
/// ```
std::string getFieldLibrary(const ::linattn::PrimeField &field);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_FIELDLIBRARY_H
