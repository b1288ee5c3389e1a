//===- Sizes.h - Products of sizes that do not overflow ---------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Extents come from callers, and an expanded array costs no memory: their
// products are numbers of bytes only after a check. Plain C++, since the runner
// has no LLVM.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_SUPPORT_SIZES_H
#define LINATTN_SUPPORT_SIZES_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace linattn {

/// The largest number of bytes between two addresses of an array.
inline constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max();

/// The product, or `kMostBytes` where it is larger; neither may be negative.
inline int64_t multiplySaturating(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? kMostBytes : product;
}

/// The low 64 bits of the product, where overflow is checked elsewhere.
inline int64_t multiplyWrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) *
                              static_cast<uint64_t>(b));
}

/// Numbers in a row, for the functions below.
template <typename T>
struct Range {
  T *first, *last;

  T *begin() const { return first; }
  T *end() const { return last; }
};

/// The number of elements, saturating at `kMostBytes`. Extents must not be
/// negative.
template <typename Shape>
int64_t countElements(const Shape &shape) {
  int64_t count = 1;
  bool isEmpty = false;
  for (int64_t extent : shape) {
    count = multiplySaturating(count, extent);
    isEmpty |= extent == 0;
  }
  return isEmpty ? 0 : count;
}

/// The bytes of a contiguous array; none where they exceed `kMostBytes`.
/// Extents of 0 count as 1 there, so that strides and parts of the product fit
/// as well.
template <typename Shape>
std::optional<int64_t> getByteCount(int64_t elementBytes, const Shape &shape) {
  int64_t bytes = elementBytes;
  bool isEmpty = false;
  for (int64_t extent : shape) {
    isEmpty |= extent == 0;
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes))
      return std::nullopt;
  }
  return isEmpty ? 0 : bytes;
}

/// Whether the distance of any two elements of a strided array, and the end of
/// the last one, can be counted in bytes.
template <typename Shape, typename Strides>
bool hasByteExtent(int64_t elementBytes, const Shape &shape,
                   const Strides &strides) {
  int64_t total = elementBytes;
  auto stride = strides.begin();
  for (int64_t extent : shape) {
    int64_t step = *stride++, reach;
    if (extent <= 1)
      continue;
    if (__builtin_mul_overflow(step, extent - 1, &reach) ||
        __builtin_mul_overflow(reach, elementBytes, &reach) ||
        reach == std::numeric_limits<int64_t>::min() ||
        __builtin_add_overflow(total, reach < 0 ? -reach : reach, &total))
      return false;
  }
  return true;
}

/// Whether the number of elements of a strided array and the distance between
/// any two of them can be addressed. Every call checks every operand, so arrays
/// far below the limits, nearly all of them, take no product.
template <typename Shape, typename Strides>
bool fitsAddresses(int64_t elementBytes, const Shape &shape,
                   const Strides &strides) {
  constexpr uint64_t smallExtent = uint64_t(1) << 15, smallStride = uint64_t(1)
                                                                    << 40;
  uint64_t extentBits = 0, strideBits = 0;
  int64_t rank = 0;
  auto stride = strides.begin();
  for (int64_t extent : shape) {
    int64_t step = *stride++;
    extentBits |= static_cast<uint64_t>(extent);
    strideBits |= static_cast<uint64_t>(step < 0 ? ~step : step);
    ++rank;
  }
  // Four such extents and a width of 8 bytes make less than 2^63.
  if (rank <= 4 && elementBytes <= 8 && extentBits < smallExtent &&
      strideBits < smallStride)
    return true;
  return getByteCount(elementBytes, shape) &&
         hasByteExtent(elementBytes, shape, strides);
}

/// "expected an array of at most … bytes, but got elements of 4 bytes in shape
/// 2x2147483648".
inline std::string describeTooLarge(int64_t elementBytes,
                                    const std::string &shape) {
  return "expected an array of at most " + std::to_string(kMostBytes) +
         " bytes, but got shape " + shape + " with elements of " +
         std::to_string(elementBytes) +
         (elementBytes == 1 ? " byte" : " bytes");
}

/// The message for compiled code that could not allocate this number of bytes.
/// All ones stand for more than 64 bits.
inline std::string describeMissingMemory(uint64_t bytes) {
  return "expected memory for a workspace of " +
         (bytes == std::numeric_limits<uint64_t>::max()
              ? "more than " + std::to_string(kMostBytes)
              : std::to_string(bytes)) +
         " bytes, but the system gave none";
}

} // namespace linattn

#endif // LINATTN_SUPPORT_SIZES_H
