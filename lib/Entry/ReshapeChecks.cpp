//===- ReshapeChecks.cpp - Checks of slices and of reshapes ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckEmitter.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace mlir::linattn;

/// Checks that a slice of `whole`, whose type is `type`, ends inside it.
void CheckEmitter::checkSlice(OffsetSizeAndStrideOpInterface op,
                              RankedTensorType type, Value whole) {
  if (op->getBlock() != &entry)
    return;
  auto toValue = [&](OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, b.getLoc(), value);
  };
  for (auto [dim, offset, size, stride] : llvm::enumerate(
           op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides())) {
    OpFoldResult parts[] = {offset, size, stride};
    auto isConstant = [](OpFoldResult part) { return isa<Attribute>(part); };
    if (llvm::all_of(parts, isConstant) && !type.isDynamicDim(dim))
      continue;
    if (!llvm::all_of(parts, [&](OpFoldResult part) {
          return isConstant(part) || isCheap(cast<Value>(part));
        }))
      continue;
    Value first = toValue(offset), count = toValue(size),
          step = toValue(stride);
    Value extent = *getSize({whole, static_cast<int64_t>(dim), ""});
    Value zero = constant(0);
    Value last = arith::AddIOp::create(
        b, first,
        arith::MulIOp::create(b, arith::SubIOp::create(b, count, constant(1)),
                              step));
    using arith::CmpIPredicate;
    auto both = [&](Value x, Value y) -> Value {
      return arith::AndIOp::create(b, x, y);
    };
    Value inside = both(compare(CmpIPredicate::sge, first, zero),
                        both(compare(CmpIPredicate::sge, last, zero),
                             compare(CmpIPredicate::slt, last, extent)));
    Value isEmpty = compare(CmpIPredicate::eq, count, zero);
    Value isSize = compare(CmpIPredicate::sge, count, zero);
    Value holds = both(isSize, arith::OrIOp::create(b, isEmpty, inside));
    addCheck(holds, {first, count, step, extent},
             llvm::formatv("{0}: expected a slice inside dimension {1} of size "
                           "{{3}, but got offset {{0}, size {{1} and stride "
                           "{{2}",
                           op->getName().getStringRef(), dim)
                 .str());
  }
}

/// Checks that an inserted tensor has the sizes of its place.
void CheckEmitter::checkInserted(tensor::InsertSliceOp op) {
  if (op->getBlock() != &entry)
    return;
  llvm::SmallBitVector dropped = op.getDroppedDims();
  int64_t dim = 0;
  for (auto [at, size] : llvm::enumerate(op.getMixedSizes())) {
    if (dropped.test(at))
      continue;
    int64_t from = dim++;
    auto value = dyn_cast<Value>(size);
    if ((!value && !op.getSourceType().isDynamicDim(from)) ||
        (value && !isCheap(value)))
      continue;
    Value expected = getValueOrCreateConstantIndexOp(b, b.getLoc(), size);
    Value got = *getSize({op.getSource(), from, ""});
    addCheck(compare(arith::CmpIPredicate::eq, expected, got), {expected, got},
             llvm::formatv("tensor.insert_slice: expected dimension {0} of the "
                           "source to be of size {{0}, but got {{1}",
                           from)
                 .str());
  }
}

/// A reshaped tensor keeps its number of elements.
void CheckEmitter::checkElements(tensor::ReshapeOp op) {
  auto sizes = op.getShape().getDefiningOp<tensor::FromElementsOp>();
  auto type = dyn_cast<RankedTensorType>(op.getSource().getType());
  if (op->getBlock() != &entry || !type)
    return;
  if (!sizes || !llvm::all_of(sizes.getElements(),
                              [&](Value size) { return isCheap(size); }))
    return remarkSkipped(op, "its shape is computed");
  Value expected = constant(1), got = constant(1);
  for (Value size : sizes.getElements()) {
    if (!size.getType().isIndex())
      size = arith::IndexCastOp::create(b, b.getIndexType(), size);
    expected = arith::MulIOp::create(b, expected, size);
  }
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    got = arith::MulIOp::create(b, got, *getSize({op.getSource(), dim, ""}));
  addCheck(compare(arith::CmpIPredicate::eq, expected, got), {expected, got},
           "tensor.reshape: expected {0} elements, but got {1}");
}

/// The op's descriptive name from its creator, or else its kind.
static StringRef getSpeakingName(Operation *op) {
  auto name = op->getLoc()->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : op->getName().getStringRef();
}

/// Checks that a dimension has as many elements as the product of its parts.
void CheckEmitter::checkSplits(tensor::ExpandShapeOp op) {
  if (op->getBlock() != &entry)
    return;
  SmallVector<OpFoldResult> parts = op.getMixedOutputShape();
  for (auto [dim, group] : llvm::enumerate(op.getReassociationIndices())) {
    if (group.size() < 2 || !op.getSrcType().isDynamicDim(dim))
      continue;
    Value product = constant(1);
    int64_t known = 1;
    bool cheapParts = true;
    for (int64_t i : group) {
      if (auto part = dyn_cast<Value>(parts[i]))
        cheapParts &= isCheap(part);
      known *= ShapedType::isDynamic(op.getType().getDimSize(i))
                   ? 1
                   : op.getType().getDimSize(i);
      product = arith::MulIOp::create(
          b, product, getValueOrCreateConstantIndexOp(b, b.getLoc(), parts[i]));
    }
    if (!cheapParts)
      continue;
    Value size = *getSize({op.getSrc(), static_cast<int64_t>(dim), ""});
    addCheck(compare(arith::CmpIPredicate::eq, size, product), {size},
             llvm::formatv("{0}: expected the size of dimension {1} to be a "
                           "multiple of {2}, but got {{0}",
                           getSpeakingName(op), dim, known)
                 .str());
  }
}
