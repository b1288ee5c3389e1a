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
/// element, h a head, t a token, n a column, k a feature of a state. A letter
/// that is no loop is a dimension that stays whole.
struct Letters {
  StringRef loops;
  SmallVector<StringRef> operands;

  void add(ValueRange values, StringRef letters) {
    for (Value value : values)
      operands.push_back(letters.take_front(rankOf(value)));
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
  for (Value operand : {op.getShift(), op.getGate()})
    if (operand)
      letters.add(operand, rows);
  if (op.getMask())
    letters.add(op.getMask(), "bt");
  if (op.getScaleValue())
    letters.operands.push_back("");
  letters.add(op.getOutput(), rows);
  return letters;
}

static Letters lettersOf(ChunkUnpackOp op) {
  Letters letters{op.getReverse() ? "bhn" : rows, {rows}};
  if (op.getDenominator())
    letters.add(op.getDenominator(), "bht1");
  if (op.getRunningMax())
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
  if (op.getDecay())
    letters.add(op.getDecay(), rows);
  if (op.getBonus())
    letters.add(op.getBonus(), "hn");
  letters.add(op.getOutput(), scores);
  return letters;
}

static Letters lettersOf(ChunkSolveOp op) {
  Letters letters{"bhn", {scores}};
  if (op.getGate())
    letters.add(op.getGate(), rows);
  letters.add(op.getOutput(), rows);
  return letters;
}

static Letters lettersOf(ChunkReadOp op) {
  Letters letters{"bhn", {keys, op.getTranspose() ? "bhnk" : "bhkn"}};
  letters.add(op.getScores(), scores);
  letters.add(op.getValues(), rows);
  if (op.getDecay())
    letters.add(op.getDecay(), rows);
  letters.add(op.getOutput(), rows);
  return letters;
}

static Letters lettersOf(ChunkUpdateOp op) {
  Letters letters{"bhkn", {}};
  letters.add(op.getKeys(), keys);
  letters.add(op.getValues(), rows);
  if (op.getDecay())
    letters.add(op.getDecay(), keys);
  if (op.getValueDecay())
    letters.add(op.getValueDecay(), rows);
  letters.add(op.getOutput(), letters.loops);
  return letters;
}

namespace {

/// The loops of an op and of its operands. The last destination has all loops.
struct ChunkLoops {
  explicit ChunkLoops(Operation *op);

  Operation *op;
  SmallVector<DimLoops> operands;
  std::optional<int64_t> grouped;
  SmallVector<unsigned> dims;

  SmallVector<Range> domain(OpBuilder &b) const {
    SmallVector<Range> ranges;
    Value sized = op->getOperands().back();
    for (unsigned dim : dims)
      ranges.push_back({b.getIndexAttr(0),
                        tensor::getMixedSize(b, op->getLoc(), sized, dim),
                        b.getIndexAttr(1)});
    return ranges;
  }
};

} // namespace

ChunkLoops::ChunkLoops(Operation *op) : op(op) {
  Letters letters =
      llvm::TypeSwitch<Operation *, Letters>(op)
          .Case<ChunkPackOp, ChunkUnpackOp, ChunkDecayOp, ChunkStabilizeOp,
                ChunkScoresOp, ChunkSolveOp, ChunkReadOp, ChunkUpdateOp>(
              [](auto chunk) { return lettersOf(chunk); });
  for (StringRef operand : letters.operands) {
    DimLoops loops;
    for (char letter : operand) {
      size_t loop = letters.loops.find(letter);
      loops.push_back(loop == StringRef::npos ? kNoLoop : int64_t(loop));
    }
    operands.push_back(loops);
  }
  for (char letter : letters.loops)
    dims.push_back(letters.operands.back().find(letter));
  constexpr int64_t head = 1;
  if (hasGroups(op, operands, head))
    grouped = head;
}

static SmallVector<utils::IteratorType> iteratorTypes(Operation *op) {
  return SmallVector<utils::IteratorType>(ChunkLoops(op).dims.size(),
                                          utils::IteratorType::parallel);
}

static SmallVector<Range> iterationDomain(Operation *op, OpBuilder &b) {
  return ChunkLoops(op).domain(b);
}

static FailureOr<TilingResult> tile(Operation *op, OpBuilder &b,
                                    ArrayRef<OpFoldResult> offsets,
                                    ArrayRef<OpFoldResult> sizes) {
  ChunkLoops loops(op);
  if (loops.grouped) {
    int64_t head = *loops.grouped;
    if (!isWhole(offsets[head], sizes[head], loops.domain(b)[head].size))
      return op->emitOpError("cannot be tiled over heads: its operands' head "
                             "counts differ or are dynamic");
  }
  return tileByLoops(b, op, loops.operands, loops.grouped, offsets, sizes);
}

static OpOperand &destination(Operation *op, unsigned number) {
  return *cast<DestinationStyleOpInterface>(op).getDpsInitOperand(number);
}

static Tile resultTile(Operation *op, OpBuilder &b, unsigned number,
                       ArrayRef<OpFoldResult> offsets,
                       ArrayRef<OpFoldResult> sizes) {
  ChunkLoops loops(op);
  OpOperand &init = destination(op, number);
  return getOperandTile(b, op->getLoc(), init.get(),
                        loops.operands[init.getOperandNumber()], loops.grouped,
                        offsets, sizes);
}

static FailureOr<TilingResult> tileForResult(Operation *op, OpBuilder &b,
                                             unsigned number,
                                             ArrayRef<OpFoldResult> offsets,
                                             ArrayRef<OpFoldResult> sizes) {
  ChunkLoops loops(op);
  OpOperand &init = destination(op, number);
  FailureOr<Tile> part = getLoopTile(
      b, op->getLoc(), init.get(), loops.operands[init.getOperandNumber()],
      loops.grouped, loops.domain(b), offsets, sizes);
  if (failed(part))
    return failure();
  return tile(op, b, part->offsets, part->sizes);
}

LINATTN_TILING_METHODS(ChunkPackOp)
LINATTN_TILING_METHODS(ChunkUnpackOp)
LINATTN_TILING_METHODS(ChunkDecayOp)
LINATTN_TILING_METHODS(ChunkStabilizeOp)
LINATTN_TILING_METHODS(ChunkScoresOp)
LINATTN_TILING_METHODS(ChunkSolveOp)
LINATTN_TILING_METHODS(ChunkReadOp)
LINATTN_TILING_METHODS(ChunkUpdateOp)
