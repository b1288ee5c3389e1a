//===- Buffer.h - Memory that other libraries can adopt ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_BUFFER_H
#define LINATTN_PYTHON_BUFFER_H

#include "linattn/Compiler/BufferView.h"
#include <memory>
#include <nanobind/nanobind.h>

namespace linattn::python {

/// A contiguous array that hands itself out through DLPack. Its memory lives as
/// long as it or anyone who took it.
class Buffer {
public:
  Buffer(DType dtype, llvm::ArrayRef<int64_t> shape);

  BufferView view() const { return BufferView(memory.get(), dtype, shape); }

  /// The `__dlpack__` capsule.
  nanobind::object makeCapsule() const;

private:
  DType dtype;
  llvm::SmallVector<int64_t, 4> shape;
  std::shared_ptr<void> memory;
};

/// Adds the class `Buffer` to the module.
void registerBuffer(nanobind::module_ &module);

} // namespace linattn::python

#endif // LINATTN_PYTHON_BUFFER_H
