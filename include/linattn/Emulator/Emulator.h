//===- Emulator.h - NVVM kernels on the CPU ---------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_EMULATOR_EMULATOR_H
#define LINATTN_EMULATOR_EMULATOR_H

#include "linattn/Emulator/Report.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace mlir::gpu {
class GPUModuleOp;
} // namespace mlir::gpu

namespace linattn::emulator {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  uint64_t getVolume() const { return uint64_t(x) * y * z; }
};

/// An argument of a kernel: a scalar, or a buffer of global memory. Buffers
/// that overlap on the host overlap in the kernel, too.
class Argument {
public:
  static Argument i32(int32_t value);
  static Argument i64(int64_t value);
  static Argument f32(float value);
  static Argument f64(double value);
  /// An f16 or bf16 scalar, by its bits.
  static Argument half(uint16_t bits, bool isBrain);
  /// Every access through it is checked against `bytes`.
  static Argument buffer(void *data, uint64_t bytes);
  /// A buffer that the kernel may only read.
  static Argument constBuffer(const void *data, uint64_t bytes);

  enum class Kind { I32, I64, F16, BF16, F32, F64, Buffer };
  Kind kind;
  uint64_t bits = 0;    ///< Of a scalar.
  char *data = nullptr; ///< Of a buffer.
  uint64_t bytes = 0;
  bool writable = false;
};

struct LaunchOptions {
  Dim3 grid, block;
  /// Dynamic shared memory, which follows the static one.
  uint64_t sharedBytes = 0;
  /// Determines the order in which threads run.
  uint64_t seed = 1;
};

/// A kernel in host code. Every launch is bitwise reproducible.
class EmulatedKernel {
public:
  /// Compiles the `llvm.func` or `gpu.func` kernel of that name. The module is
  /// not changed. An op without emulation is an error with its location.
  static llvm::Expected<EmulatedKernel> compile(mlir::gpu::GPUModuleOp module,
                                                llvm::StringRef name);
  /// The same for text with one `gpu.module`. If `name` is empty, the module
  /// must have one kernel.
  static llvm::Expected<EmulatedKernel>
  compile(llvm::StringRef text, llvm::StringRef name = "",
          llvm::StringRef sourceName = "kernel.mlir");

  EmulatedKernel(EmulatedKernel &&);
  EmulatedKernel &operator=(EmulatedKernel &&);
  ~EmulatedKernel();

  /// Runs all blocks, one after the other. Errors of the kernel are in the
  /// report; an error names a launch that does not fit the kernel.
  llvm::Expected<Report> launch(llvm::ArrayRef<Argument> arguments,
                                const LaunchOptions &options) const;

  llvm::StringRef getName() const;
  /// The largest number of threads per block by `nvvm.maxntid` or
  /// `nvvm.reqntid`; 0 if the kernel does not limit it.
  uint64_t getMaxThreads() const;

private:
  struct Impl;
  explicit EmulatedKernel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace linattn::emulator

#endif // LINATTN_EMULATOR_EMULATOR_H
