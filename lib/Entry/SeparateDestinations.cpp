//===- SeparateDestinations.cpp - A tensor for each op that writes --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Entry/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSEPARATEDESTINATIONSPASS
#include "linattn/Entry/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// The tensors that an op overwrites, or that start a chain of writes.
SmallVector<OpOperand *> overwrittenOperands(Operation *op) {
  SmallVector<OpOperand *> operands;
  auto add = [&](MutableArrayRef<OpOperand> inits) {
    for (OpOperand &init : inits)
      if (isa<RankedTensorType>(init.get().getType()))
        operands.push_back(&init);
  };
  if (auto structured = dyn_cast<DestinationStyleOpInterface>(op))
    add(structured.getDpsInitsMutable());
  else if (auto loop = dyn_cast<scf::ForOp>(op))
    add(loop.getInitArgsMutable());
  else if (auto tasks = dyn_cast<scf::ForallOp>(op))
    add(tasks.getOutputsMutable());
  return operands;
}

bool isOverwritten(OpOperand &use) {
  return llvm::is_contained(overwrittenOperands(use.getOwner()), &use);
}

struct LinAttnSeparateDestinationsPass final
    : mlir::linattn::impl::LinAttnSeparateDestinationsPassBase<
          LinAttnSeparateDestinationsPass> {
  using LinAttnSeparateDestinationsPassBase::
      LinAttnSeparateDestinationsPassBase;

  void runOnOperation() override {
    SmallVector<OpOperand *> overwritten;
    getOperation()->walk([&](Operation *op) {
      llvm::append_range(overwritten, overwrittenOperands(op));
    });
    for (OpOperand *operand : overwritten)
      separate(*operand);
  }

private:
  void separate(OpOperand &operand) {
    Operation *user = operand.getOwner();
    OpBuilder b(user);
    Value value = operand.get();
    if (isEntryArgument(value)) {
      if (scf::IfOp branch = yieldingBranch(value, user)) {
        b.setInsertionPoint(branch);
        Value copy = copyOf(b, user->getLoc(), value);
        value.replaceUsesWithIf(copy, [&](OpOperand &use) {
          return branch->isProperAncestor(use.getOwner());
        });
        return;
      }
      if (isa<ScanOp, StateOp, RecurrenceOpInterface, scf::ForOp,
              scf::ForallOp>(user))
        operand.set(copyOf(b, user->getLoc(), value));
      return;
    }
    if (value.hasOneUse())
      return;
    Operation *source = value.getDefiningOp();
    if (isa_and_nonnull<tensor::EmptyOp, linalg::FillOp>(source)) {
      operand.set(cloneAt(user, source));
      return;
    }
    if (llvm::count_if(value.getUses(), isOverwritten) > 1)
      operand.set(copyOf(b, user->getLoc(), value));
  }

  bool isEntryArgument(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == &getOperation().front();
  }

  /// The branch around the user that may yield the value as it is: one copy in
  /// front of it serves what it yields and what it overwrites.
  static scf::IfOp yieldingBranch(Value value, Operation *user) {
    auto branch = user->getParentOfType<scf::IfOp>();
    bool yields = branch && llvm::any_of(value.getUses(), [&](OpOperand &use) {
                    return isa<scf::YieldOp>(use.getOwner()) &&
                           use.getOwner()->getParentOp() == branch;
                  });
    return yields ? branch : scf::IfOp();
  }

  /// A copy of an empty or constant tensor, with memory of its own: in a loop,
  /// of each iteration. A fill of a part of another tensor is one of an empty
  /// one, since both may be inserted into parts of results.
  static Value cloneAt(Operation *user, Operation *source) {
    OpBuilder b(user);
    IRMapping mapping;
    if (auto fill = dyn_cast<linalg::FillOp>(source))
      mapping.map(fill.output(), emptyLike(b, user->getLoc(), fill.output()));
    return b.clone(*source, mapping)->getResult(0);
  }

  static Value emptyLike(OpBuilder &b, Location loc, Value value) {
    return tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, value),
                                   getElementTypeOrSelf(value));
  }

  static Value copyOf(OpBuilder &b, Location loc, Value value) {
    return linalg::CopyOp::create(b, loc, value, emptyLike(b, loc, value))
        .getResult(0);
  }
};

} // namespace
