//===- VectorBuilder.cpp - Shorthand for emitting vector code -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VectorBuilder.h"

using namespace mlir;
using namespace mlir::linattn;

Value VectorBuilder::scratch(ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  // A cache line, so that whole vectors never straddle two.
  Value buffer = memref::AllocOp::create(b, loc, MemRefType::get(shape, type),
                                         dynamic, b.getI64IntegerAttr(64));
  allocated.push_back(buffer);
  return buffer;
}

void VectorBuilder::freeScratch() {
  for (Value buffer : allocated)
    memref::DeallocOp::create(b, loc, buffer);
  allocated.clear();
}

bool mlir::linattn::dividesLastDim(MemRefType type, int64_t size) {
  int64_t last = type.getShape().back();
  return !ShapedType::isDynamic(last) && last % size == 0;
}

Value VectorBuilder::readOperand(Value memref, ValueRange indices, int64_t size,
                                 double padding) {
  auto source = cast<MemRefType>(memref.getType());
  Type element = source.getElementType();
  Value pad =
      arith::ConstantOp::create(b, loc, b.getFloatAttr(element, padding));
  Value read = vector::TransferReadOp::create(
      b, loc, VectorType::get(size, element), memref, indices, pad,
      ArrayRef<bool>{dividesLastDim(source, size)});
  return convert(read, type);
}

void VectorBuilder::writeOperand(Value value, Value memref,
                                 ValueRange indices) {
  auto target = cast<MemRefType>(memref.getType());
  int64_t size = cast<VectorType>(value.getType()).getNumElements();
  vector::TransferWriteOp::create(
      b, loc, convert(value, target.getElementType()), memref, indices,
      ArrayRef<bool>{dividesLastDim(target, size)});
}
