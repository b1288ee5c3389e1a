//===- Signature.cpp - Operands and results of a kernel -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/CodeGen/Signature.h"
#include "llvm/ADT/STLExtras.h"

using namespace linattn;

/// "2x8x?x64x" with a trailing separator, as in front of an element type.
static std::string formatExtents(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t extent : shape)
    text += (extent == kDynamicExtent ? "?" : std::to_string(extent)) + "x";
  return text;
}

std::string linattn::formatShape(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string text = formatExtents(shape);
  text.pop_back();
  return text;
}

bool ValueInfo::hasStaticShape() const {
  return !llvm::is_contained(shape, kDynamicExtent);
}

std::string ValueInfo::getTypeString() const {
  std::string element(getName(dtype));
  return isTensor ? "tensor<" + formatExtents(shape) + element + ">" : element;
}

std::string Signature::describeArgument(size_t index) const {
  std::string text = "argument " + std::to_string(index);
  if (index < arguments.size() && !arguments[index].name.empty())
    text += " (%" + arguments[index].name + ")";
  return text;
}

std::string Signature::describeResult(size_t index) const {
  return "result " + std::to_string(index);
}
