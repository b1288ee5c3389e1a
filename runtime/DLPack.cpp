//===- DLPack.cpp - Arrays of other libraries -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn-c/Runner.h"
#include "linattn/Support/Sizes.h"

#include <cstring>

namespace {

/// The layout of a tensor in all versions of DLPack.
struct DLTensor {
  void *data;
  int32_t deviceType, deviceId, rank;
  uint8_t code, bits;
  uint16_t lanes;
  const int64_t *shape, *strides;
  uint64_t byteOffset;
};
static_assert(sizeof(DLTensor) == 48);

constexpr int kInt = 0, kFloat = 2, kBFloat = 4, kBool = 6;

} // namespace

/// Whether a view and a tensor have the same element type. 64-bit integers may
/// be indices, and bytes truth values.
static bool isSameType(int32_t dtype, const DLTensor &tensor) {
  if (tensor.lanes != 1)
    return false;
  auto is = [&](int code, int bits) {
    return tensor.code == code && tensor.bits == bits;
  };
  switch (dtype) {
  case LINATTN_F16:
    return is(kFloat, 16);
  case LINATTN_BF16:
    return is(kBFloat, 16);
  case LINATTN_F32:
    return is(kFloat, 32);
  case LINATTN_F64:
    return is(kFloat, 64);
  case LINATTN_I1:
    return is(kBool, 8) || is(kInt, 8);
  case LINATTN_I8:
    return is(kInt, 8);
  case LINATTN_I16:
    return is(kInt, 16);
  case LINATTN_I32:
    return is(kInt, 32);
  case LINATTN_I64:
  case LINATTN_INDEX:
    return is(kInt, 64);
  default:
    return false;
  }
}

/// CUDA's device memory, host memory that it can access, and managed memory.
static bool isCuda(int32_t deviceType) {
  return deviceType == 2 || deviceType == 3 || deviceType == 13;
}

int32_t linattn_view_follow_dlpack(linattn_view *view, const void *tensor,
                                   int32_t isOnGPU) {
  DLTensor it;
  std::memcpy(&it, tensor, sizeof(it));
  if (isCuda(it.deviceType) != (isOnGPU != 0) || it.rank != view->rank ||
      !view->shape || !view->strides || !isSameType(view->dtype, it))
    return 0;
  int64_t step = 1;
  for (int32_t d = it.rank; d-- > 0;) {
    // Without strides a tensor is contiguous.
    if (it.shape[d] != view->shape[d] ||
        (it.strides ? it.strides[d] : step) != view->strides[d])
      return 0;
    step = linattn::multiplySaturating(step, it.shape[d]);
  }
  view->data = static_cast<char *>(it.data) + it.byteOffset;
  return 1;
}

int32_t linattn_view_follow_capsule(linattn_view *view, void *capsule,
                                    int32_t isOnGPU,
                                    void *(*get)(void *, const char *)) {
  const void *tensor = get(capsule, "dltensor");
  return tensor ? linattn_view_follow_dlpack(view, tensor, isOnGPU) : 0;
}
