//===- EntryLayout.cpp - Memory layout of kernel arguments ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Entry/EntryLayout.h"

using namespace mlir;

MemRefType mlir::linattn::getEntryMemRefType(ArrayRef<int64_t> shape,
                                             Type elementType,
                                             InnermostStride innermost,
                                             Attribute memorySpace) {
  SmallVector<int64_t> strides(shape.size(), ShapedType::kDynamic);
  bool isUnit = innermost == InnermostStride::Unit ||
                (innermost == InnermostStride::Tokens && shape.size() == 4);
  if (!strides.empty() && isUnit)
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(elementType.getContext(),
                                       ShapedType::kDynamic, strides);
  return MemRefType::get(shape, elementType, layout, memorySpace);
}

MemRefType mlir::linattn::getTransposedMemRefType(ArrayRef<int64_t> shape,
                                                  Type elementType) {
  SmallVector<int64_t> strides(shape.size(), ShapedType::kDynamic);
  strides[shape.size() - 2] = 1;
  auto layout = StridedLayoutAttr::get(elementType.getContext(),
                                       ShapedType::kDynamic, strides);
  return MemRefType::get(shape, elementType, layout);
}
