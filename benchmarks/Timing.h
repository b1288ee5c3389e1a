//===- Timing.h - Seconds and their median ----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_BENCHMARKS_TIMING_H
#define LINATTN_BENCHMARKS_TIMING_H

#include <algorithm>
#include <chrono>
#include <vector>

namespace linattn {

inline double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

} // namespace linattn

#endif // LINATTN_BENCHMARKS_TIMING_H
