//===- Rotary.cpp - Pairs of features rotated by angles -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Producers.h"
#include "linattn/Dialect/Einsum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Emits the rotated features part by part.
class RotaryBuilder {
public:
  RotaryBuilder(FamilyBuilder &f, const Rotation &rotation, FamilyTerm x,
                FamilyTerm bias, StringRef dims, Value into, int64_t row)
      : f(f), b(f.b), rotation(rotation), x(x), bias(bias),
        xDims(renameLast(x.dims)), biasDims(renameLast(bias.dims)),
        dims(renameLast(dims)), result(into), row(row),
        type(f.accumulationType()), tokens(getElementTypeOrSelf(into)) {}

  Value emit();

private:
  /// The features of a part are those of the dimension P.
  static std::string renameLast(StringRef dims) {
    return dims.empty() ? "" : (dims.drop_back() + "P").str();
  }
  Value slice(Value from, int64_t at, int64_t size, int64_t stride);
  void insert(Value part, int64_t at, int64_t stride);
  void rotate(int64_t first, int64_t second, int64_t stride);
  void keep(int64_t at, int64_t size);
  Value sum(ImplicitLocOpBuilder &body, Value value, Value added);

  FamilyBuilder &f;
  ImplicitLocOpBuilder &b;
  const Rotation &rotation;
  FamilyTerm x, bias;
  std::string xDims, biasDims, dims;
  Value result;
  int64_t row;
  Type type, tokens;
};

} // namespace

Value RotaryBuilder::slice(Value from, int64_t at, int64_t size,
                           int64_t stride) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), from);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  offsets.back() = b.getIndexAttr(at);
  sizes.back() = b.getIndexAttr(size);
  strides.back() = b.getIndexAttr(stride);
  return tensor::ExtractSliceOp::create(b, from, offsets, sizes, strides);
}

void RotaryBuilder::insert(Value part, int64_t at, int64_t stride) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, b.getLoc(), part);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  offsets[2] = b.getIndexAttr(row);
  offsets.back() = b.getIndexAttr(at);
  strides.back() = b.getIndexAttr(stride);
  result =
      tensor::InsertSliceOp::create(b, part, result, offsets, sizes, strides);
}

/// x or x + bias, in the type of sums.
Value RotaryBuilder::sum(ImplicitLocOpBuilder &body, Value value, Value added) {
  value = convertFloat(body, body.getLoc(), value, type);
  if (!added)
    return value;
  return arith::AddFOp::create(body, value,
                               convertFloat(body, body.getLoc(), added, type));
}

void RotaryBuilder::rotate(int64_t first, int64_t second, int64_t stride) {
  int64_t size = rotation.angles;
  f.setExtent("P", b.getIndexAttr(size));
  SmallVector<FamilyTerm> terms{{slice(x.value, first, size, stride), xDims},
                                {slice(x.value, second, size, stride), xDims},
                                {rotation.cosines, "B H T P"},
                                {rotation.sines, "B H T P"}};
  if (bias.value)
    for (int64_t at : {first, second})
      terms.push_back({slice(bias.value, at, size, stride), biasDims});
  SmallVector<Value> rotated = f.mapAll(
      dims, terms, {tokens, tokens},
      [&](ImplicitLocOpBuilder &body, ValueRange v) {
        Value one = sum(body, v[0], bias.value ? v[4] : Value());
        Value two = sum(body, v[1], bias.value ? v[5] : Value());
        auto times = [&](Value s, Value t) -> Value {
          return arith::MulFOp::create(body, s, t);
        };
        Value left =
            arith::SubFOp::create(body, times(one, v[2]), times(two, v[3]));
        Value right =
            arith::AddFOp::create(body, times(one, v[3]), times(two, v[2]));
        return SmallVector<Value>{
            convertFloat(body, body.getLoc(), left, tokens),
            convertFloat(body, body.getLoc(), right, tokens)};
      });
  insert(rotated[0], first, stride);
  insert(rotated[1], second, stride);
}

/// Copies features without an angle.
void RotaryBuilder::keep(int64_t at, int64_t size) {
  if (size == 0)
    return;
  f.setExtent("P", b.getIndexAttr(size));
  SmallVector<FamilyTerm> terms{{slice(x.value, at, size, 1), xDims}};
  if (bias.value)
    terms.push_back({slice(bias.value, at, size, 1), biasDims});
  Value part = f.mapAll(dims, terms, tokens,
                        [&](ImplicitLocOpBuilder &body, ValueRange v) {
                          Value kept =
                              sum(body, v[0], bias.value ? v[1] : Value());
                          return SmallVector<Value>{
                              convertFloat(body, body.getLoc(), kept, tokens)};
                        })
                   .front();
  insert(part, at, 1);
}

Value RotaryBuilder::emit() {
  int64_t angles = rotation.angles, size = rotation.size;
  if (rotation.pairwise) {
    rotate(0, 1, 2);
    keep(2 * angles, size - 2 * angles);
    return result;
  }
  rotate(0, size / 2, 1);
  keep(angles, size / 2 - angles);
  keep(size / 2 + angles, size / 2 - angles);
  return result;
}

Value mlir::linattn::emitRotation(FamilyBuilder &f, const Rotation &rotation,
                                  FamilyTerm x, FamilyTerm bias, StringRef dims,
                                  Value into, int64_t row) {
  return RotaryBuilder(f, rotation, x, bias, dims, into, row).emit();
}
