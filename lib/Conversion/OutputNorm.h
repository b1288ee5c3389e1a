//===- OutputNorm.h - Loops of linattn.output_norm --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_OUTPUTNORM_H
#define LINATTN_CONVERSION_OUTPUTNORM_H

#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

/// Emits the op on buffers as scalar loops.
void lowerToNaiveLoops(OpBuilder &b, OutputNormOp op);

/// Emits it as loops over vectors of `lanes` elements of the accumulation type:
/// each row is read from memory once.
void lowerOutputNormToVector(OpBuilder &b, OutputNormOp op, int64_t lanes);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_OUTPUTNORM_H
