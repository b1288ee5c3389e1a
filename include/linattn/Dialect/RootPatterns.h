//===- RootPatterns.h - Rewrite only what patterns match --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_ROOTPATTERNS_H
#define LINATTN_DIALECT_ROOTPATTERNS_H

#include "mlir/Rewrite/FrozenRewritePatternSet.h"

namespace mlir::linattn {

/// Applies patterns greedily to the ops below `root` that have the name of a
/// pattern's root, and to new ops; then erases dead operands of replaced ops.
/// `applyPatternsGreedily` visits and folds every op and simplifies every
/// region, which takes most of its time where few ops match. Every pattern must
/// name its root op. Fails if the rewrites do not converge.
LogicalResult applyPatternsToRoots(Operation *root,
                                   const FrozenRewritePatternSet &patterns);

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_ROOTPATTERNS_H
