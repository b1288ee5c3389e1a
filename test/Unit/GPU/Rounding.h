//===- Rounding.h - Errors besides an output's own rounding -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_GPU_ROUNDING_H
#define LINATTN_TEST_UNIT_GPU_ROUNDING_H

#include "linattn/Reference/Reference.h"
#include "linattn/Support/Elements.h"
#include <algorithm>
#include <cmath>

namespace linattn::test {

/// By how much elements are further from `ref` than `ref` rounded to `dtype`
/// is, at most, over max|ref|.
inline double findBeyondRounding(DType dtype, const reference::Array &out,
                                 const reference::Array &ref) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < ref.data.size(); ++i) {
    double exact = ref.data[i];
    char bytes[8];
    storeElement(dtype, bytes, 0, exact);
    double rounding = std::abs(loadElement(dtype, bytes, 0) - exact);
    worst = std::max(worst, std::abs(out.data[i] - exact) - rounding);
    largest = std::max(largest, std::abs(exact));
  }
  return largest ? worst / largest : worst;
}

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_GPU_ROUNDING_H
