//===- TensorBuilder.cpp - Equations on tensors ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorBuilder.h"
#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

std::string mlir::linattn::subscriptsOfGate(Value gate, char feature) {
  switch (cast<ShapedType>(gate.getType()).getRank()) {
  case 1:
    return "h";
  case 3:
    return "bht";
  default:
    return std::string("bht") + feature;
  }
}

Value mlir::linattn::zerosLike(OpBuilder &b, Location loc, Value like) {
  Type type = getElementTypeOrSelf(like);
  if (!isa<RankedTensorType>(like.getType()))
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value zeros = filled(b, loc, tensor::getMixedSizes(b, loc, like), type, 0.0);
  if (zeros.getType() == like.getType())
    return zeros;
  return tensor::CastOp::create(b, loc, like.getType(), zeros);
}

OpFoldResult TensorBuilder::dim(Value tensor, int64_t index) {
  return tensor::getMixedSize(b, loc, tensor, index);
}

SmallVector<OpFoldResult> TensorBuilder::sizes(Value tensor) {
  return tensor::getMixedSizes(b, loc, tensor);
}

Value TensorBuilder::filled(ArrayRef<OpFoldResult> sizes, double value) {
  return linattn::filled(b, loc, sizes, type, value);
}

Value TensorBuilder::zeros(ArrayRef<OpFoldResult> sizes) {
  return filled(sizes, 0.0);
}

Value TensorBuilder::empty(ArrayRef<OpFoldResult> sizes) {
  return tensor::EmptyOp::create(b, loc, sizes, type);
}

/// The size of each output letter, from the first input with that letter; 1
/// without one.
static SmallVector<OpFoldResult>
getSizes(TensorBuilder &t, StringRef subscripts, ValueRange inputs) {
  auto [operands, output] = subscripts.split("->");
  SmallVector<StringRef> groups;
  operands.split(groups, ',');
  SmallVector<OpFoldResult> sizes;
  for (char letter : output) {
    OpFoldResult size = t.b.getIndexAttr(1);
    for (auto [group, input] : llvm::zip_equal(groups, inputs)) {
      size_t position = group.find(letter);
      if (position == StringRef::npos)
        continue;
      size = t.dim(input, position);
      break;
    }
    sizes.push_back(size);
  }
  return sizes;
}

static SmallVector<Value> convertAll(OpBuilder &b, Location loc,
                                     ValueRange args, Type type) {
  SmallVector<Value> values;
  for (Value arg : args)
    values.push_back(
        isa<FloatType>(arg.getType()) ? convertFloat(b, loc, arg, type) : arg);
  return values;
}

Value TensorBuilder::map(StringRef subscripts, ValueRange inputs, Body body) {
  return elementwise(
      b, loc, subscripts, inputs, empty(getSizes(*this, subscripts, inputs)),
      [&](OpBuilder &nested, Location at, ValueRange args) {
        return body(nested, at, convertAll(nested, at, args.drop_back(), type));
      });
}

Value TensorBuilder::sum(StringRef subscripts, ValueRange inputs, Body body) {
  return elementwise(
      b, loc, subscripts, inputs, zeros(getSizes(*this, subscripts, inputs)),
      [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
        Value value =
            body(nested, at, convertAll(nested, at, args.drop_back(), type));
        // The order of the sum is that of the vectors of the machine.
        return arith::AddFOp::create(nested, at, args.back(), value,
                                     arith::FastMathFlags::reassoc);
      });
}

Value TensorBuilder::maximum(StringRef subscripts, Value input) {
  return elementwise(
      b, loc, subscripts, input,
      filled(getSizes(*this, subscripts, input),
             -std::numeric_limits<double>::infinity()),
      [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
        return arith::MaximumFOp::create(
            nested, at, args[1], convertFloat(nested, at, args[0], type));
      });
}

Value TensorBuilder::product(StringRef subscripts, Value lhs, Value rhs,
                             Scale factor) {
  auto multiply = [&](OpBuilder &nested, Location at, ValueRange args) {
    Value xy = arith::MulFOp::create(nested, at, args[0], args[1]);
    return factor.apply(nested, at, xy);
  };
  auto [operands, output] = subscripts.split("->");
  for (char letter : operands)
    if (letter != ',' && !output.contains(letter))
      return sum(subscripts, {lhs, rhs}, multiply);
  return map(subscripts, {lhs, rhs}, multiply);
}

Value TensorBuilder::add(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AddFOp::create(b, loc, x, y);
}

Value TensorBuilder::sub(Value x, Value y) {
  if (!y)
    return x;
  if (!x)
    return arith::NegFOp::create(b, loc, y);
  return arith::SubFOp::create(b, loc, x, y);
}

Value TensorBuilder::mul(Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y);
}

Value TensorBuilder::addScaled(Value x, Value coefficient, Value y) {
  SmallVector<Value> inputs{coefficient, y};
  std::string subscripts = "bht,bhtd";
  if (x) {
    inputs.push_back(x);
    subscripts += ",bhtd";
  }
  return map(
      subscripts + "->bhtd", inputs,
      [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
        Value scaled = arith::MulFOp::create(nested, at, args[0], args[1]);
        return x ? Value(arith::AddFOp::create(nested, at, args[2], scaled))
                 : scaled;
      });
}

Value TensorBuilder::timesExp(Value x, Value gate, Scale factor) {
  if (!gate && factor.isOne())
    return convert(x);
  SmallVector<Value> inputs{x};
  std::string subscripts = "bhtd";
  if (gate) {
    // One exponential for each element of the gate, not of x.
    std::string own = subscriptsOfGate(gate, 'd');
    inputs.push_back(
        map(own + "->" + own, gate,
            [](OpBuilder &nested, Location at, ValueRange args) -> Value {
              return math::ExpOp::create(nested, at, args[0]);
            }));
    subscripts += "," + own;
  }
  return map(subscripts + "->bhtd", inputs,
             [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
               Value value = args[0];
               if (gate)
                 value = arith::MulFOp::create(nested, at, args[1], value);
               return factor.apply(nested, at, value);
             });
}

Value TensorBuilder::convert(Value x) {
  auto from = cast<RankedTensorType>(x.getType());
  if (from.getElementType() == type)
    return x;
  RankedTensorType to = from.clone(type);
  // Between f64 and 16 bits by way of f32: runtimes lack the direct routines.
  if (type.getIntOrFloatBitWidth() + from.getElementTypeBitWidth() == 64 + 16)
    return convert(TensorBuilder(b, loc, b.getF32Type()).convert(x));
  if (type.getIntOrFloatBitWidth() > from.getElementTypeBitWidth())
    return arith::ExtFOp::create(b, loc, to, x);
  // Machines and their libraries lack the step from 64 to 16 bits.
  if (from.getElementType().isF64() && type.getIntOrFloatBitWidth() == 16)
    x = arith::TruncFOp::create(b, loc, from.clone(b.getF32Type()), x);
  return arith::TruncFOp::create(b, loc, to, x);
}

Value TensorBuilder::masked(Value tokens, Value mask) {
  if (!mask)
    return tokens;
  return map("bhtd,bt->bhtd", {tokens, mask},
             [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
               return arith::SelectOp::create(nested, at, args[1], args[0],
                                              emitFloat(nested, at, type, 0.0));
             });
}

Value TensorBuilder::transposed(Value state) {
  return map("bhkv->bhvk", state);
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Dimensions of a tensor of rank `rank`, with `position` and its neighbour in
/// one group.
static SmallVector<ReassociationIndices> groupWithNext(int64_t rank,
                                                       int64_t position) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == position + 1)
      groups.back().push_back(i);
    else
      groups.push_back({i});
  }
  return groups;
}

Value TensorBuilder::repeated(Value x, int64_t dim, int64_t count) {
  int64_t own = cast<RankedTensorType>(x.getType()).getDimSize(dim);
  return own == count ? x : repeatedEach(x, dim, count / own);
}

Value TensorBuilder::repeatedEach(Value x, int64_t dim, int64_t factor) {
  auto from = cast<RankedTensorType>(x.getType());
  SmallVector<OpFoldResult> shape = sizes(x);
  shape.insert(shape.begin() + dim + 1, b.getIndexAttr(factor));
  std::string letters = std::string("bcdef").substr(0, from.getRank());
  std::string grouped = letters;
  grouped.insert(dim + 1, "g");
  Value groups = elementwise(
      b, loc, letters + "->" + grouped, x,
      tensor::EmptyOp::create(b, loc, shape, from.getElementType()), first);
  return tensor::CollapseShapeOp::create(
      b, loc, groups, groupWithNext(from.getRank() + 1, dim));
}

Value TensorBuilder::firstOfEach(Value x, int64_t dim, int64_t count) {
  auto shape = cast<ShapedType>(x.getType());
  int64_t all = shape.getDimSize(dim);
  if (all == count)
    return x;
  SmallVector<OpFoldResult> extents = sizes(x);
  SmallVector<OpFoldResult> offsets(shape.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(shape.getRank(), b.getIndexAttr(1));
  extents[dim] = b.getIndexAttr(count);
  strides[dim] = b.getIndexAttr(all / count);
  return tensor::ExtractSliceOp::create(b, loc, x, offsets, extents, strides);
}

Value TensorBuilder::withUnitDim(Value x, int64_t dim) {
  auto from = cast<RankedTensorType>(x.getType());
  SmallVector<OpFoldResult> shape = sizes(x);
  shape.insert(shape.begin() + dim, b.getIndexAttr(1));
  SmallVector<int64_t> extents(from.getShape());
  extents.insert(extents.begin() + dim, 1);
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(extents, from.getElementType()), x,
      groupWithNext(extents.size(), std::max<int64_t>(dim - 1, 0)), shape);
}

Value TensorBuilder::withoutUnitDim(Value x, int64_t dim) {
  auto rank = cast<RankedTensorType>(x.getType()).getRank();
  return tensor::CollapseShapeOp::create(
      b, loc, x, groupWithNext(rank, std::max<int64_t>(dim - 1, 0)));
}

Value TensorBuilder::withJoinedDims(Value x, int64_t dim) {
  auto rank = cast<RankedTensorType>(x.getType()).getRank();
  return tensor::CollapseShapeOp::create(b, loc, x, groupWithNext(rank, dim));
}

Value TensorBuilder::withSplitDim(Value x, int64_t dim, int64_t inner) {
  auto from = cast<RankedTensorType>(x.getType());
  SmallVector<OpFoldResult> shape = sizes(x);
  AffineExpr size = getAffineSymbolExpr(0, b.getContext());
  OpFoldResult outer = affine::makeComposedFoldedAffineApply(
      b, loc, size.floorDiv(inner), {shape[dim]});
  shape[dim] = outer;
  shape.insert(shape.begin() + dim + 1, b.getIndexAttr(inner));
  SmallVector<int64_t> extents(from.getShape());
  bool isDynamic = ShapedType::isDynamic(extents[dim]);
  if (!isDynamic)
    extents[dim] /= inner;
  extents.insert(extents.begin() + dim + 1, inner);
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(extents, from.getElementType()), x,
      groupWithNext(extents.size(), dim), shape);
}

Value TensorBuilder::concat(int64_t dim, ValueRange tensors) {
  return tensor::ConcatOp::create(b, loc, dim, tensors);
}

Value TensorBuilder::slice(Value x, int64_t dim, OpFoldResult offset,
                           OpFoldResult size) {
  SmallVector<OpFoldResult> shape = sizes(x);
  SmallVector<OpFoldResult> offsets(shape.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(shape.size(), b.getIndexAttr(1));
  offsets[dim] = offset;
  shape[dim] = size;
  return tensor::ExtractSliceOp::create(b, loc, x, offsets, shape, strides);
}
