//===- Arithmetic.h - How exactly floats are computed -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_ARITHMETIC_H
#define LINATTN_SUPPORT_ARITHMETIC_H

namespace linattn {

/// How exactly floats are computed. Strict: every operation as the passes wrote
/// it, in their order. Fast: on a CPU, operations may be fused and
/// reassociated, and quotients become products with reciprocals; NaN and
/// infinities keep their meaning. On a GPU, products of f32 matrices take 16
/// bits of every number, with sums in f32. In either mode, results do not
/// depend on threads or batch.
enum class Math { Strict, Fast };

} // namespace linattn

#endif // LINATTN_SUPPORT_ARITHMETIC_H
