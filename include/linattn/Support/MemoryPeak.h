//===- MemoryPeak.h - The machine's memory ceilings -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_MEMORYPEAK_H
#define LINATTN_SUPPORT_MEMORYPEAK_H

#include <cstdint>

namespace linattn {

/// How memory is passed over.
enum class MemoryPass {
  /// From one half of the footprint to the other: what streaming reaches.
  Copy,
  /// x ← 0.5 x + 1 in place: what a decoding step does to its state.
  Update,
};

/// Measures the GB/s (bytes read plus bytes written, 10⁹ each) at which
/// `threads` threads together pass over a footprint of `bytes`, each over its
/// own share. The best of several passes; takes some tens of milliseconds.
double measureMemoryGbytes(MemoryPass pass, int64_t bytes, int threads = 1);

} // namespace linattn

#endif // LINATTN_SUPPORT_MEMORYPEAK_H
