//===- CompilerOptions.h - Options of a compilation -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CODEGEN_COMPILEROPTIONS_H
#define LINATTN_CODEGEN_COMPILEROPTIONS_H

#include "linattn/Support/Arithmetic.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace linattn {

/// The pipeline that makes the code. CPU: vectorized loops. Reference: naive
/// loops, for comparison. Linalg: the route through linalg, in linear time,
/// without vectors. Trace: loops that print every value on the standard output,
/// scans token by token. NVVMEmulated: the kernels of a GPU, executed and
/// checked by the emulator; a call with findings is an error. NVVM: kernels for
/// an NVIDIA GPU, on views of its memory.
enum class Target { CPU, Reference, Trace, NVVMEmulated, NVVM, Linalg };

/// Sizes and rates by which schedules are chosen, where types and the chip's
/// name leave them open. 0: unknown.
struct ScheduleHints {
  /// Sequences (or states) and tokens of a call whose module leaves them open.
  /// The kernel works for any other number, too. On a CPU they decide whether
  /// a recurrence from zeros has a matrix unit, and which columns its tasks
  /// have.
  int64_t sequences = 0, tokens = 0;
  /// Multiprocessors of the device, and bandwidth of its memory in GB/s.
  int64_t multiprocessors = 0, bandwidth = 0;
};

/// How much LLVM optimizes a kernel of a CPU. Full: for speed. Quick: as little
/// as it can, which compiles in half the time; the passes of MLIR and the
/// numbers are the same.
enum class Optimization { Full, Quick };

/// The unit that multiplies matrices of 16-bit tokens on a CPU: its vectors,
/// the tiles of AMX, the dot products of AVX-512 BF16, or vectors that compute
/// the bits of AMX. Auto is AMX where the machine has it and the operating
/// system gives it, for what has been measured to gain by it, and on Zen 4 Dot
/// if `math` is fast.
enum class MatrixUnit { None, AMX, Dot, EmulatedAMX, Auto };

struct CompilerOptions {
  Target target = Target::CPU;
  /// For a CPU. By default the unit that LINATTN_MATRIX_UNIT in the environment
  /// names (auto, none, amx, dot or emulated), or auto. A unit counts as none
  /// where the machine lacks it or the operating system refuses it, and Dot
  /// unless `math` is fast. Code made ahead of time has none unless named.
  std::optional<MatrixUnit> matrixUnit;
  /// By default the arithmetic that LINATTN_MATH in the environment names, or
  /// strict.
  std::optional<Math> math;
  /// By default the optimization that LINATTN_OPTIMIZATION in the environment
  /// names (full or quick), or full. Code with tiles of AMX is always full.
  std::optional<Optimization> optimization;
  /// For NVVM: the chip to compile for, "sm_90". If empty, the chip that
  /// LINATTN_CHIP in the environment names, or the current device.
  std::string chip;
  /// Where `chip` is empty, a GPU's driver provides the numbers of the device
  /// that are 0.
  ScheduleHints hints;
  /// For kernels of a GPU: how tiles are copied to shared memory for `wgmma`,
  /// "cp_async" or "tma" (docs/GPU.md).
  std::string copy = "cp_async";
  /// The matrix instruction of chunk kernels of scans, "mma_sync" or, for the
  /// chip sm_90a, "wgmma" (docs/GPU.md). By default that of LINATTN_SCAN_MMA in
  /// the environment, or mma_sync.
  std::optional<std::string> scanMma;
  /// How attention is rewritten, in the values of the pass's option.
  std::string reassociate = "auto";
  std::string form = "auto";
  /// Kernels check the decays among their arguments first: a positive element
  /// or a NaN is an error. Computed decays are not checked.
  bool checkDecays = false;
  /// Compute in one of two prime fields instead of in floats: 0 or 1. Floats of
  /// the signature become i64 elements (linattn/Field/PrimeField.h). For exact
  /// comparison.
  std::optional<unsigned> prime;
  /// Compile the vector-Jacobian product of the entry instead of the entry. Its
  /// arguments are those of the entry and the cotangents of its float results;
  /// its results are the cotangents of the listed operands, or of all float
  /// operands if the list is empty.
  std::optional<std::vector<int64_t>> differentiate;
  /// Allow the module to call any function of this process, and to hold ops of
  /// the LLVM dialect and assembly. Otherwise these are errors.
  bool trusted = false;
  /// Compile in a child process. A text that crashes MLIR or LLVM is then an
  /// error, and takes no longer than LINATTN_COMPILE_SECONDS. For text of
  /// unknown origin.
  bool isolated = false;
  /// Keep code in memory, and on disk for other processes. LINATTN_CACHE=off in
  /// the environment switches off both.
  bool memoryCache = true;
  bool diskCache = true;
  /// The folder of the disk cache. If empty, LINATTN_CACHE_DIR, or linattn
  /// below XDG_CACHE_HOME or ~/.cache.
  std::string cacheDir;
};

} // namespace linattn

#endif // LINATTN_CODEGEN_COMPILEROPTIONS_H
