//===- ChunkOps.h - Ops of chunks that run in vectors -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHUNKOPS_H
#define LINATTN_CONVERSION_CHUNKOPS_H

#include "linattn/Dialect/LinAttnChunk.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Utils/MemRefUtils.h"

namespace mlir::linattn {

inline MemRefType memrefOf(Value x) { return cast<MemRefType>(x.getType()); }

bool isChunkOp(Operation *op);

/// Whether a read or an update has one column, that of a normaliser.
bool isColumn(Operation *op);

/// The type that an op of chunks computes in.
Type typeOf(Operation *op);

/// The memory that a buffer is part of.
inline Value memoryOf(Value buffer) {
  return memref::skipViewLikeOps(cast<MemrefValue>(buffer));
}

/// The rows that a view has the first tokens or columns of; a buffer that is
/// none is itself.
Value rowsOf(Value buffer);
/// The same of all tokens.
Value wholeRowsOf(Value buffer);

/// Whether a buffer is memory of the task's own.
bool isScratch(Value x);

/// Whether all sizes are known, that of dimension 2 excepted with `butTokens`.
bool isStatic(MemRefType memref, bool butTokens);

bool isPerChannel(Value decay);

/// Whether an op takes the scores of later tokens.
bool takesLater(Operation *op);

/// Why an op on buffers has no lowering to vectors; empty if it has one.
StringRef whyNoVectors(Operation *op, int64_t vectorBits, int64_t registers);

/// The summands of a product that runs in tiles; none of one in vectors.
ArrayRef<int64_t> tileSummandsOf(Operation *op);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKOPS_H
