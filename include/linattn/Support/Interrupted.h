//===- Interrupted.h - Errors of calls that were ended ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_INTERRUPTED_H
#define LINATTN_SUPPORT_INTERRUPTED_H

#include "llvm/Support/Error.h"
#include <string>

namespace linattn {

/// The call ended before it was done. Its outputs, and the arguments that it
/// updates in place, have unspecified contents. Later calls are not affected.
class InterruptedError : public llvm::ErrorInfo<InterruptedError> {
public:
  static char ID;

  enum Reason { Interrupt, Deadline };

  InterruptedError(Reason reason, const llvm::Twine &message)
      : reason(reason), text(message.str()) {}

  Reason getReason() const { return reason; }
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override {
    return std::make_error_code(reason == Deadline ? std::errc::timed_out
                                                   : std::errc::interrupted);
  }

private:
  Reason reason;
  std::string text;
};

} // namespace linattn

#endif // LINATTN_SUPPORT_INTERRUPTED_H
