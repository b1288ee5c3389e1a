//===- Buffer.cpp - Memory that other libraries can adopt -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Buffer.h"
#include "Arrays.h"
#include "DLPack.h"
#include "linattn-c/Runner.h"
#include "linattn/Support/LargeMemory.h"

#include <algorithm>
#include <cstring>
#include <nanobind/ndarray.h>

namespace nb = nanobind;
using namespace nb::literals;
using namespace linattn;
using namespace linattn::python;

/// The size of a cache line and of the widest vector.
static constexpr size_t kAlignment = 64;

/// Freed when the device is idle, since kernels in flight may still read the
/// memory.
static std::shared_ptr<void> allocateOnDevice(size_t bytes) {
  void *pointer = nullptr;
  if (linattn_error *error = linattn_device_allocate(bytes, &pointer)) {
    std::string message = linattn_error_message(error);
    bool lacksMemory =
        linattn_error_get_kind(error) == LINATTN_ERROR_OUT_OF_MEMORY;
    linattn_error_free(error);
    if (lacksMemory)
      throwMemoryError(message);
    throw nb::value_error(message.c_str());
  }
  return std::shared_ptr<void>(pointer, [](void *memory) {
    linattn_error_free(linattn_device_free(memory));
  });
}

size_t linattn::python::checkByteCount(DType dtype,
                                       llvm::ArrayRef<int64_t> shape) {
  std::optional<int64_t> bytes = getByteCount(getByteSize(dtype), shape);
  if (!bytes)
    throw nb::value_error(
        ("result: " +
         describeTooLarge(getByteSize(dtype), formatPythonShape(shape)))
            .c_str());
  return static_cast<size_t>(*bytes);
}

void linattn::python::throwMemoryError(const std::string &message) {
  PyErr_SetString(PyExc_MemoryError, message.c_str());
  throw nb::python_error();
}

Buffer::Buffer(DType dtype, llvm::ArrayRef<int64_t> shape, int32_t device)
    : dtype(dtype), shape(shape.begin(), shape.end()), device(device) {
  size_t bytes = checkByteCount(dtype, shape);
  // Rounding up stays within size_t, which has a bit more.
  bytes = std::max(kAlignment, (bytes + kAlignment - 1) & ~(kAlignment - 1));
  if (device != Place::kCPU) {
    memory = allocateOnDevice(bytes);
    return;
  }
  void *pointer = allocateLarge(bytes);
  if (!pointer)
    throwMemoryError("expected memory for a result of shape " +
                     formatPythonShape(shape) + ", " + std::to_string(bytes) +
                     " bytes, but the system gave none");
  memory = std::shared_ptr<void>(
      pointer, [bytes](void *given) { freeLarge(given, bytes); });
}

namespace {

/// The target of a capsule, with the arrays that the tensor refers to.
template <typename Managed>
struct Export {
  Managed managed = {};
  llvm::SmallVector<int64_t, 4> shape, strides;
  std::shared_ptr<void> memory;
};

dlpack::DataType getDataType(DType dtype) {
  auto bits = static_cast<uint8_t>(8 * getByteSize(dtype));
  if (dtype == DType::I1)
    return {dlpack::kCodeBool, 8, 1};
  if (dtype == DType::BF16)
    return {dlpack::kCodeBFloat, bits, 1};
  return {isFloat(dtype) ? dlpack::kCodeFloat : dlpack::kCodeInt, bits, 1};
}

/// Frees a tensor that no library has taken. A library that takes it renames
/// the capsule.
void releaseCapsule(PyObject *capsule) {
  if (!PyCapsule_IsValid(capsule, dlpack::kName))
    return;
  auto *managed = static_cast<dlpack::ManagedTensor *>(
      PyCapsule_GetPointer(capsule, dlpack::kName));
  managed->deleter(managed);
}

} // namespace

std::pair<int32_t, int32_t> Buffer::getDevice() const {
  if (device == Place::kCPU)
    return {dlpack::kDeviceCPU, 0};
  return {dlpack::kDeviceCUDA, device};
}

template <typename Managed>
std::unique_ptr<Managed, void (*)(Managed *)> Buffer::makeManaged() const {
  auto *exported = new Export<Managed>;
  exported->shape = shape;
  exported->strides = view().strides;
  exported->memory = memory;
  Managed &managed = exported->managed;
  managed.tensor = {memory.get(),
                    {getDevice().first, getDevice().second},
                    static_cast<int32_t>(shape.size()),
                    getDataType(dtype),
                    exported->shape.data(),
                    exported->strides.data(),
                    /*byteOffset=*/0};
  managed.context = exported;
  managed.deleter = [](Managed *self) {
    delete static_cast<Export<Managed> *>(self->context);
  };
  return {&managed, managed.deleter};
}

nb::object Buffer::makeCapsule() const {
  auto managed = makeManaged<dlpack::ManagedTensor>();
  PyObject *capsule =
      PyCapsule_New(managed.get(), dlpack::kName, releaseCapsule);
  if (!capsule)
    throw nb::python_error();
  (void)managed.release();
  return nb::steal(capsule);
}

dlpack::ManagedTensorVersioned *Buffer::makeTensor() const {
  auto managed = makeManaged<dlpack::ManagedTensorVersioned>();
  managed->version = {1, 0};
  return managed.release();
}

nb::object linattn::python::makeBytes(size_t bytes, bool clear) {
  auto buffer = std::make_unique<Buffer>(
      DType::I8, llvm::ArrayRef<int64_t>(static_cast<int64_t>(bytes)));
  void *memory = buffer->view().data;
  if (clear)
    std::memset(memory, 0, bytes);
  nb::capsule owner(buffer.get(), [](void *given) noexcept {
    delete static_cast<Buffer *>(given);
  });
  (void)buffer.release();
  return nb::cast(
      nb::ndarray<nb::numpy, uint8_t>(memory, 1, &bytes, std::move(owner)));
}

void linattn::python::registerBuffer(nb::module_ &module) {
  module.def(
      "zeros", [](size_t bytes) { return makeBytes(bytes, true); }, "bytes"_a,
      "Bytes of a NumPy array, all 0, that begin with a cache line, and "
      "from 2 MiB on with a huge page where the system has them.");
  module.def(
      "memory", [](size_t bytes) { return makeBytes(bytes, false); }, "bytes"_a,
      "The same with unspecified contents.");
  nb::class_<Buffer>(module, "Buffer",
                     "A contiguous result that any DLPack library can adopt.")
      .def("__dlpack__",
           [](const Buffer &self, nb::kwargs) { return self.makeCapsule(); })
      .def("__dlpack_device__", [](const Buffer &self) {
        return nb::make_tuple(self.getDevice().first, self.getDevice().second);
      });
}
