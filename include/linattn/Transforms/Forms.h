//===- Forms.h - Which form a scan can run in -------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TRANSFORMS_FORMS_H
#define LINATTN_TRANSFORMS_FORMS_H

#include "linattn/Analysis/FormCost.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Transforms/Recurrence.h"

namespace mlir::linattn {

/// On a scan and the norm behind it: the scan's kernel applies the norm.
constexpr StringLiteral kEpilogueAttrName = "linattn.epilogue";

/// On a scan from a given state of too few tokens for a chunk of a matrix unit:
/// its form is that of the remainder behind such chunks, so that the bits of a
/// sequence do not depend on what is known of its length.
constexpr StringLiteral kRemainderAttrName = "linattn.remainder";

/// On a scan of a part of the columns of a state: the number of all. Its form
/// is that of all of them, whose bits do not depend on the parts.
constexpr StringLiteral kColumnsAttrName = "linattn.columns";

/// Rows of a tile of a matrix unit.
inline constexpr int64_t kTileRows = 16;

/// Why a scan cannot run in a form, as the end of a sentence; empty if it can.
/// The token form is legal for every scan.
std::string whyNotForm(ScanOp op, Form form);

/// The form that a scan takes on a CPU with vectors: that of its config, or
/// without one the first of state tile, chunk and token that is legal.
Form getVectorForm(ScanOp op);

/// Why an op on tensors cannot be tasks of the ops of a chunk that all have a
/// lowering to vectors, as a sentence; empty if it can. With `pads`, zeros may
/// fill up its head sizes.
StringRef whyNoChunkTasks(ScanOp op, bool pads);
StringRef whyNoChunkTasks(StateOp op, bool pads);
StringRef whyNoChunkTasks(ReadOp op, bool pads);

/// Why a matrix unit of bf16 brings such tasks nothing, as a sentence; empty if
/// it does. `fastProducts` is the option of the passes.
StringRef whyNoMatrixUnit(const Recurrence &r, bool fastProducts);
/// The reason why zeros cannot fill up the last chunk of such a task, as a
/// sentence; empty if they can.
StringRef whyNotFilledUp(const Recurrence &r);
/// Why `where-measured` excludes the recurrence from a matrix unit, as a
/// sentence; empty if it does not.
StringRef whyNotMeasured(const Recurrence &r);
/// Why the products of attention over keys, on tensors or buffers, do not run
/// in the tiles of a matrix unit, as a sentence; empty if they do.
StringRef whyNoMatrixUnit(QuadraticOp op);

/// Refuses a `chunk-size` option below 1.
LogicalResult verifyChunkSize(Operation *op, int64_t size);

/// Whether the op is a part of a task, which shares its columns with no other.
bool isInTask(Operation *op);

/// Whether a tensor is a fill with zero, as the states of new sequences are.
bool isZeroFill(Value tensor);

/// Emits "cannot run in form …: …" for an illegal form.
LogicalResult verifyForm(ScanOp op, Form form);

/// A scan as the cost model sees it.
::linattn::ScanProblem describeScan(ScanOp op);

} // namespace mlir::linattn

#endif // LINATTN_TRANSFORMS_FORMS_H
