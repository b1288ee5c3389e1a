//===- UnitPeak.h - The ceilings of matrix units ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PEAK_UNITPEAK_H
#define LINATTN_PEAK_UNITPEAK_H

namespace linattn {

/// Measures the GFLOP/s of bf16 products with f32 sums that one thread reaches
/// in the tiles of AMX, with operands in registers; 0 on machines without them.
/// The process must have permission (`linattn_request_amx`).
double measureTileGflops();

/// The same in the dot products of AVX-512 BF16.
double measureDotGflops();

} // namespace linattn

#endif // LINATTN_PEAK_UNITPEAK_H
