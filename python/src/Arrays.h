//===- Arrays.h - Arrays of other libraries as views ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_ARRAYS_H
#define LINATTN_PYTHON_ARRAYS_H

#include "Buffer.h"
#include "Place.h"
#include "linattn/Compiler/BufferView.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <optional>
#include <string>

namespace linattn::python {

/// Thrown for an array that its library must handle: a tensor of PyTorch that
/// requires a gradient, or one of PyTorch or JAX whose elements are not in
/// memory. It is a ValueError unless the call continues in that library.
class DispatchedTensor : public nanobind::builtin_exception {
public:
  explicit DispatchedTensor(const std::string &message,
                            ArrayKind library = ArrayKind::Torch)
      : builtin_exception(nanobind::exception_type::value_error,
                          message.c_str()),
        library(library) {}

  ArrayKind library;
};

/// A view of a caller's array that keeps the array alive. It has no copy and no
/// move: `Py_buffer` may point into itself.
class ImportedArray {
public:
  ImportedArray() = default;
  ImportedArray(const ImportedArray &) = delete;
  ImportedArray &operator=(const ImportedArray &) = delete;
  ~ImportedArray();

  /// Imports `object` without a copy. `name` is the operand in messages. Throws
  /// a TypeError for an object that is not an array, and a ValueError for an
  /// array that the call cannot use. All arrays of a call must be in the memory
  /// that `place` records; the first one determines it.
  void import(nanobind::handle object, const char *name, Place &place);

  BufferView view;
  ArrayKind kind = ArrayKind::Other;

private:
  /// Returns false if the type has no such functions, or they fail.
  bool borrow(nanobind::handle object, const dlpack::ExchangeAPI *api,
              const char *name, Place &place);
  void importBuffer(nanobind::handle object, const char *name);
  void importDLPack(nanobind::handle object, const char *name, Place &place);
  void importCudaInterface(nanobind::handle object, const char *name,
                           Place &place);

  Py_buffer buffer;
  bool hasBuffer = false;
  nanobind::object owner;
};

/// The Python name of an element type: "float32".
const char *getPythonName(DType dtype);

/// "(2, 5, 64)"
std::string formatPythonShape(llvm::ArrayRef<int64_t> shape);

/// The name of an object's type: "list", "numpy.ndarray".
std::string describeType(nanobind::handle object);

/// A result under construction. `fill` provides the memory to write to;
/// `finish` returns the array, in the library of the array it was made like.
class ResultArray {
public:
  /// Allocates a contiguous array in the library of `like`, and in its memory.
  void allocate(nanobind::handle like, ArrayKind kind, DType dtype,
                llvm::ArrayRef<int64_t> shape, Place &place);
  /// Takes the caller's array.
  void adopt(nanobind::handle array, const char *name, Place &place);

  nanobind::object finish();

  const BufferView &view() const { return imported.view; }

private:
  void allocateOnDevice(nanobind::handle like, DType dtype,
                        llvm::ArrayRef<int64_t> shape, Place &place);

  nanobind::object array, arrayNamespace;
  /// Own memory, which becomes a tensor by the functions of its type.
  std::optional<Buffer> memory;
  const dlpack::ExchangeAPI *api = nullptr;
  ImportedArray imported;
  ArrayKind kind = ArrayKind::NumPy;
  bool isForeign = false;
  /// For own memory on a GPU, whose readers must wait for the stream.
  Place place;
};

} // namespace linattn::python

#endif // LINATTN_PYTHON_ARRAYS_H
