//===- Mutations.h - Programs with planted errors ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Mutant schemata: all errors are compiled into one program, each behind a
// comparison with a number in memory, so that one compilation serves them all.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_EXACT_MUTATIONS_H
#define LINATTN_TEST_UNIT_EXACT_MUTATIONS_H

#include "mlir/IR/BuiltinOps.h"
#include <cstdint>
#include <string>
#include <vector>

namespace linattn::test {

struct Mutation {
  /// The change: "drop addend" or "loop one shorter".
  std::string kind;
  /// The op it was done to.
  std::string op;
  /// Which one of the ops of its name that is, in the order of the program.
  int64_t number;
  /// Why the program computes the same all the same; empty where it should not.
  std::string excuse;
};

/// Plants every error that is known into the entry functions of `module`: on
/// loops, vectors and memory, in floats. The error that is active when the
/// functions run is the one whose number `active` holds; none if negative.
std::vector<Mutation> plantMutations(mlir::ModuleOp module,
                                     const volatile int64_t *active);

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_EXACT_MUTATIONS_H
