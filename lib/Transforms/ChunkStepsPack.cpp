//===- ChunkStepsPack.cpp - Operands of a chunk as rows -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows are as wide as the state they meet. Where its head sizes were filled up
// to whole tiles, rows are, too.
//
//===----------------------------------------------------------------------===//

#include "ChunkSteps.h"

#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace mlir::linattn;

Value mlir::linattn::insertBack(OpBuilder &b, Value part, Value slice,
                                Value into) {
  auto from = slice.getDefiningOp<tensor::ExtractSliceOp>();
  return tensor::InsertSliceOp::create(
      b, slice.getLoc(), part, into, from.getMixedOffsets(),
      from.getMixedSizes(), from.getMixedStrides());
}

/// Whether zeros fill up head sizes that are known.
static bool isWider(Value rows, Value than) {
  auto width = [](Value x) {
    return cast<ShapedType>(x.getType()).getShape().back();
  };
  return !ShapedType::isDynamic(width(rows)) &&
         !ShapedType::isDynamic(width(than)) && width(rows) > width(than);
}

/// The rows that stand for tokens, and as many columns as another tensor has,
/// if given.
Value ChunkSteps::firstPart(Value rows, Value like) {
  bool wider = like && isWider(rows, like);
  if (!rowCount && !wider)
    return rows;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, rows),
                            offsets(sizes.size(), b.getIndexAttr(0)),
                            strides(sizes.size(), b.getIndexAttr(1));
  if (rowCount)
    sizes[2] = size(r.rows(), 2);
  if (wider)
    sizes[3] = size(like, 3);
  return tensor::ExtractSliceOp::create(b, loc, rows, offsets, sizes, strides);
}

/// As many columns of rows as another tensor has.
Value ChunkSteps::firstColumns(Value rows, Value like) {
  return isWider(rows, like) ? columns(rows, b.getIndexAttr(0), size(like, 3))
                             : rows;
}

Value ChunkSteps::columns(Value rows, OpFoldResult first, OpFoldResult count) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, rows),
                            offsets(sizes.size(), b.getIndexAttr(0)),
                            strides(sizes.size(), b.getIndexAttr(1));
  offsets.back() = first;
  sizes.back() = count;
  return tensor::ExtractSliceOp::create(b, loc, rows, offsets, sizes, strides);
}

/// Packs into the first columns of rows and fills up the rest with zeros. The
/// rows have memory of their own: parts of one empty tensor would be one.
Value ChunkSteps::packWider(Value x, Value into,
                            function_ref<Value(Value)> packInto) {
  auto type = cast<RankedTensorType>(into.getType());
  int64_t width = *getConstantIntValue(size(x, 3)), whole = type.getDimSize(3);
  Value memory =
      bufferization::AllocTensorOp::create(b, loc, type, ValueRange());
  Value own = columns(memory, b.getIndexAttr(0), b.getIndexAttr(width));
  Value rows = insertBack(b, packInto(own), own, memory);
  Value rest =
      columns(rows, b.getIndexAttr(width), b.getIndexAttr(whole - width));
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value cleared = linalg::FillOp::create(b, loc, zero, rest).getResult(0);
  return insertBack(b, cleared, rest, rows);
}

Value ChunkSteps::pack(Value x, Value into, Value shift, Value gate, Value mask,
                       Scale scale, std::optional<double> fill, bool reverse) {
  if (rankOf(into) == 4 && isWider(into, x))
    return packWider(x, into, [&](Value part) {
      Value own = gate && rankOf(gate) == 4 ? firstColumns(gate, x) : gate;
      return pack(x, part, shift, own, mask, scale, fill, reverse);
    });
  FloatAttr other = fill && mask ? b.getF64FloatAttr(*fill) : FloatAttr();
  bool padded = rowCount && rankOf(x) > 2 &&
                cast<ShapedType>(x.getType()).getDimSize(2) != rowCount;
  return ChunkPackOp::create(b, loc, TypeRange{into.getType()}, x, shift, gate,
                             mask, scale.getValue(), into, scale.getAttr(b),
                             other, reverse, padded)
      ->getResult(0);
}

/// Numbers per token, or rows `width` wide.
Value ChunkSteps::packGate(Value x, OpFoldResult width, Value mask,
                           std::optional<double> fill) {
  if (!x)
    return {};
  // There are fewer tokens than rows: these are a head's numbers for rows.
  if (rowCount && rankOf(x) == 3 &&
      cast<ShapedType>(x.getType()).getDimSize(2) == rowCount)
    return x;
  Value into = rankOf(x) == 4 ? rows(heads(), width) : numbers(x);
  bool reverse = r.reverse && rankOf(x) > 1;
  return pack(x, into, {}, {}, mask, 1.0, fill, reverse);
}

Value ChunkSteps::mapped(Value rows, FeatureMapKind kind) {
  Value into = empty(tensor::getMixedSizes(b, loc, rows));
  auto map = FeatureMapAttr::get(b.getContext(), kind);
  auto op =
      FeatureMapOp::create(b, loc, rows, ValueRange(), Value(), into, map);
  IRMapping mapping;
  if (kind == FeatureMapKind::Region)
    r.op.getFeatureMapRegion().cloneInto(&op.getPhi(), mapping);
  return op->getResult(0);
}

/// scale · gate ⊙ φ(x − shift), 0 for a masked token.
Value ChunkSteps::features(Value x, Value into, FeatureMapKind kind,
                           Value shift, Value gate, Value mask, Scale scale) {
  if (kind == FeatureMapKind::Identity)
    return pack(x, into, shift, gate, mask, scale, {}, r.reverse);
  Value argument = pack(x, into, shift, {}, {}, 1.0, {}, r.reverse);
  Value feature = mapped(argument, kind);
  if (!gate && !mask && scale.isOne())
    return feature;
  return pack(feature, empty(tensor::getMixedSizes(b, loc, feature)), {}, gate,
              mask, scale);
}
