//===- ChunkFusion.h - Ops of chunks that become one ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHUNKFUSION_H
#define LINATTN_CONVERSION_CHUNKFUSION_H

#include "linattn/Dialect/LinAttnChunk.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::linattn {

/// The fill with zero that a read adds to; null if there is none.
linalg::FillOp findFill(ChunkReadOp read);

/// How the sums of a read become its tokens, with nothing in between that could
/// read these.
struct ReadOutput {
  ChunkPackOp scaled;   ///< Multiplies them; null without a scale.
  ChunkUnpackOp unpack; ///< Null if other ops read the sums.
};
ReadOutput findOutput(ChunkReadOp read);

/// Whether rows are the same for two ops of a block: only other scratch memory
/// is written in between.
bool staysBetween(Value rows, Operation *from, Operation *to);

/// The only reader of decayed rows, which can decay its sums instead; null if
/// there is none.
ChunkReadOp findDecayedRead(ChunkDecayOp decay);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKFUSION_H
