//===- ScanStates.cpp - The states a scan need not touch ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A scan updates its state in place. Where a fill with zero comes right before
// it, the schedule may start from zero itself. Where the memory is allocated
// for the scan alone, it need not write the state that it ends with. Both are
// found on buffers, where the fill is an op that can be left out; a schedule
// that knows nothing of it runs the same program with the fill.
//
//===----------------------------------------------------------------------===//

#include "ScanStates.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::linattn;

/// Does nothing between a fill and the scan read or write its memory? Other
/// allocations and their fills do not.
static bool isLeftAlone(linalg::FillOp fill, ScanOp scan) {
  for (Operation *op = fill->getNextNode(); op && op != scan;
       op = op->getNextNode())
    if (!isMemoryEffectFree(op) && !isa<memref::AllocOp, linalg::FillOp>(op))
      return false;
  return true;
}

StateUse mlir::linattn::findStateUse(ScanOp op) {
  StateUse use;
  Value state = op.getState();
  // The rows of a pool are those of other sequences too.
  if (op.getStateIndices())
    return use;
  bool isAllocated = state.getDefiningOp<memref::AllocOp>() != nullptr;
  linalg::FillOp fill;
  bool onlyFilled = true, onlyFreed = isAllocated;
  for (Operation *user : state.getUsers()) {
    if (user == op || isa<memref::DeallocOp, memref::DimOp>(user))
      continue;
    auto candidate = dyn_cast<linalg::FillOp>(user);
    bool isBefore =
        user->getBlock() == op->getBlock() && user->isBeforeInBlock(op);
    if (candidate && isBefore && !fill) {
      fill = candidate;
      continue;
    }
    onlyFreed = false;
    // Users after the scan read its final state.
    onlyFilled &= user->getBlock() == op->getBlock() && !isBefore;
  }
  // The scan may name its state once only.
  bool isNamedOnce = llvm::count(op->getOperands(), state) == 1;
  use.endsUnused = onlyFreed && isNamedOnce;
  if (fill && onlyFilled && isNamedOnce &&
      matchPattern(fill.getInputs().front(), m_AnyZeroFloat()) &&
      isLeftAlone(fill, op))
    use.zeroFill = fill;
  return use;
}
