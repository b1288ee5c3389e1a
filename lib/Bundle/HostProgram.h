//===- HostProgram.h - Host code as data ------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_BUNDLE_HOSTPROGRAM_H
#define LINATTN_LIB_BUNDLE_HOSTPROGRAM_H

#include "BundleWriter.h"
#include "linattn/CodeGen/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace linattn::detail {

/// The program of an entry's companion: "values", the shapes of "results", and
/// the "check" with its "sizes" and "messages" (docs/Runtime.md). Without a
/// companion, the shapes are those of the signature.
struct ShapeProgram {
  llvm::json::Object rules;
  /// The name of every dynamic size, by operand and dimension. Sizes that must
  /// be equal share a name.
  std::vector<std::vector<std::string>> names;
};
llvm::Expected<ShapeProgram> translateShapes(mlir::ModuleOp module,
                                             const Signature &signature);

/// The launches of an entry on buffers in device memory: "values", "buffers"
/// and "launches". `modules` are the names of the kernels' modules, in order;
/// constants become blobs. Other host code is an error.
llvm::Expected<llvm::json::Object>
translateLaunches(mlir::func::FuncOp func, const Signature &signature,
                  llvm::ArrayRef<std::string> modules, BundleWriter &writer);

} // namespace linattn::detail

#endif // LINATTN_LIB_BUNDLE_HOSTPROGRAM_H
