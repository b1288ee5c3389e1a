//===- ViewChecks.h - Check a call's buffers --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_COMPILER_VIEWCHECKS_H
#define LINATTN_LIB_COMPILER_VIEWCHECKS_H

#include "linattn/CodeGen/Signature.h"
#include "linattn/Compiler/BufferView.h"
#include "llvm/Support/Error.h"

namespace linattn::detail {

/// Checks the number, types and static extents of the inputs.
llvm::Error checkInputs(const Signature &signature,
                        llvm::ArrayRef<BufferView> inputs);

/// Checks number, types, writability and that no output shares an element with
/// an input or another output. `shapes` are the results' actual shapes.
llvm::Error checkOutputs(const Signature &signature,
                         llvm::ArrayRef<BufferView> inputs,
                         llvm::ArrayRef<BufferView> outputs,
                         llvm::ArrayRef<llvm::SmallVector<int64_t, 4>> shapes);

/// Whether two views might share a byte. False only if they certainly do not;
/// slices of one array that interleave are recognised as disjoint.
bool mayOverlap(const BufferView &a, const BufferView &b);

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_VIEWCHECKS_H
