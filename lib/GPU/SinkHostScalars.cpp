//===- SinkHostScalars.cpp - Scalars that kernels compute for themselves --===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host of a launch knows sizes, strides and addresses. Elements of arrays
// lie in the memory of the GPU, and floats are not what launches compute with:
// a loop that uses such scalars computes them in its own body.
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSINKHOSTSCALARSPASS
#include "linattn/GPU/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;

/// Whether no op writes to a buffer, or passes it to an op that may.
static bool isOnlyRead(Value buffer) {
  return llvm::all_of(buffer.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<memref::LoadOp, memref::DimOp>(user))
      return true;
    if (auto op = dyn_cast<linalg::LinalgOp>(user))
      return op.isDpsInput(&use);
    return isa<ViewLikeOpInterface>(user) &&
           llvm::all_of(user->getResults(), isOnlyRead);
  });
}

/// An element that never changes: of an argument that is only read. Results are
/// floating-point arrays, which do not overlap arrays of integers.
static bool isConstantElement(memref::LoadOp load) {
  if (!load.getType().isIntOrIndex())
    return false;
  Value root = memref::skipViewLikeOps(cast<MemrefValue>(load.getMemRef()));
  auto argument = dyn_cast<BlockArgument>(root);
  return argument &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp()) &&
         isOnlyRead(argument);
}

/// Scalar arithmetic on floats, or on elements of arrays.
static bool mustSink(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->hasTrait<OpTrait::ConstantLike>())
    return false;
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return isConstantElement(load);
  return isa_and_present<arith::ArithDialect, math::MathDialect>(
             op->getDialect()) &&
         op->getNumRegions() == 0 && isPure(op) &&
         (isa<FloatType>(value.getType()) ||
          llvm::any_of(op->getOperands(), mustSink));
}

/// The value, computed at the builder's place.
static Value sink(OpBuilder &b, Value value, IRMapping &map) {
  if (map.contains(value) || !mustSink(value))
    return map.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    sink(b, operand, map);
  b.clone(*op, map);
  return map.lookup(value);
}

/// Clones the values that the loop's body needs. Returns their number.
static unsigned sinkInto(scf::ParallelOp loop) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(loop.getRegion(), used);
  auto b = OpBuilder::atBlockBegin(loop.getBody());
  IRMapping map;
  unsigned count = 0;
  for (Value value : used) {
    if (!mustSink(value))
      continue;
    Value inside = sink(b, value, map);
    value.replaceUsesWithIf(inside, [&](OpOperand &use) {
      return loop.getRegion().isAncestor(use.getOwner()->getParentRegion()) &&
             use.getOwner() != inside.getDefiningOp();
    });
    ++count;
  }
  return count;
}

namespace {

struct LinAttnSinkHostScalarsPass final
    : mlir::linattn::impl::LinAttnSinkHostScalarsPassBase<
          LinAttnSinkHostScalarsPass> {
  using LinAttnSinkHostScalarsPassBase::LinAttnSinkHostScalarsPassBase;

  void runOnOperation() override {
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      auto loop = dyn_cast<scf::ParallelOp>(op);
      if (loop)
        numSunk += sinkInto(loop);
      return loop || isa<gpu::LaunchOp>(op) ? WalkResult::skip()
                                            : WalkResult::advance();
    });
    // Loads that only loops used.
    IRRewriter rewriter(&getContext());
    (void)runRegionDCE(rewriter, getOperation()->getRegions());
  }
};

} // namespace
