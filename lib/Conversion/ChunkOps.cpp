//===- ChunkOps.cpp - Ops of chunks that run in vectors -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkOps.h"

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/MapParameters.h"
#include "linattn/Transforms/Forms.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::linattn;

/// A map of single elements of a chunk's rows.
static bool isMapOfRows(Operation *op) {
  auto map = dyn_cast<FeatureMapOp>(op);
  if (!map || !map.hasPureBufferSemantics())
    return false;
  auto mapped = cast<FeatureMappedOpInterface>(op);
  MemRefType rows = memrefOf(map.getOutput());
  FeatureMapKind kind = mapped.getFeatureMapKind();
  return !needsWholeToken(kind) && kind != FeatureMapKind::SoftmaxKernel &&
         rows.hasStaticShape() && rows.getDimSize(0) == 1 &&
         rows.getDimSize(1) == 1 &&
         rows.getElementType() == memrefOf(map.getInput()).getElementType();
}

bool mlir::linattn::isChunkOp(Operation *op) {
  return op->getName().getStringRef().starts_with("linattn.chunk.") ||
         isMapOfRows(op);
}

bool mlir::linattn::isColumn(Operation *op) {
  auto isOne = [](Value x) { return memrefOf(x).getDimSize(3) == 1; };
  if (auto read = dyn_cast<ChunkReadOp>(op))
    return isOne(read.getOutput()) && !read.getTranspose() &&
           !read.getAdjoint() && !read.getDecay();
  auto update = dyn_cast<ChunkUpdateOp>(op);
  return update && isOne(update.getOutput()) && !update.getValueDecay();
}

/// Whether an operand is a column: in memory, a row.
static bool isColumnOf(Operation *op, Value operand) {
  if (memrefOf(operand).getDimSize(3) != 1)
    return false;
  if (auto unpack = dyn_cast<ChunkUnpackOp>(op))
    return operand == unpack.getDenominator();
  return isColumn(op);
}

bool mlir::linattn::isPerChannel(Value decay) {
  return decay && memrefOf(decay).getRank() == 4;
}

/// The clause of an op that its lowering leaves out; empty if none.
static StringRef whyNotClause(Operation *op) {
  if (auto pack = dyn_cast<ChunkPackOp>(op))
    return pack.getShift() ? "a shift" : "";
  if (auto unpack = dyn_cast<ChunkUnpackOp>(op))
    return unpack.getRunningMax() ? "a running maximum" : "";
  if (auto scores = dyn_cast<ChunkScoresOp>(op))
    return scores.getBonus() ? "a bonus" : "";
  if (isa<ChunkDecayOp, ChunkSolveOp, ChunkReadOp, FeatureMapOp>(op))
    return "";
  if (auto update = dyn_cast<ChunkUpdateOp>(op))
    return update.getDecay() && update.getValueDecay()
               ? "decays of both rows and columns"
               : "";
  return "an op without vectors";
}

/// Whether a column [1, 1, N, 1] collapses into neighbours in memory.
static bool liesAsRow(MemRefType column) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(column.getStridesAndOffset(strides, offset)) &&
         strides[2] == 1 &&
         memref::CollapseShapeOp::isGuaranteedCollapsible(
             column, ArrayRef<ReassociationIndices>{{0, 1, 2, 3}});
}

static bool isScores(Operation *op, Value operand) {
  if (auto scores = dyn_cast<ChunkScoresOp>(op))
    return operand == scores.getOutput();
  if (auto solve = dyn_cast<ChunkSolveOp>(op))
    return operand == solve.getScores();
  if (auto read = dyn_cast<ChunkReadOp>(op))
    return llvm::is_contained(read.getScores(), operand);
  return false;
}

Type mlir::linattn::typeOf(Operation *op) {
  return getElementTypeOrSelf(
      isa<ChunkUnpackOp>(op) ? op->getOperand(0) : op->getOperands().back());
}

bool mlir::linattn::takesLater(Operation *op) {
  auto solve = dyn_cast<ChunkSolveOp>(op);
  auto read = dyn_cast<ChunkReadOp>(op);
  return (solve && solve.getTranspose()) || (read && read.getAdjoint());
}

/// Whether an operand is rows of tokens, of which there may be fewer than in a
/// whole chunk.
static bool isTokensOf(Operation *op, Value operand) {
  if (isa<ChunkUnpackOp>(op))
    return true;
  auto pack = dyn_cast<ChunkPackOp>(op);
  return pack && pack.getPadded() && operand == pack.getInput();
}

bool mlir::linattn::isStatic(MemRefType memref, bool butTokens) {
  for (auto [i, size] : llvm::enumerate(memref.getShape()))
    if (ShapedType::isDynamic(size) && !(butTokens && i == 2))
      return false;
  return true;
}

StringRef mlir::linattn::whyNoVectors(Operation *op, int64_t vectorBits,
                                      int64_t registers) {
  if (StringRef clause = whyNotClause(op); !clause.empty())
    return clause;
  Type type = typeOf(op);
  if (!type.isF32() && !type.isF64())
    return "rows that are neither f32 nor f64";
  int64_t lanes = vectorBits / type.getIntOrFloatBitWidth();
  bool moves = isa<ChunkPackOp, ChunkUnpackOp>(op);
  if (takesLater(op))
    if (auto rows = memrefOf(op->getOperands().back());
        rows.isDynamicDim(2) || rows.getDimSize(2) % (registers / 4))
      return "scores of later tokens without whole tiles";
  for (Value operand : op->getOperands()) {
    auto memref = dyn_cast<MemRefType>(operand.getType());
    if (!memref || memref.getRank() < 3)
      continue;
    if (!isStatic(memref, isTokensOf(op, operand)))
      return "sizes that are not known";
    if (memref.getDimSize(0) != 1 || memref.getDimSize(1) != 1)
      return "several heads";
    if (memref.getRank() != 4)
      continue;
    if (isColumnOf(op, operand)) {
      // Denominators may be the first of a chunk's.
      bool isPart = isa<ChunkUnpackOp>(op);
      if (!liesAsRow(memrefOf(isPart ? rowsOf(operand) : operand)))
        return "a column that does not lie in memory as a row";
      continue;
    }
    if (memref.getDimSize(3) % lanes && !moves && !isScores(op, operand))
      return "features that are not whole vectors";
    if (!moves && !memref.isLastDimUnitStride())
      return "rows that do not lie in memory as such";
  }
  return {};
}

ArrayRef<int64_t> mlir::linattn::tileSummandsOf(Operation *op) {
  if (auto read = dyn_cast<ChunkReadOp>(op); read && read.getTranspose())
    return {};
  if (takesLater(op))
    return {};
  return TypeSwitch<Operation *, ArrayRef<int64_t>>(op)
      .Case<ChunkScoresOp, ChunkReadOp, ChunkUpdateOp>(
          [](auto product) -> ArrayRef<int64_t> {
            if (isa<ChunkReadOp>(product.getOperation()) &&
                product.decaysTerms())
              return {};
            for (Value matrix : product.getMatrices())
              for (int64_t dim : {2, 3})
                if (memrefOf(matrix).getDimSize(dim) % kTileRows)
                  return {};
            return product.getSummands().value_or(ArrayRef<int64_t>());
          })
      .Default({});
}

Value mlir::linattn::rowsOf(Value buffer) {
  auto view = buffer.getDefiningOp<memref::SubViewOp>();
  if (!view || view.getType().getRank() != view.getSourceType().getRank())
    return buffer;
  auto isAll = [](ArrayRef<OpFoldResult> values, int64_t expected) {
    return llvm::all_of(values, [&](OpFoldResult value) {
      return isConstantIntValue(value, expected);
    });
  };
  return isAll(view.getMixedOffsets(), 0) && isAll(view.getMixedStrides(), 1)
             ? view.getSource()
             : buffer;
}

Value mlir::linattn::wholeRowsOf(Value buffer) {
  Value rows = rowsOf(buffer);
  return memrefOf(rows).getShape().drop_back() ==
                 memrefOf(buffer).getShape().drop_back()
             ? rows
             : buffer;
}

bool mlir::linattn::isScratch(Value x) {
  return x.getDefiningOp<memref::AllocOp>() ||
         x.getDefiningOp<memref::AllocaOp>();
}
