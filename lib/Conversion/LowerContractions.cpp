//===- LowerContractions.cpp - Products of matrices to vectors ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ContractionTile.h"
#include "linattn/Conversion/Passes.h"
#include "linattn/Transforms/Transforms.h"

#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNLOWERCONTRACTIONSPASS
#include "linattn/Conversion/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Finds the rows, columns and sums among the loops; the reason where the op is
/// not a product of matrices.
StringRef findDims(linalg::LinalgOp op, ContractionDims &dims) {
  if (!linalg::isaContractionOpInterface(op) || op.getNumDpsInputs() != 2)
    return "not a contraction of two operands";
  for (Value operand : op->getOperands())
    if (!isa<MemRefType>(operand.getType()) ||
        !isa<FloatType>(getElementTypeOrSelf(operand)))
      return "not buffers of floats";
  for (AffineMap map : op.getIndexingMapsArray())
    if (!map.isProjectedPermutation() || map.getNumResults() == 0)
      return "its maps do more than to choose dimensions";
  dims.output = op.getDpsInits()[0];
  dims.outputMap = op.getIndexingMapsArray()[2];
  dims.n = ContractionDims::lastOf(dims.outputMap);
  unsigned right = op.getIndexingMapsArray()[0].isFunctionOfDim(dims.n) ? 0 : 1;
  dims.right = op->getOperand(right);
  dims.left = op->getOperand(1 - right);
  dims.rightMap = op.getIndexingMapsArray()[right];
  dims.leftMap = op.getIndexingMapsArray()[1 - right];
  if (!dims.rightMap.isFunctionOfDim(dims.n) ||
      dims.leftMap.isFunctionOfDim(dims.n))
    return "the last dimension of its output is not one of a single operand";
  std::optional<unsigned> m;
  for (unsigned i = 0; i < op.getNumLoops(); ++i) {
    if (!dims.outputMap.isFunctionOfDim(i))
      dims.k.push_back(i);
    else if (i != dims.n && !dims.rightMap.isFunctionOfDim(i))
      m = i;
  }
  if (!m)
    return "one operand is a vector";
  dims.m = *m;
  for (unsigned i : dims.k)
    if (!dims.leftMap.isFunctionOfDim(i) || !dims.rightMap.isFunctionOfDim(i))
      return "it sums over what only one operand has";
  if (dims.k.empty())
    return "it sums over nothing";
  for (unsigned i = 0; i < op.getNumLoops(); ++i)
    if (i != dims.m && i != dims.n && dims.outputMap.isFunctionOfDim(i))
      (dims.leftMap.isFunctionOfDim(i) ? dims.outer : dims.ofPanels)
          .push_back(i);
  unsigned last = ContractionDims::lastOf(dims.rightMap);
  if (last != dims.n && last != dims.k.back())
    return "neither columns nor the last sum are neighbours in memory";
  return {};
}

/// The fill with zeros whose buffer the op is the first one to use; null if
/// there is none.
linalg::FillOp findZeroFill(linalg::LinalgOp op, Value output) {
  if (llvm::is_contained(op.getDpsInputs(), output))
    return {};
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    auto fill = dyn_cast<linalg::FillOp>(before);
    if (fill && fill.getOutputs()[0] == output)
      return matchPattern(fill.getInputs()[0], m_PosZeroFloat())
                 ? fill
                 : linalg::FillOp();
    if (!isMemoryEffectFree(before) && !isa<memref::AllocOp>(before))
      break;
  }
  return {};
}

/// Why a product stays a loop nest: too small to be packed, or within a task.
StringRef whyNotTiled(linalg::LinalgOp op, const ContractionDims &dims,
                      int64_t lanes) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  auto isBelow = [&](unsigned loop, int64_t least) {
    return !ShapedType::isDynamic(sizes[loop]) && sizes[loop] < least;
  };
  int64_t depth = 1;
  for (unsigned i : dims.k)
    depth = ShapedType::isDynamic(sizes[i]) ? lanes : depth * sizes[i];
  if (isBelow(dims.m, 8) || isBelow(dims.n, lanes) || depth < 8)
    return "a few rows, columns or summands";
  if (op->getParentOfType<scf::ParallelOp>() ||
      op->getParentOfType<scf::ForallOp>())
    return "within a task";
  return {};
}

struct ContractionToVector : OpInterfaceRewritePattern<linalg::LinalgOp> {
  ContractionToVector(MLIRContext *context, int64_t vectorBits,
                      int64_t registers)
      : OpInterfaceRewritePattern(context), vectorBits(vectorBits),
        registers(registers) {}

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override {
    if (!op.hasPureBufferSemantics())
      return rewriter.notifyMatchFailure(op, "not on buffers");
    ContractionDims dims;
    if (StringRef why = findDims(op, dims); !why.empty())
      return rewriter.notifyMatchFailure(op, why);
    Type type = getAccumulationType(getElementTypeOrSelf(dims.output));
    int64_t lanes = vectorBits / type.getIntOrFloatBitWidth();
    if (StringRef why = whyNotTiled(op, dims, lanes); !why.empty()) {
      remark::missed(op.getLoc(), remarkNamed("lower-contractions"))
          << "runs as loops: " + why.str();
      return rewriter.notifyMatchFailure(op, why);
    }
    int64_t cols = chooseColumns(op, dims, lanes);
    linalg::FillOp fill = findZeroFill(op, dims.output);
    ContractionTile(rewriter, op, std::move(dims), bool(fill), lanes, cols,
                    registers * 3 / 4 * lanes / cols)
        .emit();
    rewriter.eraseOp(op);
    if (fill)
      rewriter.eraseOp(fill);
    return success();
  }

private:
  /// Sums take three quarters of the registers, a row of the panel some of the
  /// others. Of two vectors of columns and many rows, or of four: the places of
  /// few rows stay in registers, too.
  int64_t chooseColumns(linalg::LinalgOp op, const ContractionDims &dims,
                        int64_t lanes) const {
    int64_t columns = op.getStaticLoopRanges()[dims.n];
    bool isWide = registers >= 32 && !ShapedType::isDynamic(columns) &&
                  columns % (4 * lanes) == 0;
    return (isWide ? 4 : 2) * lanes;
  }

  int64_t vectorBits, registers;
};

struct LinAttnLowerContractionsPass final
    : mlir::linattn::impl::LinAttnLowerContractionsPassBase<
          LinAttnLowerContractionsPass> {
  using LinAttnLowerContractionsPassBase::LinAttnLowerContractionsPassBase;

  LogicalResult initialize(MLIRContext *context) override {
    return verifyVectorTarget(context, vectorBits, registers);
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ContractionToVector>(&getContext(), vectorBits, registers);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace
