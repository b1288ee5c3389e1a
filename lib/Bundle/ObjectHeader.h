//===- ObjectHeader.h - C declarations of an object -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_BUNDLE_OBJECTHEADER_H
#define LINATTN_LIB_BUNDLE_OBJECTHEADER_H

#include "linattn/CodeGen/Signature.h"
#include "llvm/ADT/ArrayRef.h"

namespace linattn::detail {

/// The header of an object with the two functions of `emitWrappers`. `checks`
/// are the messages of the function that computes the shapes.
std::string writeHeader(const Signature &signature,
                        llvm::ArrayRef<std::string> checks,
                        llvm::StringRef source);

} // namespace linattn::detail

#endif // LINATTN_LIB_BUNDLE_OBJECTHEADER_H
