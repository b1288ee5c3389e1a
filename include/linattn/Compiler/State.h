//===- State.h - The state of a recurrence between calls --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_COMPILER_STATE_H
#define LINATTN_COMPILER_STATE_H

#include "linattn/Compiler/BufferView.h"
#include "linattn/Support/LargeMemory.h"
#include "llvm/Support/Error.h"

#include <vector>

namespace linattn {

/// Owns the state of a scan: S [N, H, K, V] and, where the rule carries them,
/// the normalizer z [N, H, K] and the running maximum m [N, H], in f32 or f64.
/// A kernel reads the views of one state and writes those of another, or of the
/// same, which is then updated in place without a copy. A state with more
/// sequences than a call has is a pool: the scan's `state_indices` select its
/// rows.
class State {
public:
  struct Options {
    bool normalize = false;  ///< Carry z.
    bool runningMax = false; ///< Carry m; the exp map under a normalizer does.
    DType dtype = DType::F32;
  };

  /// S and z zero, m the lowest finite value. Sizes must not be negative; dtype
  /// must be F32 or F64. An `OutOfMemoryError` if memory runs out.
  static llvm::Expected<State> zeros(int64_t batch, int64_t heads,
                                     int64_t keySize, int64_t valueSize,
                                     Options options);
  static llvm::Expected<State> zeros(int64_t batch, int64_t heads,
                                     int64_t keySize, int64_t valueSize) {
    return zeros(batch, heads, keySize, valueSize, Options());
  }

  bool hasNormalizer() const { return options.normalize; }
  bool hasRunningMax() const { return options.runningMax; }

  BufferView S() { return view(s, {batch, heads, keySize, valueSize}); }
  BufferView z() { return view(normalizer, {batch, heads, keySize}); }
  BufferView m() { return view(maximum, {batch, heads}); }

  /// S, and z and m where they are carried, in the order of a scan's results.
  llvm::SmallVector<BufferView, 3> views();

private:
  State(int64_t batch, int64_t heads, int64_t keySize, int64_t valueSize,
        Options options);
  /// False if memory runs out.
  bool allocate();
  BufferView view(LargeBytes &memory, llvm::ArrayRef<int64_t> shape) {
    return BufferView(memory.data(), options.dtype, shape);
  }

  int64_t batch, heads, keySize, valueSize;
  Options options;
  LargeBytes s, normalizer, maximum;
};

} // namespace linattn

#endif // LINATTN_COMPILER_STATE_H
