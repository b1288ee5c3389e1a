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

/// Bytes up to which one buffer of a task lies on its stack, and of all of
/// them.
static constexpr int64_t stackBytes = 64 << 10, taskStackBytes = 384 << 10;

Value VectorBuilder::scratch(ArrayRef<OpFoldResult> sizes) {
  SmallVector<int64_t> shape;
  SmallVector<Value> dynamic;
  dispatchIndexOpFoldResults(sizes, dynamic, shape);
  auto memref = MemRefType::get(shape, type);
  // A cache line, so that whole vectors never straddle two.
  IntegerAttr alignment = b.getI64IntegerAttr(64);
  if (Block *task = taskBody(); task && dynamic.empty() && fitsStack(memref)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(task);
    return memref::AllocaOp::create(b, loc, memref, ValueRange(), alignment);
  }
  Value buffer = memref::AllocOp::create(b, loc, memref, dynamic, alignment);
  allocated.push_back(buffer);
  return buffer;
}

/// A buffer of a task takes its place on the stack unless it is large, or the
/// others have taken what a thread can be expected to have.
bool VectorBuilder::fitsStack(MemRefType memref) {
  int64_t bytes = memref.getElementTypeBitWidth() / 8;
  for (int64_t size : memref.getShape()) {
    // The product of large sizes would not fit in 64 bits.
    if (size > stackBytes / std::max<int64_t>(bytes, 1))
      return false;
    bytes *= size;
  }
  if (stackTaken + bytes > taskStackBytes)
    return false;
  stackTaken += bytes;
  return true;
}

// A slow decay would lose ρ at every token or chunk, always the same way. Of
// small factors nothing is left over: Γ − 1 would be rounded itself, and little
// of what they meet is remembered.
Value VectorBuilder::residualOf(Value logarithm, Value factor) {
  auto number = [&](double value) {
    return constant(logarithm.getType(), value);
  };
  Value rest =
      subf(math::ExpM1Op::create(b, loc, logarithm), subf(factor, number(1.0)));
  Value isSlow = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE,
                                       factor, number(0.5));
  return select(isSlow, rest, number(0.0));
}

/// The body of the outermost parallel loop, which becomes a function: what is
/// allocated at its start takes its place on the stack once.
Block *VectorBuilder::taskBody() {
  scf::ParallelOp outermost;
  for (Operation *op = b.getInsertionBlock()->getParentOp(); op;
       op = op->getParentOp())
    if (auto loop = dyn_cast<scf::ParallelOp>(op))
      outermost = loop;
  return outermost ? outermost.getBody() : nullptr;
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

void VectorBuilder::prefetchState(Value memref, ValueRange indices,
                                  int64_t size) {
  auto source = cast<MemRefType>(memref.getType());
  int64_t line = 64 * 8 / source.getElementTypeBitWidth();
  SmallVector<Value> at(indices);
  for (int64_t i = 0; i < size; i += line) {
    at.back() = add(indices.back(), index(i));
    memref::PrefetchOp::create(b, loc, memref, at, /*isWrite=*/true,
                               /*localityHint=*/3, /*isDataCache=*/true);
  }
}

void VectorBuilder::prefetchRow(Value memref, ArrayRef<Value> row, Value column,
                                Value width, bool isWritten) {
  constexpr int64_t lineBits = 512;
  auto type = cast<MemRefType>(memref.getType());
  int64_t line = lineBits / type.getElementTypeBitWidth();
  auto prefetch = [&](Value d) {
    SmallVector<Value> at(row);
    at.push_back(add(column, d));
    memref::PrefetchOp::create(b, loc, memref, at, isWritten,
                               /*localityHint=*/3, /*isDataCache=*/true);
  };
  if (std::optional<int64_t> known = getConstantIntValue(width))
    for (int64_t d = 0; d < *known; d += line)
      prefetch(index(d));
  else
    forEach(index(0), width, line, prefetch);
  // A row that begins within a line ends in one more.
  prefetch(sub(width, index(1)));
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
