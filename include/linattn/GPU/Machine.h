//===- Machine.h - The GPU that schedules are chosen for --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_GPU_MACHINE_H
#define LINATTN_GPU_MACHINE_H

#include "llvm/ADT/StringRef.h"

namespace mlir::linattn {

/// Threads of a warp.
inline constexpr int64_t warpSize = 32;
/// Bytes of shared memory that a block has at most, on any chip.
inline constexpr int64_t mostShared = 227 * 1024;

/// A GPU, by its data sheet.
struct GPUMachine {
  int64_t multiprocessors = 0;
  double bandwidth = 0;     ///< Of its memory, in bytes a second.
  double rate = 0;          ///< Of mma.sync on 16 bits, in operations a second.
  int64_t shared = 0;       ///< Bytes that one block may have.
  double warpgroupRate = 0; ///< Of `wgmma`; 0: the chip's code has none.
};

/// The GPU that code for `chip` is optimised for. A chip that is not in the
/// table counts as the nearest before it, except for its shared memory.
GPUMachine describeGPU(llvm::StringRef chip);

} // namespace mlir::linattn

#endif // LINATTN_GPU_MACHINE_H
