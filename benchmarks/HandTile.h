//===- HandTile.h - The state tile, written by hand -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The yardstick of linattn-tile-bench for generated code: the same schedule
// in intrinsics, for sizes known to the C++ compiler and nothing else.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_BENCHMARKS_HANDTILE_H
#define LINATTN_BENCHMARKS_HANDTILE_H

#include <cstdint>

namespace linattn::bench {

enum class Rule { Linear, Scalar, Gate };

/// All heads of one causal attention; `decay` holds logarithms, [H, T] for
/// Scalar and [H, T, D] for Gate. Strides in floats; [H, T, D] means
/// headStride = T·D and tokenStride = D.
struct HandTask {
  const float *query, *key, *value, *decay;
  float *output;
  int64_t heads, tokens, size;
  int64_t headStride, tokenStride;
};

// The state starts at zero. Neither may be called where the CPU lacks the
// instructions.
void runHandTileAVX512(Rule rule, const HandTask &task); ///< 8×32 floats.
void runHandTileAVX2(Rule rule, const HandTask &task);   ///< 4×16 floats.

/// `rounds` rounds of independent multiply-adds; returns their operations.
double runPeakAVX512(int64_t rounds);
double runPeakAVX2(int64_t rounds);

} // namespace linattn::bench

#endif // LINATTN_BENCHMARKS_HANDTILE_H
