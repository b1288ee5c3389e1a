//===- RunnerErrors.h - Errors of the runner's C API -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_RUNNERERRORS_H
#define LINATTN_SUPPORT_RUNNERERRORS_H

#include "linattn-c/Runner.h"
#include "llvm/Support/Error.h"

namespace linattn {

/// What a call of the C API returned, null for success; takes it over.
inline llvm::Error takeError(linattn_error *error) {
  if (!error)
    return llvm::Error::success();
  llvm::Error result = llvm::createStringError(linattn_error_message(error));
  linattn_error_free(error);
  return result;
}

} // namespace linattn

#endif // LINATTN_SUPPORT_RUNNERERRORS_H
