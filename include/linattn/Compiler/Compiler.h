//===- Compiler.h - From MLIR text to kernels -------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   linattn::Compiler compiler;
//   llvm::Expected<linattn::Kernel> kernel = compiler.compile(text);
//   if (!kernel)
//     return kernel.takeError();       // "layer.mlir:3:10: error: …"
//   return kernel->run({q, k, v}, {o});
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_COMPILER_COMPILER_H
#define LINATTN_COMPILER_COMPILER_H

#include "linattn/CodeGen/CompilerOptions.h"
#include "linattn/Compiler/Kernel.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace linattn {

/// Counts since the process started, over all compilers.
struct CacheStats {
  uint64_t memoryHits = 0;
  uint64_t diskHits = 0;
  /// Compilations that went through MLIR.
  uint64_t misses = 0;
};

/// The cache that processes share: a folder with a file for each kernel.
struct DiskCacheInfo {
  /// Empty if compiled code is not kept. `problem` then holds the reason; it is
  /// empty if the environment or the options switch the cache off.
  std::string directory;
  std::string problem;
  uint64_t files = 0;
  uint64_t bytes = 0;
  /// The bound of `bytes`: LINATTN_CACHE_SIZE, 1 GiB unless set.
  uint64_t maxBytes = 0;
};

/// Compiles functions of tensors. It has no state besides its options, and may
/// be used from several threads.
class Compiler {
public:
  explicit Compiler(CompilerOptions options = {})
      : options(std::move(options)) {}

  /// Compiles the public function `entry` of a module, which may be left out if
  /// there is only one. Messages call the text `fileName`.
  llvm::Expected<Kernel> compile(llvm::StringRef text,
                                 llvm::StringRef entry = "",
                                 llvm::StringRef fileName = "<string>") const;
  llvm::Expected<Kernel> compileFile(llvm::StringRef path,
                                     llvm::StringRef entry = "") const;
  llvm::Expected<Kernel> compile(mlir::ModuleOp module,
                                 llvm::StringRef entry = "") const;

  /// The names of a module's public functions, in order. See CompilerOptions
  /// for `isolated`.
  static llvm::Expected<std::vector<std::string>>
  getPublicFunctions(llvm::StringRef text,
                     llvm::StringRef fileName = "<string>",
                     bool isolated = false);

  const CompilerOptions &getOptions() const { return options; }

  /// Whether kernels of a CPU may have products in a matrix unit by default:
  /// LINATTN_MATRIX_UNIT names one, or auto, that this process may use.
  static bool hasMatrixUnit();

  static CacheStats getCacheStats();
  /// The folder of the kernels of `options`, and the bytes it holds. An error
  /// if LINATTN_CACHE_SIZE is not a size.
  static llvm::Expected<DiskCacheInfo>
  getDiskCacheInfo(const CompilerOptions &options = {});
  /// Drops the kernels in memory. Those in use live on.
  static void clearMemoryCache();

private:
  CompilerOptions options;
};

} // namespace linattn

#endif // LINATTN_COMPILER_COMPILER_H
