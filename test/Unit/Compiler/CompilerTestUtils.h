//===- CompilerTestUtils.h - Modules and buffers for tests ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_COMPILER_COMPILERTESTUTILS_H
#define LINATTN_TEST_UNIT_COMPILER_COMPILERTESTUTILS_H

#include "linattn/Compiler/Compiler.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

namespace linattn::test {

/// c[i, j] = sum_k a[i, k] * b[k, j], and a sum that is a scalar.
inline constexpr const char *kMatmul = R"mlir(
func.func @matmul(%a: tensor<?x4xf32>, %b: tensor<4x3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = tensor.dim %a, %c0 : tensor<?x4xf32>
  %empty = tensor.empty(%m) : tensor<?x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x3xf32>)
      -> tensor<?x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<?x4xf32>, tensor<4x3xf32>)
      outs(%init : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %c : tensor<?x3xf32>
}
)mlir";

/// Compiles without any cache.
inline Kernel compile(llvm::StringRef text, llvm::StringRef entry = "",
                      CompilerOptions options = {}) {
  options.memoryCache = options.diskCache = false;
  return llvm::cantFail(Compiler(options).compile(text, entry, "test.mlir"));
}

/// The message of a failed compilation.
inline std::string getCompileError(llvm::StringRef text,
                                   llvm::StringRef entry = "") {
  CompilerOptions options;
  options.memoryCache = options.diskCache = false;
  llvm::Expected<Kernel> kernel =
      Compiler(options).compile(text, entry, "test.mlir");
  return kernel ? "no error" : llvm::toString(kernel.takeError());
}

/// `text` with `value` wherever it names `variable`.
inline std::string replaced(std::string text, llvm::StringRef variable,
                            llvm::StringRef value) {
  for (size_t at; (at = text.find(variable)) != std::string::npos;)
    text.replace(at, variable.size(), value);
  return text;
}

inline BufferView view(std::vector<float> &data,
                       llvm::ArrayRef<int64_t> shape) {
  return BufferView(static_cast<void *>(data.data()), DType::F32, shape);
}

/// A directory that is removed in the end.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    llvm::cantFail(llvm::errorCodeToError(
        llvm::sys::fs::createUniqueDirectory("linattn-test", path)));
  }
  ~TemporaryDirectory() { llvm::sys::fs::remove_directories(path); }

  std::string str() const { return path.str().str(); }
  std::string operator/(llvm::StringRef name) const {
    return str() + "/" + name.str();
  }

private:
  llvm::SmallString<128> path;
};

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_COMPILER_COMPILERTESTUTILS_H
