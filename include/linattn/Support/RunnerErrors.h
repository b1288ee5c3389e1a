//===- RunnerErrors.h - Errors of the runner's C API ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_RUNNERERRORS_H
#define LINATTN_SUPPORT_RUNNERERRORS_H

#include "linattn-c/Runner.h"
#include "linattn/Support/OutOfMemory.h"
#include "llvm/Support/Error.h"

namespace linattn {

/// Takes over the error that a call of the C API returned, null for success.
inline llvm::Error takeError(linattn_error *error) {
  if (!error)
    return llvm::Error::success();
  const char *message = linattn_error_message(error);
  llvm::Error result =
      linattn_error_get_kind(error) == LINATTN_ERROR_OUT_OF_MEMORY
          ? llvm::make_error<OutOfMemoryError>(message)
          : llvm::createStringError(message);
  linattn_error_free(error);
  return result;
}

} // namespace linattn

#endif // LINATTN_SUPPORT_RUNNERERRORS_H
