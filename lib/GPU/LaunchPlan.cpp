//===- LaunchPlan.cpp - Reading launch plans ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/GPU/LaunchPlan.h"

using namespace mlir;
using namespace mlir::linattn;

std::array<int64_t, 3> mlir::linattn::evaluateGrid(LaunchPlanAttr plan,
                                                   ArrayRef<int64_t> sizes) {
  assert(sizes.size() == plan.getSizes().size() && "expected every size");
  SmallVector<AffineExpr> constants;
  for (int64_t size : sizes)
    constants.push_back(getAffineConstantExpr(size, plan.getContext()));
  std::array<int64_t, 3> grid;
  for (auto [dim, expr] : llvm::enumerate(plan.getGrid().getResults()))
    grid[dim] = cast<AffineConstantExpr>(
                    simplifyAffineExpr(expr.replaceSymbols(constants), 0, 0))
                    .getValue();
  return grid;
}
