//===- LaunchCopies.cpp - Kernels for what has no parallel loop -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLAUNCHCOPIESPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

/// Not in what will be a kernel.
static bool isOnHost(Operation *op) {
  return !op->getParentOfType<scf::ParallelOp>() &&
         !op->getParentOfType<gpu::LaunchOp>();
}

/// The same elements, one by one.
static linalg::LinalgOp replaceByGeneric(memref::CopyOp copy) {
  OpBuilder b(copy);
  int64_t rank = cast<MemRefType>(copy.getSource().getType()).getRank();
  AffineMap map = b.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      b, copy.getLoc(), copy.getSource(), copy.getTarget(),
      ArrayRef<AffineMap>{map, map}, iterators,
      [](OpBuilder &b, Location loc, ValueRange elements) {
        linalg::YieldOp::create(b, loc, elements.front());
      });
  copy.erase();
  return generic;
}

/// A result in the buffer of the argument needs no copy.
static void guard(Operation *copy, Value from, Value to) {
  auto isArgument = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument &&
           isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  };
  if (!isArgument(from) || !isArgument(to))
    return;
  OpBuilder b(copy);
  Location loc = copy->getLoc();
  auto differ = [&](auto &&get) -> Value {
    Value source = get(from), target = get(to);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, source,
                                 target);
  };
  Value address = differ([&](Value memref) -> Value {
    return memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
  });
  Value offset = differ([&](Value memref) -> Value {
    return memref::ExtractStridedMetadataOp::create(b, loc, memref).getOffset();
  });
  Value differs = arith::OrIOp::create(b, loc, address, offset);
  auto branch = scf::IfOp::create(b, loc, differs, /*withElse=*/false);
  copy->moveBefore(branch.thenBlock()->getTerminator());
}

static void wrapInLoop(linalg::LinalgOp op) {
  OpBuilder b(op);
  Location loc = op->getLoc();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto loop = scf::ParallelOp::create(b, loc, zero, one, one);
  op->moveBefore(loop.getBody()->getTerminator());
}

namespace {

struct LinAttnLaunchCopiesPass final
    : mlir::linattn::impl::LinAttnLaunchCopiesPassBase<
          LinAttnLaunchCopiesPass> {
  using LinAttnLaunchCopiesPassBase::LinAttnLaunchCopiesPassBase;

  void runOnOperation() override {
    SmallVector<memref::CopyOp> copies;
    getOperation()->walk([&](memref::CopyOp copy) {
      if (isOnHost(copy) && isa<MemRefType>(copy.getSource().getType()) &&
          isa<MemRefType>(copy.getTarget().getType()))
        copies.push_back(copy);
    });
    for (memref::CopyOp copy : copies) {
      guard(copy, copy.getSource(), copy.getTarget());
      replaceByGeneric(copy);
    }
    SmallVector<linalg::CopyOp> others;
    getOperation()->walk([&](linalg::CopyOp copy) {
      if (isOnHost(copy) && copy.hasPureBufferSemantics())
        others.push_back(copy);
    });
    for (linalg::CopyOp copy : others)
      guard(copy, copy.getInputs()[0], copy.getOutputs()[0]);
    SmallVector<linalg::LinalgOp> alone;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (isOnHost(op) && op.hasPureBufferSemantics() &&
          op.getNumParallelLoops() == 0)
        alone.push_back(op);
    });
    for (linalg::LinalgOp op : alone)
      wrapInLoop(op);
    numCopies += copies.size();
    numWrapped += alone.size();
  }
};

} // namespace
