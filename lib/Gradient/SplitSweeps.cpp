//===- SplitSweeps.cpp - Sweeps become scans ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Gradient/Passes.h"
#include "linattn/Transforms/Sweeps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {
#define GEN_PASS_DEF_LINATTNSPLITSWEEPSPASS
#include "linattn/Gradient/Passes.h.inc"
} // namespace mlir::linattn

using namespace mlir;
using namespace mlir::linattn;

namespace {

struct LinAttnSplitSweepsPass final
    : mlir::linattn::impl::LinAttnSplitSweepsPassBase<LinAttnSplitSweepsPass> {
  using LinAttnSplitSweepsPassBase::LinAttnSplitSweepsPassBase;

  void runOnOperation() override { numSplit += splitSweeps(getOperation()); }
};

} // namespace
