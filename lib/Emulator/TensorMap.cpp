//===- TensorMap.cpp - Fields of a tensor map -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkCopy.h"

#include "llvm/Support/FormatVariadic.h"

using namespace linattn;
using namespace linattn::emulator;
using Field = TensorMapField;

/// A bit for every field and dimension.
static uint32_t bitOf(Field field, unsigned dim = 0) {
  static constexpr unsigned shifts[] = {0, 1, 2, 7, 12, 16, 21, 22, 23, 24};
  return 1u << (shifts[static_cast<unsigned>(field)] + dim);
}

void TensorMapBits::set(const TensorMapReplace &replace, uint64_t value) {
  unsigned dim = replace.dim;
  known |= bitOf(replace.field, dim);
  switch (replace.field) {
  case Field::Address:
    address = value;
    return;
  case Field::Rank:
    rank = value;
    return;
  case Field::Box:
    boxes[dim] = value;
    return;
  case Field::Size:
    sizes[dim] = value;
    return;
  case Field::Stride:
    strides[std::min<size_t>(dim, strides.size() - 1)] = value;
    return;
  case Field::ElementStride:
    elementStrides[dim] = value;
    return;
  case Field::ElementType:
    elementType = value;
    return;
  case Field::Interleave:
    interleave = value;
    return;
  case Field::Swizzle:
    swizzle = value;
    return;
  case Field::Fill:
    fill = value;
    return;
  }
}

unsigned TensorMapBits::elementBytes() const {
  static constexpr unsigned bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4};
  return elementType < std::size(bytes) ? bytes[elementType] : 0;
}

uint64_t TensorMapBits::boxBytes() const {
  uint64_t bytes = elementBytes();
  for (unsigned dim = 0; dim < dims(); ++dim)
    bytes *= boxes[dim];
  return bytes;
}

uint64_t TensorMapBits::place(uint64_t base, uint64_t offset) const {
  uint64_t address = base + offset, mask = (1u << swizzle) - 1;
  return address ^ (address >> 7 & mask) << 4;
}

std::string TensorMapBits::whyNot(unsigned numCoordinates) const {
  auto isKnown = [&](Field field, unsigned dim = 0) {
    return (known & bitOf(field, dim)) != 0;
  };
  for (Field field : {Field::Address, Field::Rank, Field::ElementType,
                      Field::Interleave, Field::Swizzle, Field::Fill})
    if (!isKnown(field))
      return "has a field that was never set";
  if (numCoordinates != dims() || dims() > tensor_map::maxRank)
    return llvm::formatv("has {0} dimensions, and the copy {1} coordinates",
                         dims(), numCoordinates);
  if (interleave || fill || swizzle > tensor_map::swizzle128 || !elementBytes())
    return "has an interleave, a fill, a swizzle or elements that cannot be "
           "emulated";
  if (address % 16)
    return llvm::formatv("has address {0}, which is not a multiple of 16",
                         address);
  for (unsigned dim = 0; dim < dims(); ++dim) {
    if (!isKnown(Field::Box, dim) || !isKnown(Field::Size, dim) ||
        !isKnown(Field::ElementStride, dim) ||
        (dim && !isKnown(Field::Stride, dim - 1)))
      return llvm::formatv("has a field of dimension {0} that was never set",
                           dim);
    if (elementStrides[dim] != 1)
      return "has an element stride that cannot be emulated";
    if (boxes[dim] == 0 || boxes[dim] > tensor_map::maxBox)
      return llvm::formatv("has a box of {0} elements, not of 1 to {1}",
                           boxes[dim], unsigned(tensor_map::maxBox));
    if (sizes[dim] == 0)
      return llvm::formatv("has no elements in dimension {0}", dim);
    if (dim && (strides[dim - 1] % 16 || strides[dim - 1] >> 40))
      return llvm::formatv(
          "has a stride of {0} bytes, which is not a multiple of "
          "16 below 2^40",
          strides[dim - 1]);
  }
  uint64_t span = swizzle ? 16u << swizzle : rowBytes();
  if (rowBytes() % 16 || rowBytes() > span)
    return llvm::formatv("has rows of {0} bytes in a box, not of a multiple of "
                         "16 up to {1}",
                         rowBytes(), span);
  return {};
}

std::vector<BoxRow>
linattn::emulator::listRows(const TensorMapBits &map,
                            llvm::ArrayRef<int32_t> coordinates) {
  unsigned dims = map.dims();
  auto isIn = [&](unsigned dim, int64_t i) {
    return i >= 0 && i < static_cast<int64_t>(map.sizes[dim]);
  };
  int64_t first = std::max<int64_t>(coordinates[0], 0);
  int64_t end =
      std::min<int64_t>(int64_t(coordinates[0]) + map.boxes[0], map.sizes[0]);
  uint64_t count = map.boxBytes() / map.rowBytes();
  std::vector<BoxRow> rows(count);
  for (uint64_t number = 0; number < count; ++number) {
    BoxRow &row = rows[number];
    bool exists = first < end;
    row.source = map.address + first * map.elementBytes();
    uint64_t rest = number;
    for (unsigned dim = 1; dim < dims; ++dim) {
      int64_t i = coordinates[dim] + int64_t(rest % map.boxes[dim]);
      rest /= map.boxes[dim];
      exists &= isIn(dim, i);
      row.source += i * map.strides[dim - 1];
    }
    if (!exists)
      continue;
    row.before = (first - coordinates[0]) * map.elementBytes();
    row.bytes = (end - first) * map.elementBytes();
  }
  return rows;
}
