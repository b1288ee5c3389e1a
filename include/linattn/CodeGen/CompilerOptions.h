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

/// Which pipeline makes the code: the fast one, naive loops to compare with,
/// the one through linalg, whose code is in linear time and no faster, or loops
/// that print every value on the standard output, scans token by token.
/// NVVMEmulated: the kernels of a GPU, executed and checked by the emulator. A
/// call with findings is an error. NVVM: a GPU of NVIDIA runs it, on views of
/// its memory.
enum class Target { CPU, Reference, Trace, NVVMEmulated, NVVM, Linalg };

/// Sizes and rates by which schedules of a GPU are chosen, where types and the
/// name of a chip leave them open; 0: unknown.
struct ScheduleHints {
  /// Sequences (or states) and tokens of a call whose module leaves them open.
  /// Any other number of them works too.
  int64_t sequences = 0, tokens = 0;
  /// Of the device: multiprocessors, and bandwidth of its memory in GB/s.
  int64_t multiprocessors = 0, bandwidth = 0;
};

/// The unit that multiplies matrices of 16-bit tokens on a CPU: its vectors,
/// the tiles of AMX, or vectors with the bits of AMX.
enum class MatrixUnit { None, AMX, EmulatedAMX };

struct CompilerOptions {
  Target target = Target::CPU;
  /// Of a CPU. Unless given, what LINATTN_MATRIX_UNIT in the environment names
  /// (none, amx or emulated), else none. AMX that the machine lacks, or the
  /// operating system withholds, is none.
  std::optional<MatrixUnit> matrixUnit;
  /// Unless given, what LINATTN_MATH in the environment names, else strict.
  std::optional<Math> math;
  /// Of NVVM: what to compile for, "sm_90"; empty means what LINATTN_CHIP in
  /// the environment names, else the current device.
  std::string chip;
  /// Of kernels for a GPU. Where `chip` is empty, the driver gives the numbers
  /// of the device that are 0.
  ScheduleHints hints;
  /// Of kernels for a GPU: how tiles come to shared memory where products are
  /// those of `wgmma`, "cp_async" or "tma" (docs/GPU.md).
  std::string copy = "cp_async";
  /// How attention is rewritten; the options of the passes of that name.
  std::string reassociate = "auto";
  std::string form = "auto";
  /// Kernels look at the decays among their arguments first: an element that is
  /// positive or NaN is an error. Computed decays are not looked at.
  bool checkDecays = false;
  /// Compute in one of two prime fields instead of in floats: 0 or 1. Floats of
  /// the signature become i64 elements (linattn/Field/PrimeField.h). For
  /// exact comparison.
  std::optional<unsigned> prime;
  /// Compile the vector-Jacobian product of the entry instead of the entry: its
  /// arguments are those of the entry and the cotangents of its float results,
  /// its results the cotangents of the operands listed, of all float operands
  /// if none is.
  std::optional<std::vector<int64_t>> differentiate;
  /// Let the module call any function of this process, and hold ops of the LLVM
  /// dialect and assembly. Else they are errors.
  bool trusted = false;
  /// Compile in a child process, so that a text that MLIR or LLVM cannot take
  /// is an error, whatever it does to them, and takes no longer than
  /// LINATTN_COMPILE_SECONDS. For text of unknown origin.
  bool isolated = false;
  /// Keep code in memory, and on disk for other processes. LINATTN_CACHE=off
  /// in the environment switches off both.
  bool memoryCache = true;
  bool diskCache = true;
  /// Where; empty means LINATTN_CACHE_DIR, or linattn below XDG_CACHE_HOME or
  /// ~/.cache.
  std::string cacheDir;
};

} // namespace linattn

#endif // LINATTN_CODEGEN_COMPILEROPTIONS_H
