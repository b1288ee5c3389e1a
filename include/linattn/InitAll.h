//===- InitAll.h - Register everything --------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_INITALL_H
#define LINATTN_INITALL_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::linattn {

/// Registers the dialect, the upstream dialects the pipelines pass through, and
/// every external model and extension they need.
void registerAllDialects(DialectRegistry &registry);

/// Registers the project's passes and pipelines with the global registry.
void registerAllPasses();

} // namespace mlir::linattn

#endif // LINATTN_INITALL_H
