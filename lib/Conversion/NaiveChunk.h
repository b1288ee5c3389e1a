//===- NaiveChunk.h - Scalar loops of the ops of a chunk --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CONVERSION_NAIVECHUNK_H
#define LINATTN_LIB_CONVERSION_NAIVECHUNK_H

#include "linattn/Dialect/LinAttnChunk.h"

namespace mlir::linattn {

/// Adds the patterns that lower the ops of a chunk on buffers to loops.
void populateNaiveChunkPatterns(RewritePatternSet &patterns);

} // namespace mlir::linattn

#endif // LINATTN_LIB_CONVERSION_NAIVECHUNK_H
