//===- Loader.h - Object code into this process -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_COMPILER_LOADER_H
#define LINATTN_LIB_COMPILER_LOADER_H

#include "linattn/CodeGen/Signature.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace linattn::detail {

/// Executable code, mapped while this object lives.
class LoadedCode {
public:
  using Function = void (*)(void **args);

  static llvm::Expected<std::unique_ptr<LoadedCode>>
  load(llvm::StringRef object, const Signature &signature);
  ~LoadedCode();

  Function run = nullptr;
  Function shapes = nullptr;

private:
  explicit LoadedCode(std::unique_ptr<llvm::orc::LLJIT> jit);

  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_LOADER_H
