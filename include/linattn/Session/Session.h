//===- Session.h - One compilation through MLIR -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SESSION_SESSION_H
#define LINATTN_SESSION_SESSION_H

#include "linattn/CodeGen/CompilerOptions.h"
#include "linattn/CodeGen/Signature.h"
#include "linattn/Entry/EntryLayout.h"
#include "linattn/Session/Isolation.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace llvm {
class SourceMgr;
} // namespace llvm

namespace mlir {
class AsmParserState;
class OpPassManager;
class PassInstrumentation;
} // namespace mlir

namespace linattn::detail {

using mlir::linattn::EntryLayout;
using mlir::linattn::InnermostStride;

/// A snapshot of the module.
struct Stage {
  std::string name;
  std::string ir;
};

/// See CompilerOptions::differentiate.
using Operands = std::optional<std::vector<int64_t>>;

/// Checks CompilerOptions::copy and scanMma; other values are an error.
llvm::Error verifyKernelOptions(llvm::StringRef copy, llvm::StringRef scanMma);

/// Owns the context and the module of one compilation. Diagnostics become the
/// text of the returned errors; nothing is printed.
class Session {
public:
  Session();
  ~Session();

  /// Parses and verifies `text`, selects the entry function (the only public
  /// one if `entry` is empty) and drops unused functions. Unless it is
  /// `trusted`, text with foreign code is an error. With `differentiated`, the
  /// vector-Jacobian product replaces the entry; `options`, if given, are those
  /// of its lowering.
  llvm::Expected<Signature> parse(llvm::StringRef text, llvm::StringRef entry,
                                  llvm::StringRef fileName,
                                  bool trusted = false,
                                  const Operands &differentiated = {},
                                  const CompilerOptions *options = nullptr);

  /// Parses and verifies `text`, and lists its public functions.
  llvm::Expected<std::vector<std::string>>
  getPublicFunctions(llvm::StringRef text, llvm::StringRef fileName);

  /// Runs the pipeline of `options`; the module ends in the LLVM dialect.
  llvm::Error lower(const CompilerOptions &options, const EntryLayout &layout,
                    std::vector<Stage> *stages = nullptr);

  /// Runs the passes that `build` adds. `watcher` may be null.
  llvm::Error run(llvm::function_ref<void(mlir::OpPassManager &)> build,
                  std::unique_ptr<mlir::PassInstrumentation> watcher,
                  bool verifyEach = false);

  /// The messages of the checks that the lowered module makes of arguments.
  std::vector<std::string> takeChecks(const Signature &signature);

  /// Records which results may share the buffers of which arguments.
  void takeInPlace(Signature &signature);

  mlir::ModuleOp getModule() { return *module; }
  std::vector<std::string> takeRemarks() { return std::move(remarks); }

private:
  /// Puts the vector-Jacobian product of the entry in its place.
  llvm::Error differentiate(Signature &signature,
                            llvm::ArrayRef<int64_t> operands,
                            const CompilerOptions *options);
  llvm::Error parseModule(llvm::StringRef text, llvm::StringRef fileName,
                          llvm::SourceMgr &sources,
                          mlir::AsmParserState *state = nullptr);

  /// The first member, since the context takes locks already.
  CompilationLock lock;
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<std::string> remarks;
};

} // namespace linattn::detail

#endif // LINATTN_SESSION_SESSION_H
