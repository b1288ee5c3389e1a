//===- CompiledCode.h - Compiled code as bytes ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SESSION_COMPILEDCODE_H
#define LINATTN_SESSION_COMPILEDCODE_H

#include "linattn/CodeGen/Signature.h"

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <vector>

namespace linattn::detail {

/// One variant of a kernel, as the cache and a child process hold it.
struct CompiledCode {
  Signature signature;
  /// The messages of the checks in the shape function, with `{0}`, `{1}` for
  /// sizes.
  std::vector<std::string> checks;
  std::vector<std::string> remarks;
  std::string object;
};

/// Magic, checksum of the rest, size of the manifest, manifest in JSON, object
/// code. The manifest holds `key`, what the code was made of.
std::string serialize(const CompiledCode &code, llvm::StringRef key = "");

/// Returns nothing unless the bytes are intact and have this `key`.
std::optional<CompiledCode> deserialize(llvm::StringRef bytes,
                                        llvm::StringRef key = "");

} // namespace linattn::detail

#endif // LINATTN_SESSION_COMPILEDCODE_H
