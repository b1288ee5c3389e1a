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

static LayoutNames parseAlternative(StringRef text) {
  LayoutNames names;
  auto [user, order] = text.split("->");
  user.split(names.user, ' ', -1, /*KeepEmpty=*/false);
  order.split(names.logical, ' ', -1, /*KeepEmpty=*/false);
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
