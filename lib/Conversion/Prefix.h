//===- Prefix.h - The prefix of causal attention ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_PREFIX_H
#define LINATTN_CONVERSION_PREFIX_H

#include "LoopBuilder.h"

namespace mlir::linattn {

/// The number of keys that every query of a batch element sees.
inline Value prefixLength(LoopBuilder &loops, QuadraticOp op, Value batch) {
  return arith::IndexCastOp::create(loops.b, loops.loc, loops.b.getIndexType(),
                                    loops.load(op.getPrefix(), {batch}));
}

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_PREFIX_H
