//===- SegmentedScan.h - One scan as segments and their merge ---*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_SEGMENTEDSCAN_H
#define LINATTN_TRANSFORMS_SEGMENTEDSCAN_H

#include "linattn/Dialect/LinAttn.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::linattn {

/// The shortest segment of the default length.
constexpr int64_t shortestSegment = 512;

/// Emits, before a scan of batch size 1 whose config has form segments, the
/// scans of its segments and what merges them. Returns the values of its
/// results.
SmallVector<Value> emitSegmentedScan(RewriterBase &b, ScanOp op);

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_SEGMENTEDSCAN_H
