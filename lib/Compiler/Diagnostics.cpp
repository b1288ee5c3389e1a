//===- Diagnostics.cpp - MLIR diagnostics as text ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"
#include "mlir/IR/Location.h"

using namespace linattn::detail;

std::string linattn::detail::formatLocation(mlir::Location location) {
  // Fused, named and call-site locations: the first place in a file will do.
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

static void append(std::string &text, mlir::Location location,
                   llvm::StringRef severity, const std::string &message) {
  if (!text.empty())
    text += "\n";
  text += formatLocation(location) + ": " + severity.str() + ": " + message;
}

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext &context)
    : handler(&context, [this](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
          return mlir::success();
        append(text, diagnostic.getLocation(), "error", diagnostic.str());
        for (mlir::Diagnostic &note : diagnostic.getNotes())
          // The operation as it happened to be printed helps nobody.
          if (!llvm::StringRef(note.str()).starts_with("see current operation"))
            append(text, note.getLocation(), "note", note.str());
        return mlir::success();
      }) {}

llvm::Error DiagnosticCollector::takeError(llvm::StringRef fallback) {
  std::string message = text.empty() ? fallback.str() : std::move(text);
  text.clear();
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}
