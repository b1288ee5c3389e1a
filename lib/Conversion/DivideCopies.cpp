//===- DivideCopies.cpp - Copies of states, a part in each task -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScanStates.h"

#include "linattn/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNDIVIDECOPIESPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// Whether a size is that of a dimension of one of two memrefs of one shape.
static bool isSizeOf(OpFoldResult size, int64_t dim, Value memref,
                     Value other) {
  int64_t extent = cast<MemRefType>(memref.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(extent))
    return getConstantIntValue(size) == extent;
  auto value = dyn_cast<Value>(size);
  auto query = value ? value.getDefiningOp<memref::DimOp>() : memref::DimOp();
  return query && query.getConstantIndex() == dim &&
         (query.getSource() == memref || query.getSource() == other);
}

/// Whether the views of all tasks are the whole memory: of each dimension, all
/// of it or the element of a loop over it.
static bool dividesWhole(memref::SubViewOp view, scf::ForallOp tasks,
                         Value source) {
  Value memref = view.getSource();
  for (int64_t dim = 0, rank = view.getSourceType().getRank(); dim < rank;
       ++dim) {
    OpFoldResult offset = view.getMixedOffsets()[dim],
                 size = view.getMixedSizes()[dim];
    if (getConstantIntValue(view.getMixedStrides()[dim]) != 1)
      return false;
    if (getConstantIntValue(offset) == 0 && isSizeOf(size, dim, memref, source))
      continue;
    auto variable = dyn_cast_if_present<BlockArgument>(dyn_cast<Value>(offset));
    if (!variable || variable.getOwner() != tasks.getBody() ||
        getConstantIntValue(size) != 1)
      return false;
    unsigned loop = variable.getArgNumber();
    if (!tasks.isNormalized() ||
        !isSizeOf(tasks.getMixedUpperBound()[loop], dim, memref, source))
      return false;
  }
  return true;
}

/// The view through which alone the tasks use the memory, if there is one.
static memref::SubViewOp findOnlyView(scf::ForallOp tasks, Value memref) {
  memref::SubViewOp found;
  for (Operation *user : memref.getUsers()) {
    if (!tasks->isProperAncestor(user))
      continue;
    auto view = dyn_cast<memref::SubViewOp>(user);
    if (!view || found || view->getBlock() != tasks.getBody())
      return {};
    found = view;
  }
  return found;
}

namespace {

struct LinAttnDivideCopiesPass final
    : mlir::linattn::impl::LinAttnDivideCopiesPassBase<
          LinAttnDivideCopiesPass> {
  using LinAttnDivideCopiesPassBase::LinAttnDivideCopiesPassBase;

  void runOnOperation() override {
    SmallVector<memref::SubViewOp> views;
    getOperation()->walk([&](memref::SubViewOp view) {
      if (isa<scf::ForallOp>(view->getParentOp()))
        views.push_back(view);
    });
    for (memref::SubViewOp view : views)
      divide(view, cast<scf::ForallOp>(view->getParentOp()));
  }

private:
  void divide(memref::SubViewOp view, scf::ForallOp tasks) {
    InitialCopy copy = findInitialCopy(tasks, view.getSource());
    if (!copy.op || findOnlyView(tasks, view.getSource()) != view ||
        !dividesWhole(view, tasks, copy.source))
      return;
    OpBuilder b(&getContext());
    b.setInsertionPointAfter(view);
    auto copyPart = [&](OpBuilder &at, Location loc) {
      Value part = memref::SubViewOp::create(
          at, loc, cast<MemRefType>(view.getType()), copy.source,
          view.getMixedOffsets(), view.getMixedSizes(), view.getMixedStrides());
      linalg::CopyOp::create(at, loc, part, view.getResult());
    };
    Location loc = copy.op->getLoc();
    if (copy.differs)
      scf::IfOp::create(b, loc, copy.differs, [&](OpBuilder &at, Location loc) {
        copyPart(at, loc);
        scf::YieldOp::create(at, loc);
      });
    else
      copyPart(b, loc);
    copy.op->erase();
    ++numDivided;
  }
};

} // namespace
