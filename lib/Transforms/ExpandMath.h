//===- ExpandMath.h - Parts of linattn-expand-math --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_TRANSFORMS_EXPANDMATH_H
#define LINATTN_LIB_TRANSFORMS_EXPANDMATH_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::linattn {

/// The two vectors of f32 that an op rounds to bf16 and interleaves; null
/// values if it does something else.
std::pair<Value, Value> getRoundedPairs(vector::InterleaveOp op);

/// Instructions of AVX-512, for ops whose flags and shapes allow them. These
/// patterns have a higher benefit than the portable ones.
void populateExpandMathToAVX512Patterns(RewritePatternSet &patterns);
/// AVX-512's conversions to bf16.
void populateExpandMathToAVX512Bf16Patterns(RewritePatternSet &patterns);

} // namespace mlir::linattn

#endif // LINATTN_LIB_TRANSFORMS_EXPANDMATH_H
