//===- Text.h - Text of modules ---------------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_TEXT_H
#define LINATTN_SUPPORT_TEXT_H

#include "llvm/Support/Error.h"
#include <string>

namespace linattn {

/// Reads a file, or the standard input for "-". A parser needs several times
/// the text's size in memory, so that longer text is an error before it is
/// read: at once for a file of known size, and at the limit for a pipe or a
/// device.
llvm::Expected<std::string> readText(llvm::StringRef path);

} // namespace linattn

#endif // LINATTN_SUPPORT_TEXT_H
