//===- SnapshotTokens.cpp - States in between as outputs ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SnapshotTokens.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::linattn;

SnapshotTokens::SnapshotTokens(TensorBuilder &t, Value x, int64_t every)
    : t(t), every(every), like(x), tokens(t.dim(x, 2)) {
  AffineExpr n = getAffineSymbolExpr(0, t.b.getContext());
  groups = compute(n.ceilDiv(every), {tokens});
  kept = compute(n.floorDiv(every), {tokens});
  padding = compute(n.ceilDiv(every) * every - n, {tokens});
}

OpFoldResult SnapshotTokens::compute(AffineExpr expr,
                                     ArrayRef<OpFoldResult> symbols) {
  return affine::makeComposedFoldedAffineApply(t.b, t.loc, expr, symbols);
}

/// Dimensions 2 and 3 of a tensor as one; `rank` counts them as two.
static SmallVector<ReassociationIndices> joinTokens(int64_t rank) {
  SmallVector<ReassociationIndices> result{{0}, {1}, {2, 3}};
  for (int64_t i = 4; i < rank; ++i)
    result.push_back({i});
  return result;
}

static RankedTensorType typeOf(ArrayRef<OpFoldResult> sizes, Type element) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
  return RankedTensorType::get(shape, element);
}

/// x in groups, each followed by `between` [B, H, groups, rows, …].
Value SnapshotTokens::insert(Value x, Value between) {
  SmallVector<OpFoldResult> sizes = t.sizes(x);
  sizes[2] = padding;
  if (getConstantIntValue(padding) != 0)
    x = t.concat(2, {x, t.zeros(sizes)});
  sizes[2] = groups;
  sizes.insert(sizes.begin() + 3, t.b.getIndexAttr(every));
  Value grouped = tensor::ExpandShapeOp::create(
      t.b, t.loc, typeOf(sizes, t.type), x, joinTokens(sizes.size()), sizes);
  return tensor::CollapseShapeOp::create(
      t.b, t.loc, t.concat(3, {grouped, between}), joinTokens(sizes.size()));
}

Value SnapshotTokens::insertZeros(Value x, OpFoldResult count) {
  if (!x)
    return x;
  rows = count;
  x = t.convert(x);
  if (cast<ShapedType>(x.getType()).getRank() == 1)
    x = t.map("h,bhtd->bht", {x, like});
  SmallVector<OpFoldResult> sizes = t.sizes(x);
  sizes[2] = groups;
  sizes.insert(sizes.begin() + 3, rows);
  return insert(x, t.zeros(sizes));
}

Value SnapshotTokens::insertUnitRows(Value query) {
  rows = t.dim(query, 3);
  SmallVector<OpFoldResult> sizes = t.sizes(query);
  sizes[2] = groups;
  sizes.insert(sizes.begin() + 3, rows);
  Value unit =
      t.map("bhprk->bhprk", t.empty(sizes),
            [&](OpBuilder &nested, Location at, ValueRange) -> Value {
              Value row = linalg::IndexOp::create(nested, at, 3);
              Value column = linalg::IndexOp::create(nested, at, 4);
              Value isOwn = arith::CmpIOp::create(
                  nested, at, arith::CmpIPredicate::eq, row, column);
              return arith::SelectOp::create(
                  nested, at, isOwn, emitFloat(nested, at, t.type, 1.0),
                  emitFloat(nested, at, t.type, 0.0));
            });
  return insert(query, unit);
}

std::pair<Value, Value> SnapshotTokens::split(Value output) {
  AffineExpr r = getAffineSymbolExpr(0, t.b.getContext());
  OpFoldResult size = t.b.getIndexAttr(every);
  SmallVector<OpFoldResult> sizes = t.sizes(output);
  sizes[2] = groups;
  sizes.insert(sizes.begin() + 3, compute(r + every, {rows}));
  Value grouped =
      tensor::ExpandShapeOp::create(t.b, t.loc, typeOf(sizes, t.type), output,
                                    joinTokens(sizes.size()), sizes);
  Value own = tensor::CollapseShapeOp::create(
      t.b, t.loc, t.slice(grouped, 3, t.b.getIndexAttr(0), size),
      joinTokens(5));
  Value states = t.slice(grouped, 3, size, rows);
  states = t.slice(states, 2, t.b.getIndexAttr(0), kept);
  states = t.map("bhpkv->bphkv", states);
  return {t.slice(own, 2, t.b.getIndexAttr(0), tokens), states};
}
