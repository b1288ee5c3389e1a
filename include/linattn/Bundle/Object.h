//===- Object.h - Objects for C programs ------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_BUNDLE_OBJECT_H
#define LINATTN_BUNDLE_OBJECT_H

#include "linattn/CodeGen/CompilerOptions.h"
#include "linattn/CodeGen/Signature.h"

namespace linattn {

struct ObjectOptions {
  enum class Format { Object, Assembly, LLVMIR, MLIR };
  Format format = Format::Object;
  /// The target of the code, by LLVM's names. An empty triple is that of this
  /// process; the code generator of another one must have been initialized.
  std::string triple, cpu, features;
  /// Of the scans: auto, token, state_tile or chunk[:SIZE].
  std::string form = "auto";
  Math math = Math::Strict;
  /// CompilerOptions::trusted and isolated.
  bool trusted = false;
  bool isolated = false;
};

/// A compiled function that a C program links. It needs nothing but the C
/// library: `linattn_parallel_for`, `linattn_allocate` and `linattn_free` of
/// linattn-c/Runtime.h are in it as weak functions, which run loops on their
/// caller's thread and take memory from the C library.
struct CompiledObject {
  /// In the format of the options.
  std::string code;
  Signature signature;
  /// C99 that declares the function, with a documentation of its arguments.
  std::string header;
  std::vector<std::string> remarks;
};
llvm::Expected<CompiledObject> compileObject(llvm::StringRef text,
                                             llvm::StringRef entry,
                                             llvm::StringRef fileName,
                                             const ObjectOptions &options);

} // namespace linattn

#endif // LINATTN_BUNDLE_OBJECT_H
