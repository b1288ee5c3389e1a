//===- FmaPeak.h - The machine's arithmetic ceiling -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PEAK_FMAPEAK_H
#define LINATTN_PEAK_FMAPEAK_H

#include <cstdint>

namespace linattn {

/// Measures the GFLOP/s of f32 fused multiply-adds, two operations each, on
/// `threads` threads in independent chains, with the widest vector registers of
/// at most `vectorBits`. Takes some tens of milliseconds. Clocks vary: measure
/// right beside the code under comparison.
double measureFmaGflops(int threads = 1, int64_t vectorBits = 512);

/// The instructions measured: "avx512", "avx2" or "generic".
const char *getFmaKind(int64_t vectorBits = 512);

} // namespace linattn

#endif // LINATTN_PEAK_FMAPEAK_H
