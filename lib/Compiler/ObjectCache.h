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
#include <optional>

namespace linattn::detail {

/// A name for everything that the code depends on: source, entry, options,
/// layout, machine, LLVM, and the build of this compiler.
std::string getCacheKey(llvm::StringRef text, llvm::StringRef entry,
                        const CompilerOptions &options,
                        const mlir::linattn::EntryLayout &layout);

/// Whether the environment allows caches at all.
bool isCacheEnabled();

class DiskCache {
public:
  /// Opens and if necessary creates the directory that `options` name. The
  /// result does nothing if there is none that can be trusted; `problem` says
  /// why, and so does a warning, once in a process. An error if
  /// LINATTN_CACHE_SIZE cannot be read.
  static llvm::Expected<DiskCache> open(const CompilerOptions &options);

  /// Nothing if the file does not exist, is damaged or has another owner.
  std::optional<CompiledCode> read(llvm::StringRef key) const;

  /// Writes a file that appears under its name only when it is complete.
  /// A failure is ignored: the next process compiles again.
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

  /// The kernels of the folder. Removes files that a process left unfinished
  /// which ended while it wrote.
  std::vector<File> list() const;

  void use(const std::string &path);
  std::string getPath(llvm::StringRef key) const;

  /// Removes the files that were not read or written for longest, until the
  /// rest takes at most `maxBytes`.
  void evict() const;

  /// Empty if the cache is off.
  std::string directory;
  uint64_t maxBytes = 0;
  std::string problem;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_OBJECTCACHE_H
