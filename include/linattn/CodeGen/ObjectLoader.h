//===- ObjectLoader.h - Object code into this process -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CODEGEN_OBJECTLOADER_H
#define LINATTN_CODEGEN_OBJECTLOADER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace linattn::detail {

/// A function of this process that compiled code may call.
struct HostSymbol {
  llvm::StringRef name;
  void *address;
};

/// Maps object code into this process, to be freed with the result. It sees
/// `symbols` and what the dynamic linker finds.
llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>>
loadObject(llvm::StringRef object, llvm::StringRef name,
           llvm::ArrayRef<HostSymbol> symbols);

} // namespace linattn::detail

#endif // LINATTN_CODEGEN_OBJECTLOADER_H
