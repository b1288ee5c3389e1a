//===- ScanOperands.h - Checks of a scan's operands -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_REFERENCE_SCANOPERANDS_H
#define LINATTN_LIB_REFERENCE_SCANOPERANDS_H

#include "Detail.h"

namespace linattn::reference::detail {

/// Checks shapes and combinations; returns the grouping of the heads.
Result<Heads> checkScan(const ScanOperands &operands,
                        const ScanOptions &options,
                        const std::optional<State> &initial);

/// The number of states: that of packed sequences, or the batch size.
int64_t countStates(const ScanOperands &operands);

/// Whether the state has an m.
bool carriesMaximum(const ScanOperands &operands, const ScanOptions &options);

} // namespace linattn::reference::detail

#endif // LINATTN_LIB_REFERENCE_SCANOPERANDS_H
