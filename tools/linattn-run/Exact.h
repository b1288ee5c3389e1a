//===- Exact.h - Comparison without tolerance -------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TOOLS_LINATTN_RUN_EXACT_H
#define LINATTN_TOOLS_LINATTN_RUN_EXACT_H

#include "Run.h"
#include "linattn/Field/PrimeField.h"
#include "llvm/Support/JSON.h"

namespace linattn {

/// One of the two functions to compare, and the pipeline that compiles it.
struct ExactSide {
  Program program;
  std::string entry;
  CompilerOptions options;
};

/// The arguments of both.
struct ExactInputs {
  llvm::ArrayRef<std::string> specifications;
  /// Sizes of the open dimensions, with one run for each.
  llvm::ArrayRef<int64_t> openSizes;
  int threads = 0;
  /// The number of prime fields.
  unsigned fields = PrimeField::kNumFields;
};

/// Runs both in prime fields on the same random elements. Prints for each
/// result whether all elements are equal, or the first index where they are
/// not. Returns true if all are equal.
llvm::Expected<bool> compareExactly(const ExactSide &candidate,
                                    const ExactSide &reference,
                                    const ExactInputs &inputs,
                                    llvm::json::Array &records);

} // namespace linattn

#endif // LINATTN_TOOLS_LINATTN_RUN_EXACT_H
