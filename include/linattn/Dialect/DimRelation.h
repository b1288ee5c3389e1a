//===- DimRelation.h - Relations between operand dimensions -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op's constraints on its operands' sizes, as data: the verifier checks it
// on static sizes, the entry point of a compiled function on dynamic ones.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_DIMRELATION_H
#define LINATTN_DIALECT_DIMRELATION_H

#include "linattn/Analysis/FeatureSize.h"
#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"

#include <optional>
#include <string>

namespace mlir::linattn {

/// One dimension of an operand, with the operand's name for messages.
struct DimRef {
  Value value;
  int64_t dim;
  StringRef name;
};

/// `Equal`: first == second. `Divides`: one of the two divides the other.
/// `Max`: first == the largest of the others. `OneLess`: first + 1 == second.
/// `Quotient`: first == second / the divisor of the relation, rounded down.
/// `Features`: first == the number of features that the map called `what` makes
/// of second, by the formula of the relation.
enum class DimRelationKind { Equal, Divides, Max, OneLess, Quotient, Features };

struct DimRelation {
  DimRelationKind kind;
  SmallVector<DimRef, 4> dims;
  /// The dimension's name: "sequence length", "head size", …
  StringRef what;
  /// The constraint's number in the op's description, for readers of the code.
  StringRef id;
  ::linattn::FeatureSizeFormula formula = {};
  int64_t divisor = 1;

  /// Checks the relation on sizes, one per entry of `dims`.
  bool holds(ArrayRef<int64_t> sizes) const;

  /// "expected key and value to have the same sequence length, but got 128 and
  /// 64"; `sizes` are spelled as given.
  std::string message(ArrayRef<std::string> sizes) const;
};

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_DIMRELATION_H
