//===- BuildId.h - Which compiler made the code -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_COMPILER_BUILDID_H
#define LINATTN_LIB_COMPILER_BUILDID_H

#include <string>

namespace linattn::detail {

/// The ELF build id of the program or library that this function was linked
/// into, in hexadecimal. Empty if it was linked without one; cached code could
/// then be stale and must not be used.
const std::string &getBuildId();

} // namespace linattn::detail

#endif // LINATTN_LIB_COMPILER_BUILDID_H
