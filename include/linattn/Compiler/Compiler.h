//===- Compiler.h - From MLIR text to kernels -----------------------------===//
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

#include "linattn/Analysis/CostModel.h"
#include "linattn/Compiler/Kernel.h"
#include "linattn/Support/Arithmetic.h"
#include <optional>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace linattn {

/// Which pipeline makes the code: the fast one, naive loops to compare with,
/// the one through linalg, whose code is in linear time and no faster, or loops
/// that print every value on the standard output, scans token by token.
/// NVVMEmulated: the kernels of a GPU, executed and checked by the emulator. A
/// call with findings is an error. NVVM: a GPU of NVIDIA runs it, on views of
/// its memory.
enum class Target { CPU, Reference, Trace, NVVMEmulated, NVVM, Linalg };

struct CompilerOptions {
  Target target = Target::CPU;
  /// Unless given, what LINATTN_MATH in the environment names, else strict.
  std::optional<Math> math;
  /// Of NVVM: what to compile for, "sm_90"; empty means the current device.
  std::string chip;
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
  /// the signature become i64 elements (linattn/Support/PrimeField.h). For
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

/// Counts since the process started, over all compilers.
struct CacheStats {
  uint64_t memoryHits = 0;
  uint64_t diskHits = 0;
  /// Compilations that went through MLIR.
  uint64_t misses = 0;
};

/// The cache that processes share: a folder with a file for each kernel.
struct DiskCacheInfo {
  /// Empty if compiled code is not kept; `problem` then says why, or is empty
  /// if the environment or the options switch the cache off.
  std::string directory;
  std::string problem;
  uint64_t files = 0;
  uint64_t bytes = 0;
  /// The bound of `bytes`: LINATTN_CACHE_SIZE, 1 GiB unless set.
  uint64_t maxBytes = 0;
};

/// The machine that code is made for: this one, or the one that LINATTN_CPU
/// names.
VectorTarget getVectorTarget();

/// Compiles functions of tensors. Without state of its own besides the options;
/// may be used from several threads.
class Compiler {
public:
  explicit Compiler(CompilerOptions options = {})
      : options(std::move(options)) {}

  /// Compiles the public function `entry` of a module; it may be left out if
  /// there is only one. Messages call the text `fileName`.
  llvm::Expected<Kernel> compile(llvm::StringRef text,
                                 llvm::StringRef entry = "",
                                 llvm::StringRef fileName = "<string>") const;
  llvm::Expected<Kernel> compileFile(llvm::StringRef path,
                                     llvm::StringRef entry = "") const;
  llvm::Expected<Kernel> compile(mlir::ModuleOp module,
                                 llvm::StringRef entry = "") const;

  /// The names of a module's public functions, in order; `isolated` as in the
  /// options.
  static llvm::Expected<std::vector<std::string>>
  getPublicFunctions(llvm::StringRef text,
                     llvm::StringRef fileName = "<string>",
                     bool isolated = false);

  const CompilerOptions &getOptions() const { return options; }

  static CacheStats getCacheStats();
  /// Where the kernels of `options` are kept, and how many bytes are there. An
  /// error if LINATTN_CACHE_SIZE is not a size.
  static llvm::Expected<DiskCacheInfo>
  getDiskCacheInfo(const CompilerOptions &options = {});
  /// Forgets the kernels in memory; those in use live on.
  static void clearMemoryCache();

private:
  CompilerOptions options;
};

} // namespace linattn

#endif // LINATTN_COMPILER_COMPILER_H
