//===- FusePrologue.cpp - Maps that the kernel of a scan applies ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Marks the ops that compute the rows of a scan's operands. The kernel, which
// packs each row before use, then computes it there.
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/ScanTraits.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Prologue.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNFUSEPROLOGUEPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

/// The memory that a buffer is part of; another value is its own root.
static Value rootOf(Value value) {
  auto buffer = dyn_cast_if_present<MemrefValue>(value);
  return buffer ? memref::skipViewLikeOps(buffer) : value;
}

/// Two such roots are the same memory only if they are the same value.
static bool isKnownRoot(Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root))
    return isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return root.getDefiningOp<memref::AllocOp>() ||
         root.getDefiningOp<memref::GetGlobalOp>();
}

arith::AddFOp mlir::linattn::getRowSum(linalg::GenericOp op) {
  auto add = op.getBody()
                 ->getTerminator()
                 ->getOperand(0)
                 .getDefiningOp<arith::AddFOp>();
  BlockArgument out = op.getRegionOutputArgs().front();
  bool isSum = add && add->getBlock() == op.getBody() && out.hasOneUse() &&
               (add.getLhs() == out) != (add.getRhs() == out);
  return isSum ? add : nullptr;
}

namespace {

/// The dimensions of a token's row: batch, head, token, feature.
constexpr unsigned kRowDims = 4;

/// Collects the ops that compute one operand of a scan.
class Prologue {
public:
  Prologue(ScanOp scan) : scan(scan) {}

  /// Returns why the kernel cannot compute the rows of `operand`; empty if it
  /// can.
  std::string add(Value operand);

  /// Ops in the order of use: each op precedes the ops of its operands.
  llvm::SetVector<Operation *> ops;

private:
  std::string addRows(linalg::GenericOp op);
  std::string addNumbers(linalg::GenericOp op);
  std::string addInputs(linalg::GenericOp op);
  std::string addBody(linalg::GenericOp op);
  std::string whyNotUsers(Value memref);
  std::string whyNotKept();

  ScanOp scan;
  llvm::SmallSetVector<Value, 8> made, raw;
};

std::string Prologue::addBody(linalg::GenericOp op) {
  if (op->getBlock() != scan->getBlock() || !op->isBeforeInBlock(scan))
    return "it is made elsewhere";
  for (Operation &nested : op.getBody()->without_terminator())
    if (nested.getNumRegions() != 0 || nested.getNumResults() != 1 ||
        (!nested.hasTrait<OpTrait::ConstantLike>() &&
         !OpTrait::hasElementwiseMappableTraits(&nested)))
      return llvm::formatv("'{0}' does not take vectors",
                           nested.getName().getStringRef());
  ops.insert(op);
  return {};
}

std::string Prologue::addInputs(linalg::GenericOp op) {
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    if (!isa<MemRefType>(input->get().getType()))
      continue;
    if (!map.isProjectedPermutation())
      return "it is made of elements that are not its own";
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (expr == getAffineDimExpr(kRowDims - 1, op.getContext()) &&
          i + 1 != map.getNumResults())
        return "it is made of elements that are not neighbours";
    auto producer = findWriter(input->get());
    AffineMap numbers =
        AffineMap::getMultiDimIdentityMap(kRowDims - 1, op.getContext());
    if (!producer || map.getResults() != numbers.getResults()) {
      if (!isKnownRoot(rootOf(input->get())))
        return "it is made of memory that may be another's";
      raw.insert(rootOf(input->get()));
      continue;
    }
    made.insert(input->get());
    if (std::string why = addNumbers(producer); !why.empty())
      return why;
  }
  return {};
}

/// A number per token, computed from other numbers or summed over the token's
/// row.
std::string Prologue::addNumbers(linalg::GenericOp op) {
  if (std::string why = addBody(op); !why.empty())
    return why;
  AffineMap map = op.getIndexingMapsArray().back();
  bool isSum =
      op.getNumLoops() == kRowDims && op.getNumReductionLoops() == 1 &&
      op.getIteratorTypesArray().back() == utils::IteratorType::reduction &&
      getRowSum(op) &&
      llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
        return op.getMatchingIndexingMap(input).isFunctionOfDim(kRowDims - 1);
      });
  bool isMap = op.getNumLoops() == kRowDims - 1 &&
               op.getNumReductionLoops() == 0 &&
               !op.payloadUsesValueFromOperand(op.getDpsInitOperand(0));
  AffineMap numbers =
      AffineMap::getMultiDimIdentityMap(kRowDims - 1, op.getContext());
  if ((!isSum && !isMap) || map.getResults() != numbers.getResults())
    return "a number of it is neither a map nor a sum";
  if (isSum) {
    linalg::FillOp fill = findFill(op.getDpsInits()[0]);
    if (!fill)
      return "a sum starts from something else than a fill";
    ops.insert(fill);
  }
  return addInputs(op);
}

std::string Prologue::addRows(linalg::GenericOp op) {
  if (std::string why = addBody(op); !why.empty())
    return why;
  if (op.getNumLoops() != kRowDims || op.getNumReductionLoops() != 0 ||
      !op.getIndexingMapsArray().back().isIdentity() ||
      op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)))
    return "it is not a map of rows";
  return addInputs(op);
}

/// The scan must be the only reader, because the value is not stored.
std::string Prologue::whyNotUsers(Value memref) {
  for (Operation *user : memref.getUsers())
    if (user != scan && !ops.contains(user) &&
        !isa<memref::DeallocOp, memref::DimOp>(user))
      return llvm::formatv("'{0}' uses it, too",
                           user->getName().getStringRef());
  return {};
}

/// The sources of the rows must not change before the scan runs.
std::string Prologue::whyNotKept() {
  Operation *first = ops.front();
  for (Operation *op : ops)
    if (op->isBeforeInBlock(first))
      first = op;
  for (Operation *op = first; op != scan; op = op->getNextNode()) {
    if (ops.contains(op))
      continue;
    auto effects = getEffectsRecursively(op);
    bool touches = !effects;
    if (effects)
      for (const MemoryEffects::EffectInstance &effect : *effects)
        if (isa<MemoryEffects::Write, MemoryEffects::Free>(
                effect.getEffect())) {
          Value root = rootOf(effect.getValue());
          touches |= !root || !isKnownRoot(root) || raw.contains(root);
        }
    if (touches)
      return llvm::formatv("'{0}' may change what it is made of",
                           op->getName().getStringRef());
  }
  return {};
}

std::string Prologue::add(Value operand) {
  made.insert(operand);
  if (std::string why = addRows(findWriter(operand)); !why.empty())
    return why;
  for (Value memref : made)
    if (std::string why = whyNotUsers(memref); !why.empty())
      return why;
  return whyNotKept();
}

struct LinAttnFuseProloguePass final
    : mlir::linattn::impl::LinAttnFuseProloguePassBase<
          LinAttnFuseProloguePass> {
  using LinAttnFuseProloguePassBase::LinAttnFuseProloguePassBase;

  void runOnOperation() override {
    getOperation()->walk([&](ScanOp scan) {
      if (!scan.hasPureBufferSemantics() ||
          !whyNot(scan, ::linattn::Schedule::Vectors).empty())
        return;
      llvm::SmallSetVector<Value, 8> operands;
      for (Value operand :
           {scan.getQuery(), scan.getKey(), scan.getValue(), scan.getDecay(),
            scan.getValueDecay(), scan.getBeta(), scan.getErase(),
            scan.getWrite(), scan.getA(), scan.getB()})
        if (operand && cast<MemRefType>(operand.getType()).getRank() ==
                           static_cast<int64_t>(kRowDims))
          operands.insert(operand);
      for (Value operand : operands)
        if (findWriter(operand))
          fuse(scan, operand);
    });
  }

private:
  void fuse(ScanOp scan, Value operand) {
    Prologue prologue(scan);
    std::string why = prologue.add(operand);
    Location loc = findWriter(operand).getLoc();
    if (!why.empty()) {
      remark::missed(loc, remarkNamed("fuse-prologue"))
          << "runs as a pass over memory before its scan: " + why;
      return;
    }
    remark::passed(loc, remarkNamed("fuse-prologue"))
        << "is made by the kernel of its scan";
    for (Operation *op : prologue.ops)
      op->setDiscardableAttr(kPrologueAttrName, UnitAttr::get(&getContext()));
    ++numFused;
  }
};

} // namespace

linalg::GenericOp mlir::linattn::findWriter(Value memref) {
  if (!memref.getDefiningOp<memref::AllocOp>())
    return {};
  linalg::GenericOp writer;
  for (Operation *user : memref.getUsers()) {
    auto op = dyn_cast<linalg::GenericOp>(user);
    if (!op || op.getNumDpsInits() != 1 || op.getDpsInits()[0] != memref)
      continue;
    if (writer)
      return {};
    writer = op;
  }
  return writer;
}

linalg::FillOp mlir::linattn::findFill(Value memref) {
  linalg::FillOp fill;
  for (Operation *user : memref.getUsers())
    if (auto op = dyn_cast<linalg::FillOp>(user)) {
      if (fill)
        return {};
      fill = op;
    }
  return fill;
}

linalg::GenericOp mlir::linattn::findPrologue(Value memref) {
  linalg::GenericOp writer = findWriter(memref);
  return writer && writer->hasAttr(kPrologueAttrName) ? writer
                                                      : linalg::GenericOp();
}
