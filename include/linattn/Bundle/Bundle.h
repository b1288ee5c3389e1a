//===- Bundle.h - Kernels ahead of time -------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_BUNDLE_BUNDLE_H
#define LINATTN_BUNDLE_BUNDLE_H

#include "linattn/CodeGen/CompilerOptions.h"
#include "linattn/CodeGen/Signature.h"

namespace linattn {

struct BundleOptions {
  enum class Target { CPU, NVVM };
  Target target = Target::NVVM;
  /// The targets of the code: "sm_90a"; a level of x86-64 such as "x86-64-v3";
  /// "aarch64", with NEON. The runner takes the best one that its machine
  /// supports.
  std::vector<std::string> chips;
  ScheduleHints hints;
  /// See CompilerOptions::copy and scanMma.
  std::string copy = "cp_async", scanMma = "mma_sync";
  /// The program that turns PTX into machine code. If empty, the bundle holds
  /// PTX alone.
  std::string ptxas;
  /// If false, the bundle holds PTX alone where that program fails, for
  /// instance because it is too old for the chip. A remark says so.
  bool needsPtxas = true;
  /// The linker that makes shared libraries for CPUs, compatible with ld.
  std::string linker;
  /// The form of scans on a CPU: auto, token, state_tile or chunk[:SIZE].
  std::string form = "auto";
  Math math = Math::Strict;
  /// See CompilerOptions::differentiate.
  std::optional<std::vector<int64_t>> differentiate;
  /// See CompilerOptions::trusted and isolated.
  bool trusted = false;
  bool isolated = false;
};

/// A compiled function in the format of the runner (docs/Runtime.md), for
/// machines without a compiler. A kernel that would need a compiler at launch
/// is an error.
struct CompiledBundle {
  std::string file;
  Signature signature;
  /// The compiler's decisions and their reasons, a line per remark.
  std::vector<std::string> remarks;
};
llvm::Expected<CompiledBundle> compileBundle(llvm::StringRef text,
                                             llvm::StringRef entry,
                                             llvm::StringRef fileName,
                                             const BundleOptions &options);

} // namespace linattn

#endif // LINATTN_BUNDLE_BUNDLE_H
