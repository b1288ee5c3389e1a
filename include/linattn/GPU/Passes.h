//===- Passes.h - Kernels for NVIDIA GPUs -----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_GPU_PASSES_H
#define LINATTN_GPU_PASSES_H

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Support/Arithmetic.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::linattn {

#define GEN_PASS_DECL
#include "linattn/GPU/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "linattn/GPU/Passes.h.inc"

} // namespace mlir::linattn

#endif // LINATTN_GPU_PASSES_H
