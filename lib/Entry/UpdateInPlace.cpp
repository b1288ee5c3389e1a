//===- UpdateInPlace.cpp - States that the caller updates in place --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Entry/EntryLayout.h"
#include "linattn/Entry/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNUPDATEINPLACEPASS
#include "linattn/Entry/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// A copy of one buffer to another.
struct Copy {
  Operation *op;
  Value source, target;
};

std::optional<Copy> getCopy(Operation *op) {
  if (auto copy = dyn_cast<memref::CopyOp>(op))
    return Copy{op, copy.getSource(), copy.getTarget()};
  auto copy = dyn_cast<linalg::CopyOp>(op);
  if (copy && copy.hasPureBufferSemantics())
    return Copy{op, copy.getInputs().front(), copy.getOutputs().front()};
  return std::nullopt;
}

struct LinAttnUpdateInPlacePass final
    : mlir::linattn::impl::LinAttnUpdateInPlacePassBase<
          LinAttnUpdateInPlacePass> {
  using LinAttnUpdateInPlacePassBase::LinAttnUpdateInPlacePassBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal() || !func.isPublic())
      return;
    SmallVector<int64_t> inPlace(func.getNumArguments(), -1);
    SmallVector<Copy> copies;
    for (Operation &op : func.front())
      if (std::optional<Copy> copy = getCopy(&op); copy && isUpdate(*copy)) {
        copies.push_back(*copy);
        inPlace[numberOf(copy->target)] = numberOf(copy->source);
      }
    if (copies.empty())
      return;
    for (Copy &copy : copies)
      if (guardCopies)
        guard(copy);
    func->setAttr(kInPlaceAttrName,
                  DenseI64ArrayAttr::get(&getContext(), inPlace));
  }

private:
  static int64_t numberOf(Value value) {
    return cast<BlockArgument>(value).getArgNumber();
  }
  bool isArgument(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == &getOperation().front();
  }

  /// Whether the copy is the source's only reader, and the target's first use.
  bool isUpdate(const Copy &copy) {
    if (!isArgument(copy.source) || !isArgument(copy.target) ||
        copy.source == copy.target ||
        copy.source.getType() != copy.target.getType())
      return false;
    for (Operation *user : copy.source.getUsers())
      if (user != copy.op && !isa<memref::DimOp>(user))
        return false;
    for (Operation *user : copy.target.getUsers()) {
      Operation *top = copy.op->getBlock()->findAncestorOpInBlock(*user);
      if (user != copy.op && !isa<memref::DimOp>(user) &&
          (!top || !copy.op->isBeforeInBlock(top)))
        return false;
    }
    return true;
  }

  /// Skips the copy if source and target are the same memory.
  static void guard(Copy &copy) {
    OpBuilder b(copy.op);
    Location loc = copy.op->getLoc();
    Value differs;
    auto compare = [&](Value x, Value y) {
      Value other =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, y);
      differs = differs ? arith::OrIOp::create(b, loc, differs, other) : other;
    };
    auto address = [&](Value memref) -> Value {
      return memref::ExtractAlignedPointerAsIndexOp::create(b, loc, memref);
    };
    auto offset = [&](Value memref) -> Value {
      return memref::ExtractStridedMetadataOp::create(b, loc, memref)
          .getOffset();
    };
    compare(address(copy.source), address(copy.target));
    compare(offset(copy.source), offset(copy.target));
    auto branch = scf::IfOp::create(b, loc, differs, /*withElse=*/false);
    copy.op->moveBefore(branch.thenBlock()->getTerminator());
  }
};

} // namespace
