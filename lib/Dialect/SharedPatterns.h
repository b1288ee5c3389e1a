//===- SharedPatterns.h - Canonicalization patterns of a context *- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_DIALECT_SHAREDPATTERNS_H
#define LINATTN_LIB_DIALECT_SHAREDPATTERNS_H

#include "mlir/IR/DialectInterface.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include <mutex>

namespace mlir::linattn {

/// Keeps the canonicalization patterns of a context in the linattn dialect.
class SharedPatterns : public DialectInterface::Base<SharedPatterns> {
public:
  explicit SharedPatterns(Dialect *dialect) : Base(dialect) {}

  FrozenRewritePatternSet get() const;

private:
  mutable std::mutex mutex;
  mutable FrozenRewritePatternSet patterns;
  /// How many dialects were loaded when the patterns were collected.
  mutable size_t numDialects = 0;
};

} // namespace mlir::linattn

#endif // LINATTN_LIB_DIALECT_SHAREDPATTERNS_H
