//===- MemoryPeak.h - The machine's memory ceilings -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PEAK_MEMORYPEAK_H
#define LINATTN_PEAK_MEMORYPEAK_H

#include <cstdint>

namespace linattn {

/// The access pattern of a pass.
enum class MemoryPass {
  /// From one half of the footprint to the other, as in streaming.
  Copy,
  /// x ← 0.5 x + 1 in place, as in a decoding step's update of its state.
  Update,
};

/// The statistic over several passes: the best is the machine's limit, the
/// median the usual rate beside other work.
enum class PassTime { Best, Median };

/// Measures the GB/s (bytes read plus bytes written, 10⁹ each) at which
/// `threads` threads together pass over a footprint of `bytes`, each over its
/// own share. Takes some tens of milliseconds where memory is large.
double measureMemoryGbytes(MemoryPass pass, int64_t bytes, int threads = 1,
                           PassTime time = PassTime::Best);

} // namespace linattn

#endif // LINATTN_PEAK_MEMORYPEAK_H
