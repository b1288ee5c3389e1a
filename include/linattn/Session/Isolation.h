//===- Isolation.h - Compilation in a process of its own --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// MLIR and LLVM trust their input. Package builds have no assertions, so a
// malformed attribute, an expression a million terms long or an alias that
// doubles itself sixty times ends the process or runs forever. Text of unknown
// origin is therefore compiled in a child process with a large stack and a time
// limit. The child sends back its result or its error.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SESSION_ISOLATION_H
#define LINATTN_SESSION_ISOLATION_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <shared_mutex>
#include <string>

namespace linattn::detail {

/// Prevents forks while MLIR works in this process. A child inherits the state
/// of locks, and no thread of the child would release a lock that another
/// thread holds.
class CompilationLock {
public:
  CompilationLock();
  ~CompilationLock();
  CompilationLock(const CompilationLock &) = delete;
};

/// Runs `work` in a child process and returns its result or its error. A child
/// that crashes, or computes for longer than the limit, is an error at the line
/// and column of `text` where the parser stood. `fileName` is the text's name
/// in messages.
///
/// The limit is LINATTN_COMPILE_SECONDS of CPU time, 120 by default.
llvm::Expected<std::string>
runIsolated(llvm::StringRef text, llvm::StringRef fileName,
            llvm::function_ref<llvm::Expected<std::string>()> work);

/// Returns an error at the first place of `text` with more than 1000 nested
/// open brackets, outside of strings and comments, or signs in a row.
llvm::Error checkNesting(llvm::StringRef text, llvm::StringRef fileName);

/// "file:line:column" of an offset into `text`.
std::string locate(llvm::StringRef text, llvm::StringRef fileName,
                   size_t offset);

} // namespace linattn::detail

#endif // LINATTN_SESSION_ISOLATION_H
