//===- ScanNormalForm.h - Scans as their gradient sees them -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GRADIENT_SCANNORMALFORM_H
#define LINATTN_LIB_GRADIENT_SCANNORMALFORM_H

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Gradient/Gradient.h"

namespace mlir::linattn {

/// An error on scans that have no gradient yet.
LogicalResult checkScanGradient(ScanOp op);

/// True if the scan is more than the additive or dplr recurrence of equal heads
/// on tokens of the state's type.
bool needsNormalForm(ScanOp op);

/// The same scan by such a recurrence and the ops around it. Returns a value
/// for each result.
SmallVector<Value> buildNormalForm(ScanOp op, OpBuilder &b);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GRADIENT_SCANNORMALFORM_H
