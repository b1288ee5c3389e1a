//===- ScanStates.h - The states a scan need not touch ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_SCANSTATES_H
#define LINATTN_CONVERSION_SCANSTATES_H

#include "linattn/Dialect/LinAttn.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::linattn {

/// How the memory of a scan's state is used around it.
struct StateUse {
  /// The fill with zero that comes before the scan and is of no use to anything
  /// else; null if there is none.
  Operation *zeroFill = nullptr;
  /// Nothing reads the state after the scan.
  bool endsUnused = false;
};

/// Looks at the users of the state of a scan on buffers.
StateUse findStateUse(ScanOp op);
StateUse findStateUse(StateOp op);

/// A copy to the state of a scan or of tasks that is of no use to anything
/// else.
struct InitialCopy {
  /// The copy, or the branch around it that leaves it out where both are the
  /// same memory; null if there is none.
  Operation *op = nullptr;
  Value source;
  /// The condition of that branch: both are different memory.
  Value differs;
};

/// Looks for the copy of an initial state of every sequence. The scan may read
/// its source in place of the state before the first token, and the copy may
/// be made as late as right before the scan.
InitialCopy findInitialCopy(ScanOp op);
/// Looks for the copy to memory that tasks update. They may make it themselves.
InitialCopy findInitialCopy(scf::ForallOp tasks, Value memory);

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_SCANSTATES_H
