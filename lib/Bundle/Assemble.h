//===- Assemble.h - Programs that finish code -------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_BUNDLE_ASSEMBLE_H
#define LINATTN_LIB_BUNDLE_ASSEMBLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace linattn::detail {

/// Runs `ptxas` on PTX and returns the machine code. An error holds the
/// program's output.
llvm::Expected<std::string>
assemblePTX(llvm::StringRef ptx, llvm::StringRef chip, llvm::StringRef ptxas);

/// Links an object to a shared library by `linker`, a program compatible with
/// ld. Undefined symbols stay undefined.
llvm::Expected<std::string> linkShared(llvm::StringRef object,
                                       llvm::StringRef linker);

} // namespace linattn::detail

#endif // LINATTN_LIB_BUNDLE_ASSEMBLE_H
