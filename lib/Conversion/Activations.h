//===- Activations.h - Gates of outputs, pairs of bf16 ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_CONVERSION_ACTIVATIONS_H
#define LINATTN_LIB_CONVERSION_ACTIVATIONS_H

#include "LoopBuilder.h"

#include "linattn/Dialect/LinAttn.h"

namespace mlir::linattn {

/// silu or sigmoid of a scalar or a vector. A vector of f32 that becomes a
/// factor of a result in `element` is as accurate as that type: bf16 has 8
/// bits, f16 11. A sigmoid is approximate only if `isNarrow`: x comes from 16
/// bits. For other NaNs the approximate exponential may be a number.
Value emitActivation(LoopBuilder &loops, Activation activation, Value x,
                     Type element, bool isNarrow = false);

/// In how many vectors of the accumulation type the elements of a whole
/// register are computed: bf16 by the halves of words, as `splitPairs` does.
int64_t countParts(Type element, int64_t lanes);

/// The elements of pairs of neighbours as two vectors of `type`, the first ones
/// and the second ones.
SmallVector<Value, 2> splitPairs(LoopBuilder &loops, Value vector, Type type);
/// The opposite, in type `element`.
Value joinPairs(LoopBuilder &loops, ArrayRef<Value> halves, Type element);

} // namespace mlir::linattn

#endif // LINATTN_LIB_CONVERSION_ACTIVATIONS_H
