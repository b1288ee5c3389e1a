//===- MatrixUnitCases.h - Attention for matrix units -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_INTEGRATION_MATRIXUNITCASES_H
#define LINATTN_TEST_UNIT_INTEGRATION_MATRIXUNITCASES_H

#include "Cases.h"

namespace linattn::test {

inline CompilerOptions optionsFor(MatrixUnit unit, Math math = Math::Strict) {
  CompilerOptions options;
  options.matrixUnit = unit;
  options.math = math;
  return options;
}

template <typename CaseTy>
CaseTy inUnit(std::string name, int64_t size) {
  return CaseTy(std::move(name))
      .type(DType::BF16)
      .sizes(size, size)
      .heads(2, 2, 2)
      .batches(1)
      .tokens(200)
      .open(Extents::Static);
}

inline ScanCase named(std::string name, int64_t size = 64) {
  return inUnit<ScanCase>(std::move(name), size);
}

inline AttentionCase softmaxOf(std::string name, int64_t size) {
  return inUnit<AttentionCase>(std::move(name), size)
      .heads(4, 2, 2)
      .tokens(300)
      .softmax()
      .causal();
}

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_INTEGRATION_MATRIXUNITCASES_H
