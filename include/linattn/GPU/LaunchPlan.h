//===- LaunchPlan.h - Reading launch plans ----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_GPU_LAUNCHPLAN_H
#define LINATTN_GPU_LAUNCHPLAN_H

#include "linattn/Dialect/LinAttn.h"
#include <array>

namespace mlir::linattn {

/// The grid for these sizes, one for each of the plan's `sizes`.
std::array<int64_t, 3> evaluateGrid(LaunchPlanAttr plan,
                                    ArrayRef<int64_t> sizes);

} // namespace mlir::linattn

#endif // LINATTN_GPU_LAUNCHPLAN_H
