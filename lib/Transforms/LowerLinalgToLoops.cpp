//===- LowerLinalgToLoops.cpp - Loops that vectorise
//-----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses a loop order for each linalg operation on memrefs from the strides of
// its operands, then emits scf.for nests.
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERLINALGTOLOOPSPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

/// Relative costs of one iteration of an innermost loop, per operand: walking
/// with stride 1 or staying put is one unit, a strided walk a cache line. A
/// reduction waits for the addition before it instead of filling a vector.
constexpr int64_t kNearCost = 1;
constexpr int64_t kStridedCost = 8;
constexpr int64_t kReductionCost = 6;

int64_t getOperandCost(AffineMap map, Type type, unsigned loop) {
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref || !map.isFunctionOfDim(loop))
    return kNearCost;
  unsigned last = map.getNumResults() - 1;
  for (unsigned i = 0; i < last; ++i)
    if (map.getResult(i).isFunctionOfDim(loop))
      return kStridedCost;
  return memref.isLastDimUnitStride() ? kNearCost : kStridedCost;
}

/// A sum whose order is left to the machine, and so no chain.
bool mayReassociate(linalg::GenericOp op) {
  return llvm::all_of(
      op.getBody()->getTerminator()->getOperands(), [](Value value) {
        auto add = value.getDefiningOp<arith::AddFOp>();
        return add && bitEnumContainsAll(add.getFastmath(),
                                         arith::FastMathFlags::reassoc);
      });
}

/// What `loop` costs as the innermost loop of `op`.
int64_t getInnermostCost(linalg::GenericOp op, unsigned loop) {
  int64_t cost = 0;
  for (OpOperand &operand : op->getOpOperands())
    cost += getOperandCost(op.getMatchingIndexingMap(&operand),
                           operand.get().getType(), loop);
  if (linalg::isReductionIterator(op.getIteratorTypesArray()[loop]) &&
      !mayReassociate(op))
    cost += kReductionCost;
  return cost;
}

/// Parallel loops outside, reductions inside them, and the cheapest loop
/// innermost. Reductions keep their relative order: so do floating-point sums.
SmallVector<unsigned> getLoopOrder(linalg::GenericOp op) {
  unsigned numLoops = op.getNumLoops();
  unsigned innermost = numLoops - 1;
  int64_t best = getInnermostCost(op, innermost);
  for (unsigned loop = numLoops - 1; loop-- > 0;) {
    int64_t cost = getInnermostCost(op, loop);
    // A reduction may move inside only if it is the last one already.
    bool reorders =
        linalg::isReductionIterator(op.getIteratorTypesArray()[loop]) &&
        llvm::any_of(llvm::seq(loop + 1, numLoops), [&](unsigned later) {
          return linalg::isReductionIterator(op.getIteratorTypesArray()[later]);
        });
    if (cost < best && !reorders) {
      best = cost;
      innermost = loop;
    }
  }
  SmallVector<unsigned> order;
  for (bool reductions : {false, true})
    for (unsigned loop = 0; loop < numLoops; ++loop)
      if (loop != innermost &&
          linalg::isReductionIterator(op.getIteratorTypesArray()[loop]) ==
              reductions)
        order.push_back(loop);
  order.push_back(innermost);
  return order;
}

LogicalResult lowerToLoops(IRRewriter &rewriter, linalg::LinalgOp op) {
  rewriter.setInsertionPoint(op);
  if (!isa<linalg::GenericOp>(op.getOperation())) {
    FailureOr<linalg::GenericOp> generic =
        linalg::generalizeNamedOp(rewriter, op);
    if (failed(generic))
      return op.emitError("expected an operation that can be generalized");
    op = *generic;
  }
  auto generic = cast<linalg::GenericOp>(op.getOperation());
  if (generic.getNumLoops() > 1) {
    FailureOr<linalg::GenericOp> interchanged =
        linalg::interchangeGenericOp(rewriter, generic, getLoopOrder(generic));
    if (succeeded(interchanged))
      generic = *interchanged;
  }
  rewriter.setInsertionPoint(generic);
  if (failed(linalg::linalgOpToLoops(rewriter, generic)))
    return generic.emitError("expected an operation that lowers to loops");
  rewriter.eraseOp(generic);
  return success();
}

/// Copies between contiguous buffers become memcpy later; all others would
/// become calls into a support library that kernels do not link.
bool needsLoops(memref::CopyOp op) {
  auto isPlain = [](Value value) {
    auto type = dyn_cast<MemRefType>(value.getType());
    return type && type.getLayout().isIdentity();
  };
  return !isPlain(op.getSource()) || !isPlain(op.getTarget());
}

struct LowerLinalgToLoopsPass
    : public linattn::impl::LinAttnLowerLinalgToLoopsPassBase<
          LowerLinalgToLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<memref::CopyOp> copies;
    getOperation().walk([&](memref::CopyOp op) {
      if (needsLoops(op))
        copies.push_back(op);
    });
    for (memref::CopyOp op : copies) {
      rewriter.setInsertionPoint(op);
      linalg::makeMemRefCopyOp(rewriter, op.getLoc(), op.getSource(),
                               op.getTarget());
      rewriter.eraseOp(op);
    }

    SmallVector<linalg::LinalgOp> ops;
    getOperation().walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics())
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops)
      if (failed(lowerToLoops(rewriter, op)))
        return signalPassFailure();
  }
};

} // namespace
