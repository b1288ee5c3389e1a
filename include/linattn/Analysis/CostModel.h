//===- CostModel.h - What a form costs --------------------------*- C++ -*-===//
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

/// The sizes that decide between the forms of one attention head.
struct AttentionSize {
  int64_t queries, keys;       ///< Sequence lengths.
  int64_t keySize, valueSize;  ///< Head sizes K and V.
};

/// A run-time comparison of the two forms: reassociate when
///   queries·keys·quadratic > (queries + keys)·linear + fixed.
/// All coefficients are nonnegative and small enough for 64-bit products.
struct FormComparison {
  int64_t quadratic, linear, fixed;

  bool prefersReassociated(int64_t queries, int64_t keys) const {
    return double(queries) * double(keys) * double(quadratic) >
           (double(queries) + double(keys)) * double(linear) + double(fixed);
  }
};

/// How the CPU kernels of this compiler compare. (QKᵀ)V is `Nq·Nk·(K + V)`
/// multiply-adds, Q(KᵀV) is `(Nq + Nk)·K·V` and a pass over the state; the
/// weights in between are calibrated (docs/benchmarks).
FormComparison compareKernels(int64_t keySize, int64_t valueSize);

/// The same by multiply-adds alone, for products that other tools will lower.
FormComparison compareProducts(int64_t keySize, int64_t valueSize);

/// Registers of a target and the state tile that fits them.
struct VectorTarget {
  int64_t vectorBits, registers;
};
struct StateTileShape {
  int64_t rows, cols, block;
};
StateTileShape chooseStateTile(VectorTarget target, int64_t elementBits,
                               int64_t keySize, int64_t valueSize);

} // namespace linattn

#endif // LINATTN_ANALYSIS_COSTMODEL_H
