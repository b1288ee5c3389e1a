//===- CpuImage.h - Shared libraries for CPUs -------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_BUNDLE_CPUIMAGE_H
#define LINATTN_LIB_BUNDLE_CPUIMAGE_H

#include "linattn/Bundle/Bundle.h"
#include "linattn/CodeGen/CodeGen.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace linattn::detail {

/// The shared library for a module of the LLVM dialect and that CPU. It exports
/// the entry and the pointers `linattn_host_parallel_for`,
/// `linattn_host_allocate` and `linattn_host_free`, which its loader sets to
/// functions like those of linattn-c/Runtime.h. The entry is called by
/// `linattn_call` alone.
llvm::Expected<std::string> compileCpuImage(mlir::ModuleOp module,
                                            const Signature &signature,
                                            const Machine &machine,
                                            const BundleOptions &options);

} // namespace linattn::detail

#endif // LINATTN_LIB_BUNDLE_CPUIMAGE_H
