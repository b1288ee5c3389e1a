//===- Layout.cpp - Dimensions by name ------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Families/Layout.h"

using namespace mlir;
using namespace mlir::linattn;

DimClass mlir::linattn::classifyDim(StringRef name) {
  switch (name.front()) {
  case 'B':
  case 'N':
    return DimClass::Batch;
  case 'H':
  case 'G':
    return DimClass::Head;
  case 'T':
    return DimClass::Length;
  default:
    return DimClass::Feature;
  }
}

llvm::SmallVector<StringRef, 4> mlir::linattn::splitDims(StringRef dims) {
  llvm::SmallVector<StringRef, 4> names;
  dims.split(names, ' ', -1, /*KeepEmpty=*/false);
  return names;
}

static LayoutNames parseAlternative(StringRef text) {
  LayoutNames names;
  auto [user, order] = text.split("->");
  names.user = splitDims(user);
  names.logical = splitDims(order);
  if (!names.logical.empty())
    return names;
  for (DimClass kind :
       {DimClass::Batch, DimClass::Head, DimClass::Length, DimClass::Feature})
    for (StringRef word : names.user) {
      auto [outer, inner] = word.split('*');
      for (StringRef name : {outer, inner})
        if (!name.empty() && classifyDim(name) == kind)
          names.logical.push_back(name);
    }
  return names;
}

llvm::SmallVector<LayoutNames, 3> mlir::linattn::parseLayout(StringRef text) {
  llvm::SmallVector<StringRef, 3> alternatives;
  text.split(alternatives, '|');
  llvm::SmallVector<LayoutNames, 3> layouts;
  for (StringRef alternative : alternatives)
    layouts.push_back(parseAlternative(alternative));
  return layouts;
}

std::optional<SizeRule> mlir::linattn::parseSizeRule(StringRef text) {
  auto [result, right] = text.split('=');
  SizeRule rule;
  rule.result = result.trim();
  right = right.trim();
  if (rule.result.empty() || right.empty())
    return std::nullopt;
  if (right.consume_front("max(")) {
    auto [left, other] = right.split(',');
    rule.kind = SizeRule::Max;
    rule.left = left.trim();
    rule.right = other.trim().rtrim(')');
    return rule;
  }
  if (right.consume_front("features(")) {
    llvm::SmallVector<StringRef, 4> parts;
    right.split(parts, ',');
    if (parts.size() != 4)
      return std::nullopt;
    for (auto [part, coefficient] : llvm::zip(parts, rule.coefficients))
      if (part.trim().getAsInteger(10, coefficient))
        return std::nullopt;
    rule.kind = SizeRule::Features;
    rule.left = parts.back().trim().rtrim(')');
    return rule;
  }
  if (auto [left, divisor] = right.split('/'); !divisor.empty()) {
    rule.kind = SizeRule::Quotient;
    rule.left = left.trim();
    if (divisor.trim().getAsInteger(10, rule.factor) || rule.factor < 1)
      return std::nullopt;
    return rule;
  }
  if (right.consumeInteger(10, rule.factor))
    return std::nullopt;
  rule.left = right.trim();
  rule.kind = rule.left.empty() ? SizeRule::Constant : SizeRule::Times;
  return rule;
}
