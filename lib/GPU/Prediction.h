//===- Prediction.h - How long kernels take ---------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From bytes, operations and the number of blocks. It serves to compare
// schedules of one scan apart, and for other ops to be read.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_GPU_PREDICTION_H
#define LINATTN_LIB_GPU_PREDICTION_H

#include "ScanKernel.h"
#include "linattn/GPU/Machine.h"

namespace mlir::linattn {

/// The work of a kernel's blocks. All blocks do the same, chunk after chunk.
struct KernelWork {
  int64_t blocks = 0, threads = 0, shared = 0;
  int64_t chunks = 0;
  /// Of a block: bytes of global memory and operations per chunk, and the least
  /// time of one, in seconds.
  double bytes = 0, operations = 0, latency = 0;
  double stateBytes = 0; ///< Of a block, beside the chunks.

  /// Of all blocks.
  double allBytes() const { return blocks * (chunks * bytes + stateBytes); }
};

struct Prediction {
  double seconds = 0, bytes = 0;
  int64_t blocks = 0; ///< Of the kernel that has most.
};

/// Sizes that schedules are chosen for where types leave them open; 0: not
/// known.
struct ExpectedSizes {
  int64_t sequences = 0, tokens = 0;

  /// The extent of a [B, H, T, …] buffer or an [N, H, K, V] state; dynamic
  /// where nothing is known.
  int64_t sizeOf(Value buffer, unsigned dim) const {
    int64_t size = staticSize(buffer, dim);
    if (!ShapedType::isDynamic(size))
      return size;
    int64_t expected = dim == 0 ? sequences : tokens;
    return expected ? expected : size;
  }
};

/// How long the kernels of a schedule take; none where the number of tokens or
/// of sequences is not known.
std::optional<Prediction> predict(ScanOp op, ScheduleAttr schedule,
                                  const GPUMachine &machine,
                                  const ExpectedSizes &sizes);
std::optional<Prediction> predict(QuadraticOp op, ScheduleAttr schedule,
                                  const GPUMachine &machine);
std::optional<Prediction> predict(StateOp op, ScheduleAttr schedule,
                                  const GPUMachine &machine);
std::optional<Prediction> predict(ReadOp op, ScheduleAttr schedule,
                                  const GPUMachine &machine);

/// Tokens of a sequence: of packed ones as if all were equally long. None where
/// the number of tokens or of sequences is not known.
std::optional<int64_t> tokensOfSequence(ScanOp op, const ExpectedSizes &sizes);

/// Bytes of queries, keys, values, outputs, decays and states, each once.
double operandBytes(ScanOp op, const ExpectedSizes &sizes);

/// Products of two sums of 16-bit matrices, up to order `terms`.
int64_t countProducts(int64_t a, int64_t b, int64_t terms);

} // namespace mlir::linattn

#endif // LINATTN_LIB_GPU_PREDICTION_H
