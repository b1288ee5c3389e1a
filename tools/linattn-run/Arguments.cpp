//===- Arguments.cpp - Inputs from the command line -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "linattn/Support/Elements.h"
#include "linattn/Support/LargeMemory.h"
#include "linattn/Support/Sizes.h"

using namespace linattn;

/// An array of zeros, row-major.
static llvm::Expected<NpyArray> makeArray(DType dtype,
                                          llvm::ArrayRef<int64_t> shape) {
  std::optional<int64_t> size = getByteCount(getByteSize(dtype), shape);
  if (!size)
    return llvm::createStringError(
        describeTooLarge(getByteSize(dtype), formatShape(shape)));
  if (!canAllocate(*size))
    return llvm::createStringError(
        "expected an array that fits into memory, but got shape " +
        formatShape(shape) + ", " + llvm::Twine(*size) + " bytes");
  NpyArray array;
  array.dtype = dtype;
  array.shape.assign(shape.begin(), shape.end());
  array.strides =
      BufferView(static_cast<void *>(nullptr), dtype, shape).strides;
  array.data.resize(*size);
  return array;
}

static int64_t getElementCount(const NpyArray &array) {
  return static_cast<int64_t>(array.data.size()) / getByteSize(array.dtype);
}

llvm::Expected<NpyArray> linattn::parseArrayType(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, 'x');
  // "index" contains the separator.
  if (parts.size() >= 2 && parts.back().empty() &&
      parts[parts.size() - 2] == "inde") {
    parts.pop_back();
    parts.back() = "index";
  }
  std::optional<DType> dtype = parseDType(parts.pop_back_val());
  if (!dtype)
    return llvm::createStringError(
        "expected a type such as 2x128x4x64xf32, but got '" + text + "'");
  llvm::SmallVector<int64_t> shape;
  for (llvm::StringRef part : parts) {
    int64_t extent;
    if (part.getAsInteger(10, extent) || extent < 0)
      return llvm::createStringError("expected an extent, but got '" + part +
                                     "' in '" + text + "'");
    shape.push_back(extent);
  }
  return makeArray(*dtype, shape);
}

static llvm::Expected<NpyArray> makeInput(llvm::StringRef specification,
                                          size_t index) {
  auto [kind, rest] = specification.split(':');
  if (kind != "random" && kind != "zeros" && kind != "ones")
    return readNpy(specification);
  auto [type, seedText] = rest.split(':');
  llvm::Expected<NpyArray> array = parseArrayType(type);
  if (!array)
    return array;
  uint64_t seed = 0;
  if (!seedText.empty() &&
      (kind != "random" || seedText.getAsInteger(10, seed)))
    return llvm::createStringError("expected a seed, but got '" + seedText +
                                   "' in '" + specification + "'");
  if (kind == "random")
    fillRandom(array->dtype, array->data.data(), getElementCount(*array), seed,
               index);
  if (kind == "ones")
    for (int64_t i = 0, e = getElementCount(*array); i < e; ++i)
      storeElement(array->dtype, array->data.data(), i, 1);
  return array;
}

/// Significant bits of a float type.
static unsigned getPrecision(DType dtype) {
  switch (dtype) {
  case DType::BF16:
    return 8;
  case DType::F16:
    return 11;
  case DType::F32:
    return 24;
  default:
    return 53;
  }
}

static void fillRandomElements(const PrimeField &field, NpyArray &array,
                               uint64_t seed, size_t stream) {
  auto *elements = reinterpret_cast<PrimeField::Element *>(array.data.data());
  for (int64_t i = 0, e = getElementCount(array); i < e; ++i)
    elements[i] = field.makeRandom(seed, stream, i);
}

/// The field elements of an array of floats.
static llvm::Expected<NpyArray> makeElements(const PrimeField &field,
                                             const NpyArray &floats,
                                             llvm::StringRef specification,
                                             size_t index) {
  if (!isFloat(floats.dtype))
    return llvm::createStringError("expected floats, but got '" +
                                   specification + "'");
  llvm::Expected<NpyArray> array = makeArray(DType::I64, floats.shape);
  if (!array)
    return array;
  if (specification.starts_with("random:")) {
    uint64_t seed = 0;
    // The text has been checked to be a number.
    specification.rsplit(':').second.getAsInteger(10, seed);
    fillRandomElements(field, *array, seed, index);
    return array;
  }
  auto *elements = reinterpret_cast<PrimeField::Element *>(array->data.data());
  for (int64_t i = 0, e = getElementCount(*array); i < e; ++i)
    elements[i] = field.embed(loadElement(floats.dtype, floats.data.data(), i),
                              getPrecision(floats.dtype));
  return array;
}

llvm::Expected<std::vector<NpyArray>>
linattn::makeInputs(const Signature &signature,
                    llvm::ArrayRef<std::string> specifications,
                    int64_t openSize, const PrimeField *field) {
  size_t expected = signature.arguments.size();
  if (specifications.size() > expected)
    return llvm::createStringError(
        "'" + signature.entry + "': expected at most " + llvm::Twine(expected) +
        " --arg, but got " + llvm::Twine(specifications.size()));
  std::vector<NpyArray> inputs;
  for (size_t i = 0; i < expected; ++i) {
    const ValueInfo &info = signature.arguments[i];
    if (i < specifications.size()) {
      llvm::Expected<NpyArray> input = makeInput(specifications[i], i);
      if (!input)
        return input.takeError();
      if (field && info.isElement) {
        input = makeElements(*field, *input, specifications[i], i);
        if (!input)
          return input.takeError();
      }
      // Files have neither bf16 nor index.
      bool wide = info.dtype == DType::Index && input->dtype == DType::I64;
      if (wide)
        input->dtype = info.dtype;
      inputs.push_back(std::move(*input));
      continue;
    }
    if (!info.hasStaticShape() && openSize < 0)
      return llvm::createStringError(signature.describeArgument(i) +
                                     ": expected --arg, "
                                     "since its type " +
                                     info.getTypeString() +
                                     " leaves the shape open");
    llvm::SmallVector<int64_t> shape(info.shape.begin(), info.shape.end());
    llvm::replace(shape, kDynamicExtent, openSize);
    llvm::Expected<NpyArray> input = makeArray(info.dtype, shape);
    if (!input)
      return input.takeError();
    if (field && info.isElement)
      fillRandomElements(*field, *input, /*seed=*/0, i);
    else
      fillRandom(info.dtype, input->data.data(), getElementCount(*input), 0, i);
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

llvm::SmallVector<BufferView> linattn::getViews(std::vector<NpyArray> &arrays) {
  llvm::SmallVector<BufferView> views;
  for (NpyArray &array : arrays)
    views.emplace_back(array.data.data(), array.dtype, array.shape,
                       array.strides);
  return views;
}
