//===- DimRelation.cpp - Relations between operand dimensions -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/DimRelation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::linattn;

bool DimRelation::holds(ArrayRef<int64_t> sizes) const {
  switch (kind) {
  case DimRelationKind::Equal:
    return sizes[0] == sizes[1];
  case DimRelationKind::Divides: {
    int64_t small = std::min(sizes[0], sizes[1]);
    int64_t large = std::max(sizes[0], sizes[1]);
    return small == 0 ? large == 0 : large % small == 0;
  }
  case DimRelationKind::Max:
    return sizes[0] == *llvm::max_element(sizes.drop_front());
  case DimRelationKind::OneLess:
    return sizes[0] + 1 == sizes[1];
  case DimRelationKind::Quotient:
    return sizes[0] == sizes[1] / divisor;
  case DimRelationKind::Features:
    return sizes[0] == formula.evaluate(sizes[1]);
  }
  return false;
}

/// "a", "a and b", "a, b and c".
static std::string join(ArrayRef<std::string> words) {
  if (words.size() < 2)
    return words.empty() ? std::string() : words.front();
  return llvm::join(words.drop_back(), ", ") + " and " + words.back();
}

std::string DimRelation::message(ArrayRef<std::string> sizes) const {
  SmallVector<std::string> names = llvm::map_to_vector(
      dims, [](const DimRef &ref) { return ref.name.str(); });
  std::string got = ", but got " + join(sizes);
  switch (kind) {
  case DimRelationKind::Equal:
    return "expected " + join(names) + " to have the same " + what.str() + got;
  case DimRelationKind::Divides:
    return "expected " + what.str() + "s of " + join(names) +
           " to divide one another" + got;
  case DimRelationKind::Max:
    return "expected the " + what.str() + " of " + names[0] +
           " to be the largest of those of " +
           join(ArrayRef(names).drop_front()) + " (" +
           join(sizes.drop_front()) + "), but got " + sizes[0];
  case DimRelationKind::OneLess:
    return "expected the " + what.str() + " of " + names[0] +
           " to be one less than the length of " + names[1] + " (" + sizes[1] +
           "), but got " + sizes[0];
  case DimRelationKind::Quotient:
    return "expected " + names[0] + " to have as many states as the " +
           what.str() + " of " + names[1] + " (" + sizes[1] + ") divided by " +
           std::to_string(divisor) + ", but got " + sizes[0];
  case DimRelationKind::Features:
    return "expected " + names[0] + " to have the features that " + what.str() +
           " makes of the " + (formula.countsRows ? "rows" : "head size") +
           " of " + names[1] + ", " + sizes[1] + ", but got " + sizes[0];
  }
  return {};
}
