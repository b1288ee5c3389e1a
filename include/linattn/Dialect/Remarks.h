//===- Remarks.h - Remarks of the compiler ----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_DIALECT_REMARKS_H
#define LINATTN_DIALECT_REMARKS_H

#include "mlir/IR/Remarks.h"

namespace mlir::linattn {

/// Remarks of the compiler: all in the category "linattn", filtered by
/// `--remarks-filter=linattn`.
inline remark::RemarkOpts remarkNamed(StringRef name) {
  return remark::RemarkOpts::name(name).category("linattn");
}

} // namespace mlir::linattn

#endif // LINATTN_DIALECT_REMARKS_H
