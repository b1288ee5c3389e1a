//===- ScanStates.cpp - The states a scan need not touch ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A scan updates its state in place. Where a fill with zero comes right before
// it, or before it in memory that is allocated for the state, the schedule may
// start from zero itself. Where the memory is allocated
// for the scan alone, it need not write the state that it ends with. Both are
// found on buffers, where the fill is an op that can be left out; a schedule
// that knows nothing of it runs the same program with the fill. So it is with
// the copy of an initial state, which a schedule may read where it lies.
//
//===----------------------------------------------------------------------===//

#include "ScanStates.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::linattn;

/// Does nothing between a fill and the scan read or write its memory? Other
/// allocations and their fills do not.
static bool isLeftAlone(linalg::FillOp fill, Operation *scan) {
  for (Operation *op = fill->getNextNode(); op && op != scan;
       op = op->getNextNode())
    if (!isMemoryEffectFree(op) && !isa<memref::AllocOp, linalg::FillOp>(op))
      return false;
  return true;
}

static StateUse findUse(Operation *op, Value state) {
  StateUse use;
  bool isAllocated = state.getDefiningOp<memref::AllocOp>() != nullptr;
  linalg::FillOp fill;
  bool onlyFilled = true, onlyFreed = isAllocated;
  for (Operation *user : state.getUsers()) {
    if (user == op || isa<memref::DeallocOp, memref::DimOp>(user) ||
        insideMutuallyExclusiveRegions(user, op))
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
      (isAllocated || isLeftAlone(fill, op)))
    use.zeroFill = fill;
  return use;
}

StateUse mlir::linattn::findStateUse(ScanOp op) {
  // A pool also holds states of other sequences.
  return op.getStateIndices() ? StateUse() : findUse(op, op.getState());
}

StateUse mlir::linattn::findStateUse(StateOp op) {
  return findUse(op, op.getState());
}

/// Sizes and addresses of memory, which neither read nor write it.
static bool isDescription(Operation *user) {
  if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(user))
    return metadata.getBaseBuffer().use_empty();
  return isa<memref::DimOp, memref::ExtractAlignedPointerAsIndexOp>(user);
}

static bool isEntryArgument(Value memref) {
  auto argument = dyn_cast<BlockArgument>(memref);
  return argument &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// Whether all users of the memory describe it, are `copy` or in it, or come
/// at `op` or after it.
static bool isLeftTo(Value memref, Operation *copy, Operation *op) {
  return llvm::all_of(memref.getUsers(), [&](Operation *user) {
    Operation *top = op->getBlock()->findAncestorOpInBlock(*user);
    return isDescription(user) ||
           (top && (top == copy || !top->isBeforeInBlock(op)));
  });
}

static InitialCopy findCopy(Operation *op, Value state) {
  for (Operation *user : state.getUsers()) {
    Value source;
    if (auto copy = dyn_cast<memref::CopyOp>(user))
      source = copy.getSource();
    else if (auto copy = dyn_cast<linalg::CopyOp>(user))
      source = copy.getInputs().front();
    // Two arguments do not overlap in part, but may be the same memory.
    if (!source || !isEntryArgument(source) ||
        source.getType() != state.getType() ||
        !(isEntryArgument(state) || state.getDefiningOp<memref::AllocOp>()))
      continue;
    Operation *top = op->getBlock()->findAncestorOpInBlock(*user);
    if (!top || !top->isBeforeInBlock(op))
      continue;
    // The copy itself, or alone in a branch.
    auto branch = dyn_cast<scf::IfOp>(top);
    bool isAlone = branch && user->getParentOp() == branch &&
                   branch.getElseRegion().empty() &&
                   branch.thenBlock()->getOperations().size() == 2;
    if ((top == user || isAlone) && isLeftTo(source, top, op) &&
        isLeftTo(state, top, op))
      return {top, source, isAlone ? branch.getCondition() : Value()};
  }
  return {};
}

InitialCopy mlir::linattn::findInitialCopy(ScanOp op) {
  // Other sequences keep their states; those without tokens are copied too.
  if (op.getStateIndices() || op.getCuSeqlens() ||
      llvm::count(op->getOperands(), op.getState()) != 1)
    return {};
  return findCopy(op, op.getState());
}

InitialCopy mlir::linattn::findInitialCopy(scf::ForallOp tasks, Value memory) {
  InitialCopy copy = findCopy(tasks, memory);
  // One task may not write what another copies.
  if (copy.op && llvm::any_of(copy.source.getUsers(), [&](Operation *user) {
        return tasks->isAncestor(user) && !isDescription(user);
      }))
    return {};
  return copy;
}
