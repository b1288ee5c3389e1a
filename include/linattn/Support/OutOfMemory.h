//===- OutOfMemory.h - The error of a system without memory -----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_OUTOFMEMORY_H
#define LINATTN_SUPPORT_OUTOFMEMORY_H

#include "llvm/Support/Error.h"
#include <string>

namespace linattn {

/// The arguments are right, but memory is missing. A later call may succeed.
class OutOfMemoryError : public llvm::ErrorInfo<OutOfMemoryError> {
public:
  static char ID;

  explicit OutOfMemoryError(const llvm::Twine &message)
      : message(message.str()) {}

  void log(llvm::raw_ostream &os) const override { os << message; }
  std::error_code convertToErrorCode() const override {
    return std::make_error_code(std::errc::not_enough_memory);
  }

private:
  std::string message;
};

} // namespace linattn

#endif // LINATTN_SUPPORT_OUTOFMEMORY_H
