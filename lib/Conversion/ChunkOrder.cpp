//===- ChunkOrder.cpp - The chunk that a loop comes to next ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkOrder.h"
#include "ChunkOps.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace mlir::linattn;

/// Chunks come from the first to the last, or the other way round: then the
/// offset is what is left of a length that stays the same.
std::optional<ChunkOrder::Next> ChunkOrder::findNext(OpFoldResult offset) {
  auto position = dyn_cast<Value>(offset);
  if (!position)
    return std::nullopt;
  Value follow = v.add(loop.getInductionVar(), loop.getStep());
  Value isLast =
      v.compare(arith::CmpIPredicate::sge, follow, loop.getUpperBound());
  if (position == loop.getInductionVar())
    return Next{follow, isLast};
  auto left = position.getDefiningOp<arith::SubIOp>();
  if (!left || left.getRhs() != loop.getInductionVar() ||
      !loop.isDefinedOutsideOfLoop(left.getLhs()))
    return std::nullopt;
  return Next{v.sub(left.getLhs(), follow), isLast};
}

/// Whether the task has more chunks behind those of the loop.
bool ChunkOrder::hasLoopBehind() {
  for (Operation *op = loop->getNextNode(); op; op = op->getNextNode())
    if (isa<scf::ForOp>(op) && op->walk([](Operation *nested) {
                                   return isChunkOp(nested)
                                              ? WalkResult::interrupt()
                                              : WalkResult::advance();
                                 }).wasInterrupted())
      return true;
  return false;
}

/// After the last chunk come those of the next head.
std::optional<ChunkVectors::Stream>
ChunkOrder::tokensOf(memref::SubViewOp chunk, memref::SubViewOp task,
                     bool isWritten) {
  MemRefType type = chunk.getType();
  if (!memrefOf(task.getSource()).isLastDimUnitStride())
    return std::nullopt;
  std::optional<Next> next = findNext(chunk.getMixedOffsets()[2]);
  if (!next)
    return std::nullopt;
  Value source = task.getSource(), one = v.index(1);
  Value head = value(task.getMixedOffsets()[1]), nextHead = head;
  Value first = loop.getInductionVar();
  if (!hasLoopBehind()) {
    nextHead = v.min(v.add(head, one), v.sub(v.dim(source, 1), one));
    first = loop.getLowerBound();
  }
  first = v.select(next->isLast, first, next->first);
  int64_t size = type.getDimSize(2);
  return ChunkVectors::Stream{source,
                              value(task.getMixedOffsets()[0]),
                              v.select(next->isLast, nextHead, head),
                              v.add(value(task.getMixedOffsets()[2]), first),
                              v.sub(v.dim(source, 2), one),
                              ShapedType::isDynamic(size) ? *step : size,
                              type.getDimSize(3),
                              isWritten};
}

/// Rows of tokens, or a state for each chunk: as many rows at a time as a chunk
/// has tokens.
SmallVector<ChunkVectors::Stream> ChunkOrder::keptBy(memref::SubViewOp chunk,
                                                     bool isWritten) {
  MemRefType type = chunk.getType();
  SmallVector<OpFoldResult> offsets = chunk.getMixedOffsets();
  Value source = chunk.getSource(), zero = v.index(0);
  Value last = v.sub(v.dim(source, 2), v.index(1));
  if (!type.hasStaticShape())
    return {};
  if (std::optional<Next> next = findNext(offsets[2])) {
    Value first = v.select(next->isLast, value(offsets[2]), next->first);
    return {{source, zero, zero, first, last, *step, type.getDimSize(3),
             isWritten}};
  }
  auto number = dyn_cast<Value>(offsets[1]);
  auto quotient = number ? number.getDefiningOp<arith::DivUIOp>() : nullptr;
  if (!quotient || getConstantIntValue(quotient.getRhs()) != step)
    return {};
  std::optional<Next> next = findNext(quotient.getLhs());
  if (!next)
    return {};
  Value follow =
      v.select(next->isLast, number, v.div(next->first, loop.getStep()));
  SmallVector<ChunkVectors::Stream> streams;
  for (int64_t row = 0; row < type.getDimSize(2); row += *step)
    streams.push_back({source, zero, follow, v.index(row), last, *step,
                       type.getDimSize(3), isWritten});
  return streams;
}

SmallVector<ChunkVectors::Stream> ChunkOrder::findStreams(Value x,
                                                          bool isWritten) {
  auto chunk = x.getDefiningOp<memref::SubViewOp>();
  if (!chunk || memrefOf(x).getRank() != 4 || !step ||
      !loop->getParentOfType<scf::ForallOp>() ||
      !isStatic(memrefOf(x), /*butTokens=*/true))
    return {};
  if (isScratch(chunk.getSource()))
    return keptBy(chunk, isWritten);
  auto task = chunk.getSource().getDefiningOp<memref::SubViewOp>();
  if (!task)
    return {};
  std::optional<ChunkVectors::Stream> stream = tokensOf(chunk, task, isWritten);
  return stream ? SmallVector<ChunkVectors::Stream>{*stream}
                : SmallVector<ChunkVectors::Stream>();
}
