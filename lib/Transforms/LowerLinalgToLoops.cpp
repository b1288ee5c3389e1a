//===- LowerLinalgToLoops.cpp - Loops that vectorise ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses a loop order for each linalg operation on memrefs from the strides of
// its operands, then emits scf.for nests. Blocks of outer iterations are tasks.
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERLINALGTOLOOPSPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

namespace {

/// Relative costs of one iteration of an innermost loop, per operand: stride 0
/// or 1 costs one unit, another stride a cache line. A reduction waits for the
/// previous addition instead of filling a vector.
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

/// Whether the sum may be reassociated: its additions then need not wait for
/// one another.
bool mayReassociate(linalg::GenericOp op) {
  return llvm::all_of(
      op.getBody()->getTerminator()->getOperands(), [](Value value) {
        auto add = value.getDefiningOp<arith::AddFOp>();
        return add && bitEnumContainsAll(add.getFastmath(),
                                         arith::FastMathFlags::reassoc);
      });
}

/// The cost of `loop` as the innermost loop of `op`.
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

/// Parallel loops outside, reductions inside, and the cheapest loop innermost.
/// Reductions keep their relative order, which fixes the order of
/// floating-point sums.
SmallVector<unsigned> getLoopOrder(linalg::GenericOp op) {
  unsigned numLoops = op.getNumLoops();
  unsigned innermost = numLoops - 1;
  int64_t best = getInnermostCost(op, innermost);
  for (unsigned loop = numLoops - 1; loop-- > 0;) {
    int64_t cost = getInnermostCost(op, loop);
    // A reduction may become innermost only if it is the last reduction.
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

/// Ops with fewer elements run on the caller's thread, since waking another
/// thread costs more.
constexpr int64_t kFewElements = 1 << 18;
/// Elements of a task.
constexpr int64_t kTaskElements = 1 << 14;

/// Turns the first `count` loops of a perfect nest, whose iterations are
/// independent, into a parallel loop over blocks of iterations. Blocks depend
/// on sizes alone.
void parallelize(ArrayRef<Operation *> nest, size_t count) {
  SmallVector<scf::ForOp> loops = llvm::map_to_vector(
      nest, [](Operation *op) { return cast<scf::ForOp>(op); });
  ImplicitLocOpBuilder b(loops.front().getLoc(), loops.front());
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, value);
  };
  auto product = [&](ArrayRef<scf::ForOp> of) {
    Value all = index(1);
    for (scf::ForOp loop : of)
      all = b.createOrFold<arith::MulIOp>(all, loop.getUpperBound());
    return all;
  };
  Value outer = product(ArrayRef(loops).take_front(count));
  Value inner = product(ArrayRef(loops).drop_front(count));
  Value elements = b.createOrFold<arith::MulIOp>(outer, inner);
  Value isSmall = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle,
                                                elements, index(kFewElements));
  Value some = arith::DivSIOp::create(
      b, index(kTaskElements), arith::MaxSIOp::create(b, inner, index(1)));
  Value perTask = arith::MaxSIOp::create(
      b, arith::SelectOp::create(b, isSmall, outer, some), index(1));
  Value tasks = arith::CeilDivSIOp::create(b, outer, perTask);
  auto parallel = scf::ParallelOp::create(
      b, ValueRange{index(0)}, ValueRange{tasks}, ValueRange{index(1)});
  b.setInsertionPointToStart(parallel.getBody());
  Value from =
      arith::MulIOp::create(b, parallel.getInductionVars()[0], perTask);
  Value to =
      arith::MinSIOp::create(b, arith::AddIOp::create(b, from, perTask), outer);
  auto block = scf::ForOp::create(b, from, to, index(1));
  b.setInsertionPointToStart(block.getBody());
  // The last loop runs fastest.
  Value rest = block.getInductionVar();
  for (size_t i = count; i-- > 0;) {
    Value size = loops[i].getUpperBound(), at = rest;
    if (i > 0) {
      at = arith::RemSIOp::create(b, rest, size);
      rest = arith::DivSIOp::create(b, rest, size);
    }
    loops[i].getInductionVar().replaceAllUsesWith(at);
  }
  Block *body = loops[count - 1].getBody();
  block.getBody()->getOperations().splice(std::prev(block.getBody()->end()),
                                          body->getOperations(), body->begin(),
                                          std::prev(body->end()));
  loops.front().erase();
}

/// The number of outer loops that may be tasks: the parallel ones before the
/// innermost loop. 0 for an op that is known to be small.
size_t countTaskLoops(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  int64_t elements = 1;
  for (int64_t size : sizes)
    elements = ShapedType::isDynamic(size) || elements > kFewElements
                   ? kFewElements + 1
                   : elements * size;
  if (elements <= kFewElements || op->getParentOfType<scf::ParallelOp>())
    return 0;
  size_t count = 0;
  while (count + 1 < sizes.size() &&
         linalg::isParallelIterator(op.getIteratorTypesArray()[count]))
    ++count;
  return count;
}

LogicalResult lowerToLoops(IRRewriter &rewriter, linalg::LinalgOp op,
                           bool parallel) {
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
  FailureOr<linalg::LinalgLoops> loops =
      linalg::linalgOpToLoops(rewriter, generic);
  if (failed(loops))
    return generic.emitError("expected an operation that lowers to loops");
  size_t count = parallel ? countTaskLoops(generic) : 0;
  rewriter.eraseOp(generic);
  if (count > 0)
    parallelize(*loops, count);
  return success();
}

/// Copies between contiguous buffers become memcpy later. Others would become
/// calls to a support library that kernels do not link.
bool needsLoops(memref::CopyOp op) {
  auto isPlain = [](Value value) {
    auto type = dyn_cast<MemRefType>(value.getType());
    return type && type.getLayout().isIdentity();
  };
  return !isPlain(op.getSource()) || !isPlain(op.getTarget());
}

struct LowerLinalgToLoopsPass
    : public mlir::linattn::impl::LinAttnLowerLinalgToLoopsPassBase<
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
      if (failed(lowerToLoops(rewriter, op, parallel)))
        return signalPassFailure();
  }
};

} // namespace
