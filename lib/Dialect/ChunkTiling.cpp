//===- ChunkTiling.cpp - Tiling of the ops of a chunk ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loops of a chunk op are the dimensions that its formula does not mix:
// batch elements and heads of all, tokens where each is a row of its own,
// columns of the values, and rows of the state that is updated. Every tile
// computes its elements by the sums of the whole op, so that the bits stay.
//
//===----------------------------------------------------------------------===//

#include "LoopTiles.h"

#include "linattn/Dialect/LinAttnChunk.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// A letter for each loop, and for each dimension of each operand: b a batch
/// element, h a head, t a token, n a column, k a feature of a state. Dimensions
/// whose letter is not among the loops are not split.
struct Letters {
  StringRef loops;
  SmallVector<StringRef> operands;

  /// Nothing for an operand that is left out.
  void add(Value value, StringRef letters) {
    if (value)
      operands.push_back(letters.take_front(rankOf(value)));
  }
  void add(ValueRange values, StringRef letters) {
    for (Value value : values)
      add(value, letters);
  }
};

} // namespace

static constexpr StringLiteral rows = "bhtn", keys = "bhtk", scores = "bhtt";

static Letters lettersOf(ChunkPackOp op) {
  Letters letters;
  // Rows in another order or number than tokens are one tile.
  if (op.getReverse() || op.getPadded())
    letters.loops = StringRef("bhn").take_front(rankOf(op.getOutput()) - 1);
  else
    letters.loops = rows.take_front(rankOf(op.getOutput()));
  letters.add(op.getInput(), rankOf(op.getInput()) == 1 ? "h" : rows);
  letters.add(op.getShift(), rows);
  letters.add(op.getGate(), rows);
  letters.add(op.getMask(), "bt");
  if (op.getScaleValue())
    letters.operands.push_back("");
  letters.add(op.getOutput(), rows);
  return letters;
}

static Letters lettersOf(ChunkUnpackOp op) {
  Letters letters{op.getReverse() ? "bhn" : rows, {rows}};
  letters.add(op.getDenominator(), "bht1");
  letters.add(op.getRunningMax(), rows);
  letters.add(op.getOutput(), rows);
  return letters;
}

static Letters lettersOf(ChunkDecayOp op) {
  Letters letters{"bhn", {}};
  letters.add(op->getOperands(), rows);
  return letters;
}

static Letters lettersOf(ChunkStabilizeOp op) {
  Letters letters{"bh", {}};
  letters.add(op->getOperands(), rows);
  return letters;
}

static Letters lettersOf(ChunkScoresOp op) {
  Letters letters{"bh", {rows, rows}};
  letters.add(op.getDecay(), rows);
  letters.add(op.getBonus(), "hn");
  letters.add(op.getOutput(), scores);
  return letters;
}

static Letters lettersOf(ChunkSolveOp op) {
  Letters letters{"bhn", {scores}};
  letters.add(op.getGate(), rows);
  letters.add(op.getOutput(), rows);
  return letters;
}

static Letters lettersOf(ChunkReadOp op) {
  Letters letters{"bhn", {keys, op.getTranspose() ? "bhnk" : "bhkn"}};
  letters.add(op.getScores(), scores);
  letters.add(op.getValues(), rows);
  letters.add(op.getDecay(), rows);
  letters.add(op.getOutput(), rows);
  return letters;
}

static Letters lettersOf(ChunkUpdateOp op) {
  Letters letters{"bhkn", {}};
  letters.add(op.getKeys(), keys);
  letters.add(op.getValues(), rows);
  letters.add(op.getDecay(), keys);
  letters.add(op.getValueDecay(), rows);
  letters.add(op.getOutput(), letters.loops);
  return letters;
}

static Letters lettersOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, Letters>(op)
      .Case<ChunkPackOp, ChunkUnpackOp, ChunkDecayOp, ChunkStabilizeOp,
            ChunkScoresOp, ChunkSolveOp, ChunkReadOp, ChunkUpdateOp>(
          [](auto chunk) { return lettersOf(chunk); });
}

static OpLoops loopsOf(Operation *op) {
  Letters letters = lettersOf(op);
  SmallVector<DimLoops> operands;
  for (StringRef operand : letters.operands) {
    DimLoops dims;
    for (char letter : operand) {
      size_t loop = letters.loops.find(letter);
      dims.push_back(loop == StringRef::npos ? kNoLoop : int64_t(loop));
    }
    operands.push_back(dims);
  }
  return groupHeads(op, operands, /*head=*/1);
}

/// The last destination has all loops.
static SmallVector<Range> iterationDomain(Operation *op, OpBuilder &b) {
  Letters letters = lettersOf(op);
  SmallVector<Range> domain;
  for (char letter : letters.loops) {
    size_t dim = letters.operands.back().find(letter);
    OpFoldResult size =
        tensor::getMixedSize(b, op->getLoc(), op->getOperands().back(), dim);
    domain.push_back({b.getIndexAttr(0), size, b.getIndexAttr(1)});
  }
  return domain;
}

static SmallVector<utils::IteratorType> iteratorTypes(Operation *op) {
  return SmallVector<utils::IteratorType>(lettersOf(op).loops.size(),
                                          utils::IteratorType::parallel);
}

static FailureOr<TilingResult> tile(Operation *op, OpBuilder &b,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes) {
  OpLoops loops = loopsOf(op);
  SmallVector<Range> domain = iterationDomain(op, b);
  if (failed(checkGroups(op, loops, domain, offsets, sizes)))
    return failure();
  return tileByLoops(b, op, loops, offsets, sizes);
}

LINATTN_TILING_METHODS(ChunkPackOp)
LINATTN_TILING_METHODS(ChunkUnpackOp)
LINATTN_TILING_METHODS(ChunkDecayOp)
LINATTN_TILING_METHODS(ChunkStabilizeOp)
LINATTN_TILING_METHODS(ChunkScoresOp)
LINATTN_TILING_METHODS(ChunkSolveOp)
LINATTN_TILING_METHODS(ChunkReadOp)
LINATTN_TILING_METHODS(ChunkUpdateOp)
