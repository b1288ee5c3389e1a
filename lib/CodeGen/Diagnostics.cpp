//===- Diagnostics.cpp - MLIR diagnostics as text -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/CodeGen/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace linattn::detail;

std::string linattn::detail::formatLocation(mlir::Location location) {
  // For fused, named and call-site locations, the first place in a file.
  mlir::FileLineColRange found;
  location->walk([&](mlir::Location nested) {
    if (auto file = llvm::dyn_cast<mlir::FileLineColRange>(nested)) {
      found = file;
      return mlir::WalkResult::interrupt();
    }
    return mlir::WalkResult::advance();
  });
  if (!found)
    return "<unknown>";
  return (found.getFilename().getValue() + ":" +
          llvm::Twine(found.getStartLine()) + ":" +
          llvm::Twine(found.getStartColumn()))
      .str();
}

static std::string formatLine(mlir::Location location, llvm::StringRef severity,
                              const std::string &message) {
  return formatLocation(location) + ": " + severity.str() + ": " + message;
}

/// Notes that serve developers of MLIR alone: the printed operation and the
/// list of registered dialects.
static bool isNoise(const std::string &note) {
  return llvm::StringRef(note).starts_with("see current operation") ||
         llvm::StringRef(note).starts_with("Available dialects");
}

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext &context)
    : handler(&context, [this](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
          return mlir::success();
        std::string message =
            formatLine(diagnostic.getLocation(), "error", diagnostic.str());
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          if (!isNoise(note.str()))
            message +=
                "\n" + formatLine(note.getLocation(), "note", note.str());
        // The parser reports some errors twice.
        if (messages.empty() || messages.back() != message)
          messages.push_back(std::move(message));
        return mlir::success();
      }) {}

llvm::Error DiagnosticCollector::takeError(llvm::StringRef fallback) {
  std::string text =
      messages.empty() ? fallback.str() : llvm::join(messages, "\n");
  messages.clear();
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

mlir::LogicalResult linattn::detail::runPasses(mlir::PassManager &pm,
                                               mlir::Operation *op,
                                               bool verifyEach) {
  pm.enableVerifier(verifyEach);
  return mlir::success(mlir::succeeded(pm.run(op)) &&
                       mlir::succeeded(mlir::verify(op)));
}
