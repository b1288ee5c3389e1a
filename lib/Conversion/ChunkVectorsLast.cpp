//===- ChunkVectorsLast.cpp - A chunk with fewer tokens than rows ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loop over chunks has one body. Its last chunk may have fewer tokens, which
// go through memory with all rows; other chunks stay where they are.
//
//===----------------------------------------------------------------------===//

#include "ChunkVectors.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::linattn;

/// The type of all rows of a chunk, in the memory of its tokens or elsewhere.
static MemRefType typeOfRows(MemRefType tokens, MemRefType rows) {
  SmallVector<int64_t> strides, others;
  int64_t offset;
  if (failed(tokens.getStridesAndOffset(strides, offset)) ||
      failed(rows.getStridesAndOffset(others, offset)))
    llvm_unreachable("chunks are views of buffers with strides");
  for (auto [stride, other] : llvm::zip_equal(strides, others))
    if (stride != other)
      stride = ShapedType::kDynamic;
  auto layout = StridedLayoutAttr::get(tokens.getContext(),
                                       ShapedType::kDynamic, strides);
  return MemRefType::get(rows.getShape(), rows.getElementType(), layout,
                         tokens.getMemorySpace());
}

void ChunkVectors::copyTokens(Value from, Value to, Value count) {
  forEach(count, [&](Value t) {
    forEachVector(sizeOf(to, 3), [&](Value d) {
      writeOperand(readElements(from, at(t, d), lanes), to, at(t, d));
    });
  });
}

ChunkVectors::AllRows ChunkVectors::allRowsOf(Value tokens, int64_t count,
                                              bool isRead) {
  auto type = cast<MemRefType>(tokens.getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : type.getShape())
    sizes.push_back(b.getIndexAttr(dim));
  sizes[2] = b.getIndexAttr(count);
  Value own = scratch(sizes, type.getElementType());
  AllRows all{own, own, dim(tokens, 2), {}};
  auto fillUp = [&] {
    if (!isRead)
      return;
    copyTokens(tokens, own, all.tokens);
    forEach(all.tokens, index(count), 1, [&](Value t) { clearRow(own, t); });
  };
  if (!type.isDynamicDim(2)) {
    fillUp();
    return all;
  }
  MemRefType rows = typeOfRows(type, cast<MemRefType>(own.getType()));
  all.areAll = compare(arith::CmpIPredicate::eq, all.tokens, index(count));
  auto branch = scf::IfOp::create(b, loc, rows, all.areAll,
                                  /*withElseRegion=*/true);
  auto yield = [&](Value x) {
    Value cast = memref::CastOp::create(b, loc, rows, x);
    scf::YieldOp::create(b, loc, cast);
  };
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  yield(tokens);
  b.setInsertionPointToStart(branch.elseBlock());
  fillUp();
  yield(own);
  all.rows = branch.getResult(0);
  return all;
}

void ChunkVectors::writeBack(const AllRows &all, Value tokens) {
  auto copy = [&] { copyTokens(all.own, tokens, all.tokens); };
  if (all.areAll)
    ifThenElse(all.areAll, [] {}, copy);
  else
    copy();
}
