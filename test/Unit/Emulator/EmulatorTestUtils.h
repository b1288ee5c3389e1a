//===- EmulatorTestUtils.h - Kernels and data for tests ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_EMULATOR_EMULATORTESTUTILS_H
#define LINATTN_TEST_UNIT_EMULATOR_EMULATORTESTUTILS_H

#include "linattn/Emulator/Emulator.h"
#include "linattn/Support/Elements.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <random>
#include <vector>

namespace linattn::emulator::test {

/// A kernel `@k` with these parameters and this body, in a gpu.module with
/// dynamic shared memory `@linattn_shared`.
inline std::string makeKernel(llvm::StringRef parameters, llvm::StringRef body,
                              llvm::StringRef globals = "") {
  return ("gpu.module @m {\n"
          "llvm.mlir.global external @linattn_shared() {addr_space = 3 : i32, "
          "alignment = 1024 : i64} : !llvm.array<0 x i8>\n" +
          globals + "\nllvm.func @k(" + parameters +
          ") attributes {nvvm.kernel} {\n" + body + "\nllvm.return\n}\n}\n")
      .str();
}

inline EmulatedKernel compile(llvm::StringRef text) {
  return llvm::cantFail(EmulatedKernel::compile(text));
}

inline std::string getCompileError(llvm::StringRef text) {
  auto kernel = EmulatedKernel::compile(text);
  return kernel ? "no error" : llvm::toString(kernel.takeError());
}

template <typename T>
Argument out(std::vector<T> &data) {
  return Argument::buffer(data.data(), data.size() * sizeof(T));
}
template <typename T>
Argument in(const std::vector<T> &data) {
  return Argument::constBuffer(data.data(), data.size() * sizeof(T));
}

/// One block of `threads`.
inline Report run(const EmulatedKernel &kernel, std::vector<Argument> arguments,
                  unsigned threads = 32, uint64_t sharedBytes = 0,
                  unsigned blocks = 1, uint64_t seed = 1) {
  LaunchOptions options;
  options.grid.x = blocks;
  options.block.x = threads;
  options.sharedBytes = sharedBytes;
  options.seed = seed;
  return llvm::cantFail(kernel.launch(arguments, options));
}

inline Report run(llvm::StringRef text, std::vector<Argument> arguments,
                  unsigned threads = 32, uint64_t sharedBytes = 0,
                  unsigned blocks = 1) {
  return run(compile(text), std::move(arguments), threads, sharedBytes, blocks);
}

/// Nothing was found but, perhaps, by these checks.
inline void expectOnly(const Report &report, std::vector<Check> checks) {
  for (unsigned i = 0; i < kNumChecks; ++i) {
    auto check = static_cast<Check>(i);
    if (llvm::is_contained(checks, check))
      EXPECT_GT(report[check].count, 0u) << getName(check);
    else
      EXPECT_EQ(report[check].count, 0u)
          << getName(check) << ": " << report[check].example;
  }
}

inline void expectClean(const Report &report) {
  EXPECT_TRUE(report.isClean()) << report.describeFindings();
}

} // namespace linattn::emulator::test

#endif // LINATTN_TEST_UNIT_EMULATOR_EMULATORTESTUTILS_H
