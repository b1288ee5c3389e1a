//===- Softmax.h - Softmax attention for training, as loops -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CONVERSION_SOFTMAX_H
#define LINATTN_LIB_CONVERSION_SOFTMAX_H

#include "TileBuilder.h"

#include "linattn/Dialect/LinAttnSoftmax.h"

namespace mlir::linattn {

// Each emits the loops of an op on buffers at the builder's insertion point.

void lowerToNaiveLoops(OpBuilder &b, SoftmaxOp op);
void lowerToNaiveLoops(OpBuilder &b, SoftmaxGradientOp op);

/// Blocks of keys against panels of queries.
void lowerToQuadraticTile(OpBuilder &b, SoftmaxOp op, TileShape shape);
void lowerToQuadraticTile(OpBuilder &b, SoftmaxGradientOp op, TileShape shape);

/// Both ops, as scalar loops without `vectorBits`, else in tiles for as many
/// vector registers.
void populateSoftmaxPatterns(RewritePatternSet &patterns,
                             int64_t vectorBits = 0, int64_t registers = 0);

} // namespace mlir::linattn

#endif // LINATTN_LIB_CONVERSION_SOFTMAX_H
