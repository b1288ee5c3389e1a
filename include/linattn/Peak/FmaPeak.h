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

/// Measures how many GFLOP/s of f32 fused multiply-adds (two operations each)
/// `threads` threads of this machine do together, in independent chains on the
/// widest vector registers it has; of those with at most `vectorBits`, where
/// code is made for narrower ones. Takes some tens of milliseconds. Clocks
/// vary: measure next to what is compared with it.
double measureFmaGflops(int threads = 1, int64_t vectorBits = 512);

/// The instructions measured: "avx512", "avx2" or "generic".
const char *getFmaKind(int64_t vectorBits = 512);

} // namespace linattn

#endif // LINATTN_PEAK_FMAPEAK_H
