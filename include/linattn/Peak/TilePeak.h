//===- TilePeak.h - The ceiling of the matrix unit --------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PEAK_TILEPEAK_H
#define LINATTN_PEAK_TILEPEAK_H

namespace linattn {

/// Measures the GFLOP/s of bf16 products with f32 sums that one thread reaches
/// in the tiles of AMX, with operands in registers; 0 on machines without them.
/// The process must have permission (`linattn_request_amx`).
double measureTileGflops();

} // namespace linattn

#endif // LINATTN_PEAK_TILEPEAK_H
