//===- ObjectCache.h - Compiled code on disk --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file per variant of a kernel. The directory holds machine code that will
// run with the user's rights, so no other user may be able to write there, and
// what was read is believed only if its checksum is right.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_COMPILER_OBJECTCACHE_H
#define LINATTN_LIB_COMPILER_OBJECTCACHE_H

#include "linattn/Compiler/Compiler.h"
#include "linattn/Entry/EntryLayout.h"
#include "linattn/Session/CompiledCode.h"

#include "llvm/Support/Chrono.h"
#include "llvm/Support/Error.h"
#include <chrono>
#include <optional>

namespace linattn::detail {

/// A hash of everything that the code depends on: source, entry, options,
/// layout, machine, LLVM, and the build of this compiler.
std::string getCacheKey(llvm::StringRef text, llvm::StringRef entry,
                        const CompilerOptions &options,
                        const mlir::linattn::EntryLayout &layout);

/// Whether the environment allows caches at all.
bool isCacheEnabled();

/// The right to compile a kernel: one process has it at a time. Nothing is
/// wrong without it, but the ranks of a job that start together would all
/// compile the same kernels.
class CompileClaim {
public:
  CompileClaim() = default;
  CompileClaim(CompileClaim &&other) noexcept;
  CompileClaim &operator=(CompileClaim &&) = delete;
  ~CompileClaim();

  /// Takes the lock of a file. Waits for another holder, but not forever: it
  /// may have been stopped.
  static CompileClaim
  wait(std::string path,
       std::chrono::milliseconds patience = std::chrono::seconds(10));

  bool isHeld() const { return file >= 0; }

private:
  std::string path;
  int file = -1;
};

class DiskCache {
public:
  /// Opens, and if necessary creates, the directory that `options` name.
  /// Without a trusted directory the result is a cache that does nothing;
  /// `problem` then holds the reason, and a warning is printed once per
  /// process. An error if LINATTN_CACHE_SIZE cannot be parsed.
  static llvm::Expected<DiskCache> open(const CompilerOptions &options);

  /// Returns nothing if the file does not exist, is damaged or has another
  /// owner.
  std::optional<CompiledCode> read(llvm::StringRef key) const;

  /// Waits while another process compiles `key`. Its kernel is read
  /// afterwards.
  CompileClaim claim(llvm::StringRef key) const;

  /// Writes a file that appears under its name only when it is complete.
  /// Failures are ignored: the next process compiles again.
  void write(llvm::StringRef key, const CompiledCode &code) const;

  const std::string &getProblem() const { return problem; }

  /// The folder, and the number and bytes of its kernels.
  DiskCacheInfo getInfo() const;

private:
  struct File {
    llvm::sys::TimePoint<> used;
    uint64_t bytes;
    std::string path;
  };

  /// The kernels of the folder. Removes unfinished files of processes that no
  /// longer run.
  std::vector<File> list() const;

  void use(const std::string &path);
  std::string getPath(llvm::StringRef key) const;

  /// Whether `bytes` more may take the folder beyond `maxBytes`. Counts what
  /// this process writes: a folder of thousands of kernels takes longer to
  /// list than some kernels take to compile.
  bool mayExceed(uint64_t bytes) const;

  /// Removes the least recently used files until the rest takes at most
  /// `maxBytes`.
  void evict() const;

  /// Empty if the cache is off.
  std::string directory;
  uint64_t maxBytes = 0;
  std::string problem;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_OBJECTCACHE_H
