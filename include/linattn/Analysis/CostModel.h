//===- CostModel.h - Cost functions of the forms ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_COSTMODEL_H
#define LINATTN_ANALYSIS_COSTMODEL_H

#include <cstdint>

namespace linattn {

/// Tokens up to which a schedule goes token by token: one pass over the state,
/// or over the keys, in memory.
constexpr int64_t fewTokens = 4;

/// Tokens per chunk. With more tokens, scores and the triangular system of a
/// rank-1 update grow, and fewer passes over the state are left.
constexpr int64_t chunkTokens = 16;
/// More tokens than that give scores that leave the caches.
constexpr int64_t largestChunk = 1024;
/// The longest sequence that may be one chunk, for any lengths of its
/// neighbours. It ends within the tokens that all heads take at once.
constexpr int64_t largestWhole = 256;
/// The longest sequence that may run token by token where longer ones do not.
constexpr int64_t largestFew = 64;

/// The fewest tokens of a sequence from zeros that run in chunks of a matrix
/// unit: vectors read no state there, and write none that is not returned.
constexpr int64_t fewestUnitTokens(bool returnsState) {
  return returnsState ? 64 : 128;
}

/// A comparison of the two forms that is cheap enough for run time: reassociate
/// when
///   quadratic · up(Nq) · (Nk + keyOffset)  >  linear · (Nq + Nk) + fixed
/// where up(Nq) rounds up to whole panels of queries.
struct FormComparison {
  int64_t quadratic, keyOffset, linear, fixed;
  int64_t panel = 1; ///< Queries the quadratic kernel handles at once.

  bool prefersReassociated(int64_t queries, int64_t keys) const;
};

/// The comparison of the CPU kernels of this compiler. (QKᵀ)V is
/// `Nq·Nk·(K + V)` multiply-adds, Q(KᵀV) is `(Nq + Nk)·K·V` and a pass over the
/// state. The weights were fitted to times of both kernels.
FormComparison compareKernels(int64_t keySize, int64_t valueSize,
                              int64_t panel);

/// The machine as schedules see it: its vector registers, the first data cache
/// of a core in bytes (0: the usual one beside such registers), and the number
/// of cores, on which no schedule depends.
struct VectorTarget {
  int64_t vectorBits, registers;
  int64_t l1 = 0, cores = 1;
  /// AVX-512 with doublewords and quadwords, and its conversions to bf16.
  bool avx512 = false, avx512Bf16 = false;
  /// Dot products of bf16 take as long as FMAs, of which they do two: measured
  /// on Zen 4. Sapphire Rapids runs them at half the rate.
  bool fastDotProducts = false;
  /// Tiles of AMX with products of bf16. The operating system may still refuse
  /// them.
  bool amx = false;

  int64_t firstCache() const {
    return l1 > 0 ? l1 : (vectorBits >= 512 ? 48 : 32) * 1024;
  }
};
/// The state tile that fits a target's registers.
struct StateTileShape {
  int64_t rows, cols, block;
};
StateTileShape chooseStateTile(VectorTarget target, int64_t elementBits,
                               int64_t keySize, int64_t valueSize);

} // namespace linattn

#endif // LINATTN_ANALYSIS_COSTMODEL_H
