//===- Diagnostics.h - MLIR diagnostics as text -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CODEGEN_DIAGNOSTICS_H
#define LINATTN_CODEGEN_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir {
class PassManager;
} // namespace mlir

namespace linattn::detail {

/// "file:line:column", or "<unknown>".
std::string formatLocation(mlir::Location location);

/// Collects the errors of a context while it lives, a line per error and note.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext &context);

  /// The errors so far; `fallback` if a failure was silent.
  llvm::Error takeError(llvm::StringRef fallback);

private:
  std::vector<std::string> messages;
  mlir::ScopedDiagnosticHandler handler;
};

/// Runs the passes of `pm` on `op`. Verifies once, at the end, unless
/// `verifyEach`: verification after every pass takes a third of the passes'
/// time and more, and linattn-opt does it in the tests of the same pipelines.
mlir::LogicalResult runPasses(mlir::PassManager &pm, mlir::Operation *op,
                              bool verifyEach = false);

} // namespace linattn::detail

#endif // LINATTN_CODEGEN_DIAGNOSTICS_H
