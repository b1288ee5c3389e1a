//===- LinAttnOps.cpp - linattn.attention ---------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keyword.h"

#include "linattn/Dialect/LinAttn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

#define GET_OP_CLASSES
#include "linattn/Dialect/LinAttnOps.cpp.inc"

//===----------------------------------------------------------------------===//
// attention
//===----------------------------------------------------------------------===//

/// The largest of the sizes; dynamic if any of them is.
static int64_t largest(ArrayRef<int64_t> sizes) {
  if (llvm::any_of(sizes, ShapedType::isDynamic))
    return ShapedType::kDynamic;
  return *llvm::max_element(sizes);
}

LogicalResult AttentionOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &inferred) {
  AttentionOp::Adaptor adaptor(operands, attributes, properties, regions);
  for (auto [operand, name] : {std::pair(adaptor.getQuery(), "query"),
                               std::pair(adaptor.getKey(), "key"),
                               std::pair(adaptor.getValue(), "value")}) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || type.getRank() != 4)
      return emitOptionalError(location, "expected ", name,
                               " to be a [B, H, T, D] tensor, but got ",
                               operand.getType());
  }
  auto query = cast<RankedTensorType>(adaptor.getQuery().getType());
  auto key = cast<RankedTensorType>(adaptor.getKey().getType());
  auto value = cast<RankedTensorType>(adaptor.getValue().getType());
  int64_t heads =
      largest({query.getDimSize(1), key.getDimSize(1), value.getDimSize(1)});
  inferred.push_back(RankedTensorType::get(
      {query.getDimSize(0), heads, query.getDimSize(2), value.getDimSize(3)},
      query.getElementType()));
  return success();
}

/// The declared result may know sizes that the operands' types do not.
bool AttentionOp::isCompatibleReturnTypes(TypeRange inferred,
                                          TypeRange declared) {
  auto expected = cast<RankedTensorType>(inferred.front());
  auto actual = dyn_cast<RankedTensorType>(declared.front());
  return actual && actual.getRank() == expected.getRank() &&
         actual.getElementType() == expected.getElementType() &&
         llvm::all_of_zip(expected.getShape(), actual.getShape(),
                          [](int64_t known, int64_t size) {
                            return ShapedType::isDynamic(known) ||
                                   known == size;
                          });
}

/// Mismatched dynamic shapes are undefined behaviour, so that only static ops
/// may be hoisted.
Speculation::Speculatability AttentionOp::getSpeculatability() {
  bool allStatic = llvm::all_of(getOperandTypes(), [](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    return !shaped || shaped.hasStaticShape();
  });
  return allStatic ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

LogicalResult
AttentionOp::reifyResultShapes(OpBuilder &b,
                               ReifiedRankedShapedTypeDims &shapes) {
  Location loc = getLoc();
  auto type = cast<RankedTensorType>(getOutput().getType());
  auto dim = [&](Value value, int64_t index) {
    return tensor::getMixedSize(b, loc, value, index);
  };
  OpFoldResult heads = b.getIndexAttr(type.getDimSize(1));
  if (type.isDynamicDim(1)) {
    auto asValue = [&](Value operand) {
      return getValueOrCreateConstantIndexOp(b, loc, dim(operand, 1));
    };
    Value most = asValue(getQuery());
    for (Value operand : {getKey(), getValue()})
      most = arith::MaxSIOp::create(b, loc, most, asValue(operand));
    heads = most;
  }
  SmallVector<OpFoldResult> shape{dim(getQuery(), 0), heads, dim(getQuery(), 2),
                                  dim(getValue(), 3)};
  // A static result dimension takes precedence over a dynamic one of the
  // operand.
  for (auto [index, size] : llvm::enumerate(type.getShape()))
    if (!ShapedType::isDynamic(size))
      shape[index] = b.getIndexAttr(size);
  shapes.push_back(std::move(shape));
  return success();
}
