//===- Elements.h - Reading and writing elements by type --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements whose type is only known at run time, as doubles: what tools that
// fill, compare and print buffers need. Not for kernels.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_ELEMENTS_H
#define LINATTN_SUPPORT_ELEMENTS_H

#include "linattn/Support/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include <vector>

namespace linattn {

/// The element at `data[index]`. 64-bit integers beyond 2^53 are rounded.
double loadElement(DType dtype, const void *data, int64_t index);

/// Stores `value`, rounded to nearest even. Integers are truncated; i1 is true
/// for values other than zero.
void storeElement(DType dtype, void *data, int64_t index, double value);

/// The bits of f16 and bf16 numbers.
float fromHalfBits(uint16_t bits);
float fromBFloat16Bits(uint16_t bits);
uint16_t toHalfBits(double value);
uint16_t toBFloat16Bits(double value);

/// How far `actual` is from `expected`: max|actual - expected| / max|expected|.
struct Difference {
  double maxAbsolute = 0;
  double maxRelative = 0;
  /// The index of the largest difference, in row-major order.
  int64_t index = 0;
  /// Both have the same infinities and NaNs, if any.
  bool sameSpecials = true;
};
Difference compareElements(DType dtype, const void *actual,
                           const void *expected, int64_t count);

/// The bound on the CPU path's error against the reference, by result type.
double getTolerance(DType dtype);

/// Standard normal numbers, the same on every platform: std::mt19937_64 and the
/// Box-Muller transform; `stream` selects one of many sequences for a seed. For
/// i1 fair coins, for integers uniform in [-8, 8).
void fillRandom(DType dtype, void *data, int64_t count, uint64_t seed,
                uint64_t stream);

} // namespace linattn

#endif // LINATTN_SUPPORT_ELEMENTS_H
