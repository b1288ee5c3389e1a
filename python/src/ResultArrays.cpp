//===- ResultArrays.cpp - Results in the library of the operands ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Buffer.h"
#include "DLPack.h"
#include "Libraries.h"
#include "Tuples.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

static nb::object makeTuple(llvm::ArrayRef<int64_t> numbers) {
  nb::object tuple =
      nb::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (size_t i = 0; i < numbers.size(); ++i)
    setTupleItem(tuple, i, PyLong_FromLongLong(numbers[i]));
  return tuple;
}

/// PyTorch and CuPy have allocators that know their streams. For other
/// libraries the memory is our own.
void ResultArray::allocateOnDevice(nb::handle like, DType dtype,
                                   llvm::ArrayRef<int64_t> shape,
                                   Place &callPlace) {
  if (kind == ArrayKind::Torch) {
    nb::object type = nb::module_::import_("torch").attr(getPythonName(dtype));
    array = like.attr("new_empty")(makeTuple(shape), nb::arg("dtype") = type);
    imported.import(array, "result", callPlace);
    return;
  }
  nb::object moduleName = like.type().attr("__module__");
  std::string module = nb::str(nb::handle(moduleName)).c_str();
  if (module.compare(0, 4, "cupy") == 0) {
    array = nb::module_::import_("cupy").attr("empty")(
        makeTuple(shape), nb::arg("dtype") = getPythonName(dtype));
    imported.import(array, "result", callPlace);
    return;
  }
  isForeign = true;
  place = callPlace;
  if (kind == ArrayKind::ArrayApi)
    arrayNamespace = like.attr("__array_namespace__")();
  auto *memory = new Buffer(dtype, shape, place.device);
  array = nb::cast(memory, nb::rv_policy::take_ownership);
  imported.view = memory->view();
}

/// A NumPy array. If a vector kernel fills it row by row, it is aligned to a
/// cache line: NumPy's own arrays start 16 bytes into one, so that each row
/// touches one line more. Large arrays reuse the memory of earlier results
/// where some is kept.
static nb::object emptyArray(const nb::object &sizes, const nb::object &type,
                             DType dtype, llvm::ArrayRef<int64_t> shape) {
  constexpr size_t worthIt = 1 << 16;
  Libraries &libraries = getLibraries();
  size_t bytes = checkByteCount(dtype, shape);
  if (bytes < worthIt)
    return libraries.numpyEmpty(sizes, type);
  return libraries.numpyArray(sizes, type, makeBytes(bytes));
}

void ResultArray::allocate(nb::handle like, ArrayKind likeKind, DType dtype,
                           llvm::ArrayRef<int64_t> shape, Place &callPlace) {
  Libraries &libraries = getLibraries();
  kind = likeKind;
  if (callPlace.isDevice())
    return allocateOnDevice(like, dtype, shape, callPlace);
  if (kind == ArrayKind::Torch && (api = classify(like, "result").api)) {
    memory.emplace(dtype, shape);
    imported.view = memory->view();
    return;
  }
  isForeign = kind == ArrayKind::Torch || kind == ArrayKind::Jax ||
              kind == ArrayKind::ArrayApi;
  if (isForeign || (kind == ArrayKind::Other && dtype == DType::BF16)) {
    isForeign = true;
    if (kind == ArrayKind::ArrayApi)
      arrayNamespace = like.attr("__array_namespace__")();
    auto *memory = new Buffer(dtype, shape);
    array = nb::cast(memory, nb::rv_policy::take_ownership);
    imported.view = memory->view();
    return;
  }
  nb::object sizes = makeTuple(shape), type;
  if (dtype == DType::F32)
    type = libraries.float32;
  else if (dtype == DType::F64)
    type = libraries.float64;
  else if (dtype == DType::BF16)
    type = getBFloat16();
  else
    type = nb::str(getPythonName(dtype));
  array = emptyArray(sizes, type, dtype, shape);
  Place cpu;
  imported.import(array, "result", cpu);
}

void ResultArray::adopt(nb::handle given, const char *name, Place &callPlace) {
  array = nb::borrow(given);
  imported.import(given, name, callPlace);
  if (imported.view.readOnly)
    throw nb::value_error((std::string(name) + ": expected a writable array, "
                                               "but got a read-only one")
                              .c_str());
}

nb::object ResultArray::finish() {
  if (memory) {
    void *tensor = nullptr;
    if (api->toObject(memory->makeTensor(), &tensor) != 0)
      throw nb::python_error();
    return nb::steal(static_cast<PyObject *>(tensor));
  }
  if (!isForeign)
    return std::move(array);
  if (place.isDevice())
    synchronize(place);
  switch (kind) {
  case ArrayKind::Torch:
    return nb::module_::import_("torch").attr("from_dlpack")(array);
  case ArrayKind::Jax:
    return nb::module_::import_("jax.dlpack").attr("from_dlpack")(array);
  case ArrayKind::ArrayApi:
    return arrayNamespace.attr("from_dlpack")(array);
  default:
    // Without a library to convert to, the buffer itself is returned, which
    // supports DLPack.
    return std::move(array);
  }
}
