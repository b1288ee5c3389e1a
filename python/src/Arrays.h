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

/// An array that its library itself must look at: a tensor of PyTorch that
/// requires a gradient, or one of PyTorch or JAX that stands for something else
/// than elements in memory. A ValueError unless the call goes on through that
/// library.
class DispatchedTensor : public nanobind::builtin_exception {
public:
  explicit DispatchedTensor(const std::string &message,
                            ArrayKind library = ArrayKind::Torch)
      : builtin_exception(nanobind::exception_type::value_error,
                          message.c_str()),
        library(library) {}

  ArrayKind library;
};

/// A view of a caller's array that keeps the array's memory alive. Neither
/// copied nor moved: `Py_buffer` may point into itself.
class ImportedArray {
public:
  ImportedArray() = default;
  ImportedArray(const ImportedArray &) = delete;
  ImportedArray &operator=(const ImportedArray &) = delete;
  ~ImportedArray();

  /// Takes `object` in without a copy. `name` is the operand in messages; a
  /// TypeError tells what is wrong with an object that is not an array, a
  /// ValueError what is wrong with an array. It must be where those before it
  /// are, which `place` knows; the first one tells.
  void import(nanobind::handle object, const char *name, Place &place);

  BufferView view;
  ArrayKind kind = ArrayKind::Other;

private:
  /// False where the type has no functions for it, or they fail.
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

/// The name of an element type as Python libraries spell it: "float32".
const char *getPythonName(DType dtype);

/// "(2, 5, 64)"
std::string formatPythonShape(llvm::ArrayRef<int64_t> shape);

/// The name of an object's type: "list", "numpy.ndarray".
std::string describeType(nanobind::handle object);

/// A result that is being made. `fill` gives the memory to write to; `finish`
/// gives the array, of the same library as the array it was made like.
class ResultArray {
public:
  /// Contiguous, of the library of `like` and where that is.
  void allocate(nanobind::handle like, ArrayKind kind, DType dtype,
                llvm::ArrayRef<int64_t> shape, Place &place);
  /// The caller's array.
  void adopt(nanobind::handle array, const char *name, Place &place);

  nanobind::object finish();

  const BufferView &view() const { return imported.view; }

private:
  void allocateOnDevice(nanobind::handle like, DType dtype,
                        llvm::ArrayRef<int64_t> shape, Place &place);

  nanobind::object array, arrayNamespace;
  /// Memory of our own that becomes a tensor by the functions of its type.
  std::optional<Buffer> memory;
  const dlpack::ExchangeAPI *api = nullptr;
  ImportedArray imported;
  ArrayKind kind = ArrayKind::NumPy;
  bool isForeign = false;
  /// Of memory of our own on a GPU, which others take only when it is ready.
  Place place;
};

} // namespace linattn::python

#endif // LINATTN_PYTHON_ARRAYS_H
