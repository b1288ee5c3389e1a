//===- DLPack.h - The structs of the DLPack exchange ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The memory layout of https://dmlc.github.io/dlpack, which is a stable ABI:
// both the original managed tensor and the versioned one of DLPack 1.0.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_DLPACK_H
#define LINATTN_PYTHON_DLPACK_H

#include <cstdint>

namespace linattn::python::dlpack {

inline constexpr int32_t kDeviceCPU = 1;
inline constexpr int32_t kDeviceCUDA = 2;
inline constexpr int32_t kDeviceCUDAHost = 3;
inline constexpr int32_t kDeviceCUDAManaged = 13;

inline constexpr uint8_t kCodeInt = 0;
inline constexpr uint8_t kCodeFloat = 2;
inline constexpr uint8_t kCodeBFloat = 4;
inline constexpr uint8_t kCodeComplex = 5;
inline constexpr uint8_t kCodeBool = 6;

inline constexpr uint64_t kFlagReadOnly = 1;

inline constexpr const char *kName = "dltensor";
inline constexpr const char *kVersionedName = "dltensor_versioned";

struct Device {
  int32_t type;
  int32_t id;
};

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void *data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t *shape;
  /// In elements; null for a contiguous row-major tensor.
  int64_t *strides;
  uint64_t byteOffset;
};

struct ManagedTensor {
  Tensor tensor;
  void *context;
  void (*deleter)(ManagedTensor *self);
};

struct Version {
  uint32_t major;
  uint32_t minor;
};

struct ManagedTensorVersioned {
  Version version;
  void *context;
  void (*deleter)(ManagedTensorVersioned *self);
  uint64_t flags;
  Tensor tensor;
};

/// The functions that a tensor type offers as `__dlpack_c_exchange_api__`: the
/// same exchange without calls of Python. They do not throw; -1 is a Python
/// error.
struct ExchangeAPI {
  Version version;
  ExchangeAPI *previous;
  int (*allocate)(Tensor *prototype, ManagedTensorVersioned **result,
                  void *context,
                  void (*setError)(void *context, const char *kind,
                                   const char *message));
  int (*fromObject)(void *object, ManagedTensorVersioned **result);
  /// Takes ownership of the tensor.
  int (*toObject)(ManagedTensorVersioned *tensor, void **result);
  /// Borrows from the tensor for as long as it is alive and unchanged; may be
  /// null.
  int (*borrow)(void *object, Tensor *result);
  int (*getStream)(int32_t deviceType, int32_t device, void **result);
};

inline constexpr const char *kExchangeName = "dlpack_exchange_api";

} // namespace linattn::python::dlpack

#endif // LINATTN_PYTHON_DLPACK_H
