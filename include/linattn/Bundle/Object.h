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
  /// See Machine::vectorBits.
  int64_t vectorBits = 0;
  /// The form of scans: auto, token, state_tile or chunk[:SIZE].
  std::string form = "auto";
  Math math = Math::Strict;
  /// See CompilerOptions::trusted and isolated.
  bool trusted = false;
  bool isolated = false;
};

/// A compiled function for a C program. It depends on the C library only:
/// `linattn_parallel_for`, `linattn_allocate` and `linattn_free` of
/// linattn-c/Runtime.h are weak functions of the object. They run loops on the
/// calling thread and call the C library's allocator.
struct CompiledObject {
  /// The object file, in the format of the options.
  std::string code;
  Signature signature;
  /// A C99 header that declares the function and documents its arguments.
  std::string header;
  std::vector<std::string> remarks;
};
llvm::Expected<CompiledObject> compileObject(llvm::StringRef text,
                                             llvm::StringRef entry,
                                             llvm::StringRef fileName,
                                             const ObjectOptions &options);

} // namespace linattn

#endif // LINATTN_BUNDLE_OBJECT_H
