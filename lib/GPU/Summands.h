//===- Summands.h - Matrices in the registers of a warp ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products take 16-bit operands. A wider value is split into 16-bit
// summands: three of them make the product as exact as f32 (bf16x3).
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_SUMMANDS_H
#define LINATTN_LIB_GPU_SUMMANDS_H

#include "KernelBuilder.h"

namespace mlir::linattn {

/// Summands that make an f32.
constexpr int64_t allSummands = 3;

/// A 16×16 matrix in a warp: eight f32 in each lane, which are pairs of
/// neighbours in a row. Lane l holds columns 2(l % 4) and one on of row l / 4;
/// of row l / 4 + 8; then both eight columns on.
using Matrix = SmallVector<Value>;
/// The same as a sum of matrices of 16 bits, four pairs in each lane.
using Summands = SmallVector<SmallVector<Value>, allSummands>;

/// The element type of the summands of tokens of `type`: f16 for f16, else
/// bf16.
Type summandTypeOf(Type type);

/// The first `count` summands of two neighbours, each pair the rounded
/// remainder of the pairs before.
SmallVector<Value, allSummands> splitPair(KernelBuilder &k, Type type, Value x,
                                          Value y, int64_t count);
/// The first `count` summands of a matrix.
Summands split(KernelBuilder &k, Type type, ValueRange matrix, int64_t count);
/// The matrix that is the sum, the smallest first.
Matrix join(KernelBuilder &k, Type type, const Summands &summands);
/// c += a bᵀ in the tensor cores, products of summands up to `terms`, the
/// smallest first; only the eight columns of half 0 if `halves` is 1.
void accumulate(KernelBuilder &k, Type type, MutableArrayRef<Value> c,
                const Summands &a, const Summands &b, int64_t terms,
                int64_t halves = 2);
/// a bᵀ likewise.
Matrix product(KernelBuilder &k, Type type, const Summands &a,
               const Summands &b, int64_t terms);
/// c += a bᵀ; the product is summed by itself, and added by instructions that
/// round: tensor cores cut off what does not fit beside the largest term.
void addProduct(KernelBuilder &k, Type type, MutableArrayRef<Value> c,
                const Summands &a, const Summands &b, int64_t terms,
                int64_t halves = 2);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_SUMMANDS_H
