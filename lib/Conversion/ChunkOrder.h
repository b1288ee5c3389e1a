//===- ChunkOrder.h - The chunk that a loop comes to next -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHUNKORDER_H
#define LINATTN_CONVERSION_CHUNKORDER_H

#include "ChunkVectors.h"

namespace mlir::linattn {

/// The chunks that a loop of a task goes through, and the one after each.
class ChunkOrder {
public:
  ChunkOrder(ChunkVectors &v, scf::ForOp loop)
      : v(v), loop(loop), step(getConstantIntValue(loop.getStep())) {}

  /// The streams of the next chunk's rows behind `x`, the tokens of one chunk,
  /// or what the task itself keeps for it.
  SmallVector<ChunkVectors::Stream> findStreams(Value x, bool isWritten);

private:
  struct Next {
    Value first;  ///< Of the chunk after the current one, ...
    Value isLast; ///< ... if there is one.
  };
  std::optional<Next> findNext(OpFoldResult offset);
  bool hasLoopBehind();
  std::optional<ChunkVectors::Stream>
  tokensOf(memref::SubViewOp chunk, memref::SubViewOp task, bool isWritten);
  SmallVector<ChunkVectors::Stream> keptBy(memref::SubViewOp chunk,
                                           bool isWritten);
  Value value(OpFoldResult offset) {
    return getValueOrCreateConstantIndexOp(v.b, v.loc, offset);
  }

  ChunkVectors &v;
  scf::ForOp loop;
  std::optional<int64_t> step;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKORDER_H
