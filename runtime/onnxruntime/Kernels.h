//===- Kernels.h - The bundles inside the library ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_RUNTIME_ONNXRUNTIME_KERNELS_H
#define LINATTN_RUNTIME_ONNXRUNTIME_KERNELS_H

#include "linattn-c/Runner.h"

#include <string>

namespace linattn::ort {

/// The kernel of that name in kernels.py, loaded when it is first used; null
/// if there is none.
const linattn_kernel *findKernel(const std::string &name);

/// Throws an error code of a runner function as an exception.
void check(linattn_error *error);

} // namespace linattn::ort

#endif // LINATTN_RUNTIME_ONNXRUNTIME_KERNELS_H
