//===- FuseEpilogue.cpp - Norms that the kernel of a scan applies ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Moves the scan in front of its norm and marks both. A row can be normalized
// before it is stored if one task of the kernel computes all of its columns.
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Forms.h"
#include "linattn/Transforms/Passes.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNFUSEEPILOGUEPASS
#include "linattn/Transforms/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct LinAttnFuseEpiloguePass final
    : mlir::linattn::impl::LinAttnFuseEpiloguePassBase<
          LinAttnFuseEpiloguePass> {
  using LinAttnFuseEpiloguePassBase::LinAttnFuseEpiloguePassBase;

  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits);
  }

  void runOnOperation() override {
    getOperation()->walk([&](OutputNormOp norm) {
      if (!norm.hasPureBufferSemantics())
        return;
      ScanOp scan = findScan(norm);
      if (!scan)
        return;
      std::string why = whyNot(scan, norm);
      if (!why.empty()) {
        remark::missed(norm.getLoc(), remarkNamed("fuse-epilogue"))
            << "runs as a kernel of its own: " + why;
        return;
      }
      remark::passed(norm.getLoc(), remarkNamed("fuse-epilogue"))
          << "is applied by the kernel of its scan";
      scan->moveBefore(norm);
      auto unit = UnitAttr::get(&getContext());
      scan->setDiscardableAttr(kEpilogueAttrName, unit);
      norm->setDiscardableAttr(kEpilogueAttrName, unit);
      ++numFused;
    });
  }

private:
  /// The scan whose output is the norm's input, if there is one.
  static ScanOp findScan(OutputNormOp norm) {
    ScanOp found;
    for (Operation *user : norm.getInput().getUsers())
      if (auto scan = dyn_cast<ScanOp>(user);
          scan && scan.getOutput() == norm.getInput() &&
          scan->getBlock() == norm->getBlock() && scan->isBeforeInBlock(norm))
        found = scan;
    return found;
  }

  std::string whyNot(ScanOp scan, OutputNormOp norm) const {
    if (std::string why = whyNotPair(scan, norm); !why.empty())
      return why;
    return whyNotWholeRows(scan);
  }

  static std::string whyNotPair(ScanOp scan, OutputNormOp norm) {
    Value rows = norm.getInput();
    bool isInPlace = norm.getOutput() == rows;
    if (!isInPlace && !rows.getDefiningOp<memref::AllocOp>())
      return "the outputs of the scan are a result, too";
    for (Operation *user : rows.getUsers())
      if (user != scan && user != norm &&
          !isa<memref::DeallocOp, memref::DimOp>(user) &&
          (!isInPlace || user->getBlock() != norm->getBlock() ||
           user->isBeforeInBlock(norm)))
        return "something else reads or writes the outputs of the scan";
    if (getElementTypeOrSelf(scan.getState()) !=
        getAccumulationType(getElementTypeOrSelf(rows)))
      return "the scan computes in another type";
    // The scan's buffers must not change between the scan and the norm.
    llvm::SmallPtrSet<Value, 16> roots;
    for (Value operand : scan->getOperands())
      if (auto buffer = dyn_cast<MemrefValue>(operand))
        roots.insert(memref::skipViewLikeOps(buffer));
    for (Operation *op = scan->getNextNode(); op != norm;
         op = op->getNextNode()) {
      if (isMemoryEffectFree(op) || isa<memref::AllocOp>(op))
        continue;
      bool isApart =
          op->getNumRegions() == 0 || isa<DestinationStyleOpInterface>(op);
      for (Value operand : op->getOperands())
        if (auto buffer = dyn_cast<MemrefValue>(operand))
          isApart &= !roots.contains(memref::skipViewLikeOps(buffer));
      if (!isApart)
        return llvm::formatv("{0} stands between it and the scan",
                             op->getName().getStringRef())
            .str();
    }
    return {};
  }

  /// Why a kernel may not hold whole rows: with fewer states than this, kernels
  /// divide the columns of a state among tasks.
  std::string whyNotWholeRows(ScanOp scan) const {
    Form form = scan.getConfig() ? scan.getConfig()->getForm() : Form::Auto;
    Form vectorForm = getVectorForm(scan);
    bool chunk = vectorForm == Form::Chunk,
         tile = vectorForm == Form::StateTile;
    if (!chunk && !tile)
      return llvm::formatv("form {0} writes a row in parts",
                           stringifyForm(form))
          .str();
    if (chunk && scan.getCuSeqlens() && scan.getConfig() &&
        scan.getConfig()->getFew())
      return "packed sequences of a few tokens run token by token";
    if (scan.getStateIndices())
      return "sequences without a state have no rows in the kernel";
    auto type = cast<ShapedType>(scan.getState().getType());
    int64_t lanes = vectorBits / type.getElementTypeBitWidth();
    int64_t cols = 2 * lanes;
    if (scan.getConfig() && scan.getConfig()->getCols())
      cols = scan.getConfig()->getCols();
    if (scan.getNormalizer() || scan.getRunningMax() || isInTask(scan) ||
        (!type.isDynamicDim(3) && type.getDimSize(3) <= cols))
      return {};
    int64_t least = chunk ? 2 : 4;
    if (!type.isDynamicDim(1) && type.getDimSize(1) >= least)
      return {};
    return llvm::formatv("with fewer than {0} heads, or an unknown number, "
                         "several tasks share a row",
                         least)
        .str();
  }
};

} // namespace
