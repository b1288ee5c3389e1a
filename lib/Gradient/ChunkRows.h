//===- ChunkRows.h - The rows of a gradient's chunk -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_CHUNKROWS_H
#define LINATTN_LIB_GRADIENT_CHUNKROWS_H

#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

/// Rows of a chunk, [1, 1, C, D] or numbers [1, 1, C]; null where the
/// recurrence has none.
struct ChunkRows {
  Value count; ///< Its tokens.
  Value q, a, b, v, dO, gates, beta, written;
  Value query, first, second; ///< dq, da and db, later.
  Value solved;               ///< dV.

  bool decaysChannels() const {
    return gates && cast<ShapedType>(gates.getType()).getRank() == 4;
  }
};

/// Adds the terms of each token by itself, and goes from a and b to k and β:
/// dq, dk, dv, then dβ and dg if there are some, into the tokens of `outputs`;
/// and the sum of dg behind them. From the last row to the first.
SmallVector<Value> emitRowGradients(OpBuilder &b, Location loc,
                                    const ChunkRows &rows, const Scale &scale,
                                    int64_t lanes, ValueRange outputs,
                                    Value sum);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_CHUNKROWS_H
