//===- Errors.h - Exceptions of composed messages ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_ERRORS_H
#define LINATTN_PYTHON_ERRORS_H

#include <nanobind/nanobind.h>
#include <string>

namespace linattn::python {

[[noreturn]] inline void throwValueError(const std::string &message) {
  throw nanobind::value_error(message.c_str());
}

[[noreturn]] inline void throwTypeError(const std::string &message) {
  throw nanobind::type_error(message.c_str());
}

} // namespace linattn::python

#endif // LINATTN_PYTHON_ERRORS_H
