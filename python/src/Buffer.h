//===- Buffer.h - Memory that other libraries can adopt ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_BUFFER_H
#define LINATTN_PYTHON_BUFFER_H

#include "DLPack.h"
#include "Place.h"
#include "linattn/Compiler/BufferView.h"
#include <memory>
#include <nanobind/nanobind.h>

namespace linattn::python {

/// The bytes of a contiguous result. A ValueError if they exceed the address
/// space.
size_t checkByteCount(DType dtype, llvm::ArrayRef<int64_t> shape);

[[noreturn]] void throwMemoryError(const std::string &message);

/// A contiguous array that DLPack can share. Its memory lives as long as the
/// array or a tensor made from it.
class Buffer {
public:
  /// `device` is that of a `Place`.
  Buffer(DType dtype, llvm::ArrayRef<int64_t> shape,
         int32_t device = Place::kCPU);

  BufferView view() const { return BufferView(memory.get(), dtype, shape); }

  /// Returns the `__dlpack__` capsule.
  nanobind::object makeCapsule() const;
  /// Returns a tensor for a capsule of DLPack 1.0. The caller must call its
  /// deleter.
  dlpack::ManagedTensorVersioned *makeTensor() const;
  /// The type and the number of the device in DLPack's numbering.
  std::pair<int32_t, int32_t> getDevice() const;

private:
  template <typename Managed>
  std::unique_ptr<Managed, void (*)(Managed *)> makeManaged() const;

  DType dtype;
  llvm::SmallVector<int64_t, 4> shape;
  std::shared_ptr<void> memory;
  int32_t device;
};

/// A NumPy array of bytes, aligned to a cache line, or to a huge page from 2
/// MiB on where the system has huge pages. Zeroed if `clear`.
nanobind::object makeBytes(size_t bytes, bool clear = false);

/// Adds the class `Buffer` to the module.
void registerBuffer(nanobind::module_ &module);

} // namespace linattn::python

#endif // LINATTN_PYTHON_BUFFER_H
