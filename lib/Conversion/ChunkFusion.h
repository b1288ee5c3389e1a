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

/// The op that takes a read's sums to their tokens unchanged, with nothing
/// between the two that could read these; null if there is none.
ChunkUnpackOp findUnpack(ChunkReadOp read);

/// The only reader of decayed rows, which can decay its sums instead; null if
/// there is none.
ChunkReadOp findDecayedRead(ChunkDecayOp decay);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKFUSION_H
