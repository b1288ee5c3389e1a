//===- DType.h - Element types of buffers -----------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The element types that may cross the boundary between a caller and compiled
// code. Plain C++: the runtime, the .npy reader and the tools share it without
// pulling in MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_DTYPE_H
#define LINATTN_SUPPORT_DTYPE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace linattn {

/// An element type of a tensor or a scalar. Bool (i1) elements take a byte.
enum class DType : uint8_t {
  F16,
  BF16,
  F32,
  F64,
  I1,
  I8,
  I16,
  I32,
  I64,
  Index
};

/// The spelling used in MLIR types and messages, e.g. "bf16".
constexpr std::string_view getName(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  case DType::F32:
    return "f32";
  case DType::F64:
    return "f64";
  case DType::I1:
    return "i1";
  case DType::I8:
    return "i8";
  case DType::I16:
    return "i16";
  case DType::I32:
    return "i32";
  case DType::I64:
    return "i64";
  case DType::Index:
    return "index";
  }
  return "unknown";
}

/// Bytes from one element to the next in a contiguous buffer.
constexpr int64_t getByteSize(DType dtype) {
  switch (dtype) {
  case DType::I1:
  case DType::I8:
    return 1;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
    return 2;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::F64:
  case DType::I64:
  case DType::Index:
    return 8;
  }
  return 0;
}

constexpr bool isFloat(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 ||
         dtype == DType::F64;
}

/// The inverse of `getName`; nothing for an unknown name.
constexpr std::optional<DType> parseDType(std::string_view name) {
  for (DType dtype :
       {DType::F16, DType::BF16, DType::F32, DType::F64, DType::I1, DType::I8,
        DType::I16, DType::I32, DType::I64, DType::Index})
    if (getName(dtype) == name)
      return dtype;
  return std::nullopt;
}

} // namespace linattn

#endif // LINATTN_SUPPORT_DTYPE_H
