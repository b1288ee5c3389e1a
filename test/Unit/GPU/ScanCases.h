//===- ScanCases.h - Scans that kernels are tested with ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_GPU_SCANCASES_H
#define LINATTN_TEST_UNIT_GPU_SCANCASES_H

#include "ScanCase.h"
#include <vector>

namespace linattn::test {

/// Scans that run in chunks.
std::vector<ScanCase> chunkCases();
/// Those and some more, of warpgroups.
std::vector<ScanCase> warpgroupCases();
/// Scans that run by columns of the state.
std::vector<ScanCase> columnCases();
/// Those of the last two whose scores can have warps of their own.
std::vector<ScanCase> aheadCases();
/// Scans with gates of the delta rule, or with given vectors.
std::vector<ScanCase> transitionCases();
/// Those of 16 bits by columns under `math=fast`, as the pass chooses and with
/// warps for scores.
std::vector<ScanCase> fastCases();
/// Scans that run token by token.
std::vector<ScanCase> tokenCases();

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_GPU_SCANCASES_H
