//===- ChunkGradient.h - The gradient of a scan, chunk by chunk -*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_CHUNKGRADIENT_H
#define LINATTN_LIB_GRADIENT_CHUNKGRADIENT_H

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Gradient/Gradient.h"

namespace mlir::linattn {

/// Why the gradient of a scan is not a loop over chunks, as a remark says it;
/// empty if it is one.
std::string whyNoChunkGradient(ScanOp op, const Cotangents &c);

/// Adds the cotangents of a scan's operands: two loops over chunks in a task
/// for each head of each sequence.
void buildChunkGradient(ScanOp op, OpBuilder &b, Cotangents &c);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_CHUNKGRADIENT_H
