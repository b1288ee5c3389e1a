//===- Arrays.cpp - Arrays of other libraries as views --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three ways in: the buffer protocol, which NumPy answers in some hundred
// nanoseconds, DLPack for everybody else, and `__cuda_array_interface__` for
// arrays of a GPU without it. All are borrowed for the time of a call.
//
//===----------------------------------------------------------------------===//

#include "Arrays.h"
#include "Buffer.h"
#include "DLPack.h"
#include "Errors.h"
#include "Libraries.h"
#include "Tuples.h"

#include <cstring>

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

[[noreturn]] static void throwDispatched(const char *name,
                                         const std::string &what,
                                         ArrayKind library = ArrayKind::Torch) {
  throw DispatchedTensor(std::string(name) +
                             ": expected a dense array of numbers in memory, "
                             "but got " +
                             what,
                         library);
}

[[noreturn]] static void throwUnsupported(const char *name,
                                          const std::string &dtype) {
  throwTypeError(std::string(name) +
                 ": expected elements of type float16, bfloat16, float32, "
                 "float64, bool, int32 or int64, but got " +
                 dtype);
}

namespace {

std::optional<DType> parseFormat(const char *format, Py_ssize_t itemSize) {
  if (!format)
    return std::nullopt;
  if (*format == '@' || *format == '=' || *format == '<')
    ++format;
  if (*format == '\0' || format[1] != '\0')
    return std::nullopt;
  switch (*format) {
  case 'e':
    return DType::F16;
  case 'f':
    return DType::F32;
  case 'd':
    return DType::F64;
  case '?':
    return DType::I1;
  case 'b':
    return DType::I8;
  case 'h':
    return DType::I16;
  case 'i':
  case 'l':
  case 'q':
    return itemSize == 4 ? DType::I32 : DType::I64;
  default:
    return std::nullopt;
  }
}

std::optional<DType> parseDataType(dlpack::DataType type) {
  if (type.lanes != 1)
    return std::nullopt;
  switch (type.code) {
  case dlpack::kCodeFloat:
    return type.bits == 16   ? std::optional(DType::F16)
           : type.bits == 32 ? std::optional(DType::F32)
           : type.bits == 64 ? std::optional(DType::F64)
                             : std::nullopt;
  case dlpack::kCodeBFloat:
    return type.bits == 16 ? std::optional(DType::BF16) : std::nullopt;
  case dlpack::kCodeBool:
    return type.bits == 8 ? std::optional(DType::I1) : std::nullopt;
  case dlpack::kCodeInt:
    return type.bits == 8    ? std::optional(DType::I8)
           : type.bits == 16 ? std::optional(DType::I16)
           : type.bits == 32 ? std::optional(DType::I32)
           : type.bits == 64 ? std::optional(DType::I64)
                             : std::nullopt;
  default:
    return std::nullopt;
  }
}

void checkAlignment(const BufferView &view, const char *name) {
  // A power of 2.
  uintptr_t odd = getByteSize(view.dtype) - 1;
  if ((reinterpret_cast<uintptr_t>(view.data) & odd) != 0 &&
      view.getNumElements() != 0)
    throwValueError(std::string(name) + ": expected memory aligned to " +
                    std::to_string(getByteSize(view.dtype)) +
                    " bytes, but got a misaligned array");
}

} // namespace

//===----------------------------------------------------------------------===//
// ImportedArray
//===----------------------------------------------------------------------===//

ImportedArray::~ImportedArray() {
  if (hasBuffer)
    PyBuffer_Release(&buffer);
}

void ImportedArray::import(nb::handle object, const char *name, Place &place) {
  Libraries &libraries = getLibraries();
  TypeInfo info = classify(object, name);
  kind = info.kind;
  // A tensor subclass may mean more than the elements in its memory.
  if (info.isTensorSubclass)
    throwDispatched(name, "a " + describeType(object));
  if (info.isTracer)
    throwDispatched(name, "a " + describeType(object) + " of JAX",
                    ArrayKind::Jax);
  if (info.api && borrow(object, info.api, name, place)) {
    // The view is complete.
  } else if (kind == ArrayKind::NumPy ||
             (PyObject_CheckBuffer(object.ptr()) &&
              !nb::hasattr(object, libraries.dlpackName))) {
    meet(place, Place::kCPU, object, kind, name);
    importBuffer(object, name);
  } else if (!nb::hasattr(object, libraries.dlpackName) &&
             nb::hasattr(object, libraries.cudaName)) {
    importCudaInterface(object, name, place);
  } else {
    importDLPack(object, name, place);
  }
  checkAlignment(view, name);
}

/// The dtype of a NumPy array, for messages.
static std::string describeDType(nb::handle object) {
  if (!nb::hasattr(object, "dtype"))
    return "elements of " + describeType(object);
  nb::object dtype = object.attr("dtype");
  return nb::str(nb::handle(dtype)).c_str();
}

void ImportedArray::importBuffer(nb::handle object, const char *name) {
  Libraries &libraries = getLibraries();
  bool isBFloat16 = false;
  if (kind == ArrayKind::NumPy && libraries.bfloat16.is_valid())
    isBFloat16 = object.attr(libraries.dtypeName).is(libraries.bfloat16);
  // The buffer protocol has no format letter for bfloat16.
  auto viewAsBits = [&] {
    owner = object.attr(libraries.viewName)(libraries.uint16);
    isBFloat16 = true;
    return PyObject_GetBuffer(owner.ptr(), &buffer, PyBUF_RECORDS_RO) == 0;
  };
  if (isBFloat16) {
    hasBuffer = viewAsBits();
  } else {
    hasBuffer =
        PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_RECORDS_RO) == 0;
    if (!hasBuffer) {
      PyErr_Clear();
      std::string dtype = describeDType(object);
      if (kind != ArrayKind::NumPy || dtype != "bfloat16")
        throwUnsupported(name, dtype);
      libraries.bfloat16 = object.attr("dtype");
      hasBuffer = viewAsBits();
    }
  }
  if (!hasBuffer)
    throw nb::python_error();
  std::optional<DType> dtype =
      isBFloat16 ? std::optional(DType::BF16)
                 : parseFormat(buffer.format, buffer.itemsize);
  if (!dtype)
    throwUnsupported(name, describeDType(object));
  view.dtype = *dtype;
  view.data = buffer.buf;
  view.readOnly = buffer.readonly;
  view.shape.assign(buffer.shape, buffer.shape + buffer.ndim);
  view.strides.resize(buffer.ndim);
  for (int i = 0; i < buffer.ndim; ++i) {
    if (buffer.strides[i] % buffer.itemsize != 0 && buffer.shape[i] > 1)
      throwValueError(std::string(name) +
                      ": expected strides that are whole elements, but got " +
                      std::to_string(buffer.strides[i]) + " bytes");
    view.strides[i] = buffer.strides[i] / buffer.itemsize;
  }
}

/// The tensor in a capsule, and whether it is read-only.
static std::pair<const dlpack::Tensor *, bool> openCapsule(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kVersionedName)) {
    auto *managed = static_cast<dlpack::ManagedTensorVersioned *>(
        PyCapsule_GetPointer(capsule.ptr(), dlpack::kVersionedName));
    if (managed->version.major == 1)
      return {&managed->tensor, managed->flags & dlpack::kFlagReadOnly};
    return {nullptr, false};
  }
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kName)) {
    auto *managed = static_cast<dlpack::ManagedTensor *>(
        PyCapsule_GetPointer(capsule.ptr(), dlpack::kName));
    return {&managed->tensor, false};
  }
  return {nullptr, false};
}

/// Requests DLPack 1.0, which has read-only arrays, and accepts older versions.
/// On a GPU, the producer orders its work before that of the call's stream.
static nb::object getCapsule(nb::handle object, const Place &place) {
  Libraries &libraries = getLibraries();
  nb::object method = object.attr(libraries.dlpackName);
  int64_t stream = place.getStreamNumber();
  try {
    if (place.isDevice())
      return method(nb::arg("stream") = stream,
                    nb::arg("max_version") = libraries.maxVersion);
    return method(nb::arg("max_version") = libraries.maxVersion);
  } catch (nb::python_error &error) {
    if (!error.matches(PyExc_TypeError))
      throw;
  }
  return place.isDevice() ? method(nb::arg("stream") = stream) : method();
}

/// The number of a GPU, or the CPU.
static int32_t findDevice(nb::handle object, const char *name) {
  nb::object device = object.attr(getLibraries().dlpackDeviceName)();
  int32_t type = nb::cast<int32_t>(nb::int_(device[0]));
  if (type == dlpack::kDeviceCUDA || type == dlpack::kDeviceCUDAManaged)
    return nb::cast<int32_t>(nb::int_(device[1]));
  if (type != dlpack::kDeviceCPU && type != dlpack::kDeviceCUDAHost)
    throwValueError(std::string(name) +
                    ": expected an array in the memory of the CPU or of a GPU "
                    "of NVIDIA, but got one on DLPack device type " +
                    std::to_string(type));
  return Place::kCPU;
}

/// A CUDA array, by version 3 of its interface.
void ImportedArray::importCudaInterface(nb::handle object, const char *name,
                                        Place &place) {
  nb::object interface = object.attr(getLibraries().cudaName);
  std::string type = nb::cast<std::string>(interface["typestr"]);
  // "<f4" is a byte order, a kind and a number of bytes; bfloat16 has no such
  // name.
  int size = type.size() == 3 && type[0] != '>' ? type[2] - '0' : 0;
  char format = type.size() != 3 ? '?'
                : type[1] == 'f' ? (size == 2   ? 'e'
                                    : size == 4 ? 'f'
                                                : 'd')
                : type[1] == 'i' ? (size == 1   ? 'b'
                                    : size == 2 ? 'h'
                                                : 'q')
                : type[1] == 'b' ? '?'
                                 : 'x';
  char text[2] = {format, '\0'};
  std::optional<DType> dtype = parseFormat(text, size);
  if (!dtype || getByteSize(*dtype) != size)
    throwUnsupported(name, type);
  // This interface does not name the device.
  meet(place, place.isDevice() ? place.device : 0, object, kind, name);
  view.dtype = *dtype;
  nb::object data = interface["data"];
  view.data = reinterpret_cast<void *>(nb::cast<uintptr_t>(data[0]));
  view.readOnly = nb::cast<bool>(data[1]);
  nb::object shape = interface["shape"], strides = nb::none();
  if (nb::cast<bool>(interface.attr("__contains__")("strides")))
    strides = interface["strides"];
  size_t rank = nb::len(shape);
  view.shape.resize(rank);
  view.strides.resize(rank);
  int64_t contiguous = 1;
  for (size_t i = rank; i-- > 0;) {
    view.shape[i] = nb::cast<int64_t>(shape[i]);
    view.strides[i] =
        strides.is_none() ? contiguous : nb::cast<int64_t>(strides[i]) / size;
    contiguous = multiplyWrapping(contiguous, view.shape[i]);
  }
  owner = nb::borrow(object);
}

/// Refuses a tensor that requires a gradient, since the result would not have
/// one.
static void checkGradient(nb::handle object, const char *name) {
  if (!nb::cast<bool>(object.attr(getLibraries().gradientName)))
    return;
  throw DispatchedTensor(
      std::string(name) +
      ": expected a tensor that requires no gradient, since none is recorded "
      "here; pass " +
      name + ".detach()");
}

/// Refuses a tensor of PyTorch with a lazy negation, such as the imaginary part
/// of a conjugate. PyTorch would export its memory without the negation.
static void checkSigns(nb::handle object, ArrayKind kind, const char *name) {
  if (kind != ArrayKind::Torch)
    return;
  PyObject *isNeg = PyObject_CallMethodObjArgs(
      object.ptr(), getLibraries().isNegName.ptr(), nullptr);
  if (!isNeg)
    PyErr_Clear(); // Not one of PyTorch's own, or nested: the export will
                   // refuse it.
  bool isNegative = isNeg == Py_True;
  Py_XDECREF(isNeg);
  if (isNegative)
    throwValueError(std::string(name) +
                    ": expected a tensor without the negative bit, but got a "
                    "view that negates its memory; pass " +
                    name + ".resolve_neg()");
}

/// Turns a producer's refusal to export an array into an error that names it.
static void explainRefusal(nb::python_error &error, nb::handle object,
                           const char *name) {
  for (PyObject *type :
       {PyExc_BufferError, PyExc_RuntimeError, PyExc_ValueError})
    if (error.matches(type)) {
      nb::object describe =
          nb::module_::import_("linattn._core._arrays").attr("describe_odd");
      nb::object words = describe(object);
      nb::object value = nb::borrow(error.value());
      if (words.is_none())
        throwDispatched(name, "one that cannot be exported: " +
                                  std::string(nb::str(value).c_str()));
      std::string what = nb::cast<std::string>(words);
      throwValueError(
          std::string(name) +
          ": expected a dense array of numbers in memory, but got " + what);
    }
}

/// A DLPack tensor as a view.
static void fillView(const dlpack::Tensor &tensor, const char *name,
                     BufferView &view) {
  std::optional<DType> dtype = parseDataType(tensor.dtype);
  if (!dtype)
    throwUnsupported(name,
                     (tensor.dtype.code == dlpack::kCodeComplex
                          ? "complex numbers of "
                          : "DLPack type code " +
                                std::to_string(tensor.dtype.code) + " with ") +
                         std::to_string(tensor.dtype.bits) + " bits");
  view.dtype = *dtype;
  view.data = static_cast<char *>(tensor.data) + tensor.byteOffset;
  view.shape.assign(tensor.shape, tensor.shape + tensor.rank);
  view.strides.resize(tensor.rank);
  int64_t contiguous = 1;
  for (int32_t i = tensor.rank; i-- > 0;) {
    view.strides[i] = tensor.strides ? tensor.strides[i] : contiguous;
    contiguous = multiplyWrapping(contiguous, tensor.shape[i]);
  }
}

void ImportedArray::importDLPack(nb::handle object, const char *name,
                                 Place &place) {
  if (!nb::hasattr(object, getLibraries().dlpackName))
    throwTypeError(std::string(name) +
                   ": expected an array (an object with __dlpack__), but got " +
                   describeType(object));
  if (kind == ArrayKind::Torch &&
      nb::hasattr(object, getLibraries().gradientName))
    checkGradient(object, name);
  checkSigns(object, kind, name);
  try {
    int32_t device = nb::hasattr(object, getLibraries().dlpackDeviceName)
                         ? findDevice(object, name)
                         : Place::kCPU;
    meet(place, device, object, kind, name);
    owner = getCapsule(object, place);
  } catch (nb::python_error &error) {
    explainRefusal(error, object, name);
    throw;
  }
  auto [tensor, readOnly] = openCapsule(owner);
  if (!tensor)
    throwTypeError(std::string(name) +
                   ": expected a DLPack capsule of version 0 or 1 from " +
                   describeType(object));
  fillView(*tensor, name, view);
  view.readOnly = readOnly;
}

bool ImportedArray::borrow(nb::handle object, const dlpack::ExchangeAPI *api,
                           const char *name, Place &place) {
  checkGradient(object, name);
  checkSigns(object, kind, name);
  dlpack::Tensor tensor;
  if (api->borrow(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return false;
  }
  // Work on a GPU must be ordered with the call.
  if (tensor.device.type != dlpack::kDeviceCPU)
    return false;
  meet(place, Place::kCPU, object, kind, name);
  fillView(tensor, name, view);
  if (!view.data && view.getNumElements() != 0)
    throwDispatched(name, "a tensor without memory");
  return true;
}
