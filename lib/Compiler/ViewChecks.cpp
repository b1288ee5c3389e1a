//===- ViewChecks.cpp - Check a call's buffers ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ViewChecks.h"
#include "linattn/Support/Overlap.h"
#include "llvm/ADT/STLExtras.h"

using namespace linattn;
using namespace linattn::detail;

static StridedMemory getMemory(const BufferView &view) {
  return {view.data, getByteSize(view.dtype), view.getRank(), view.shape.data(),
          view.strides.data()};
}

bool linattn::detail::mayOverlap(const BufferView &a, const BufferView &b) {
  return linattn::mayOverlap(getMemory(a), getMemory(b));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static bool matches(llvm::ArrayRef<int64_t> expected,
                    llvm::ArrayRef<int64_t> actual) {
  return llvm::equal(expected, actual, [](int64_t size, int64_t got) {
    return size == kDynamicExtent ? got >= 0 : size == got;
  });
}

/// Names a view. Only errors evaluate it.
using Describe = llvm::function_ref<std::string()>;

/// The shape of a view that does not fit memory, with the strides if these are
/// the reason.
static std::string formatTooLarge(const BufferView &view) {
  std::string text = formatShape(view.shape);
  bool hasBytes = getByteCount(getByteSize(view.dtype), view.shape).has_value();
  for (size_t i = 0; hasBytes && i < view.strides.size(); ++i)
    text += (i ? ", " : " and strides ") + std::to_string(view.strides[i]);
  return text;
}

/// The checks that inputs and outputs share.
static llvm::Error checkView(Describe what, DType dtype,
                             llvm::ArrayRef<int64_t> shape,
                             const BufferView &view) {
  if (view.dtype != dtype)
    return llvm::createStringError(what() + ": expected elements of type " +
                                   std::string(getName(dtype)) + ", but got " +
                                   std::string(getName(view.dtype)));
  if (view.shape.size() != shape.size() || !matches(shape, view.shape))
    return llvm::createStringError(what() + ": expected shape " +
                                   formatShape(shape) + ", but got " +
                                   formatShape(view.shape));
  if (view.strides.size() != view.shape.size())
    return llvm::createStringError(
        what() + ": expected " + llvm::Twine(view.shape.size()) +
        " strides, but got " + llvm::Twine(view.strides.size()));
  if (!view.fitsMemory())
    return llvm::createStringError(
        what() + ": " +
        describeTooLarge(getByteSize(dtype), formatTooLarge(view)));
  if (llvm::is_contained(view.shape, 0))
    return llvm::Error::success();
  if (!view.data)
    return llvm::createStringError(what() + ": expected a buffer of shape " +
                                   formatShape(view.shape) +
                                   ", but got a null pointer");
  if (reinterpret_cast<uintptr_t>(view.data) % getByteSize(dtype) != 0)
    return llvm::createStringError(what() + ": expected a pointer aligned to " +
                                   llvm::Twine(getByteSize(dtype)) + " bytes");
  return llvm::Error::success();
}

/// Compiled code may test the lowest bit of a mask's byte or all of them, so
/// that values other than 0 and 1 are refused.
static bool hasOnlyZerosAndOnes(const BufferView &view, size_t dim,
                                const uint8_t *data) {
  if (dim == view.shape.size())
    return *data <= 1;
  for (int64_t i = 0; i < view.shape[dim]; ++i)
    if (!hasOnlyZerosAndOnes(view, dim + 1, data + i * view.strides[dim]))
      return false;
  return true;
}

llvm::Error linattn::detail::checkInputs(const Signature &signature,
                                         llvm::ArrayRef<BufferView> inputs) {
  if (inputs.size() != signature.arguments.size())
    return llvm::createStringError("'" + signature.entry + "': expected " +
                                   llvm::Twine(signature.arguments.size()) +
                                   " arguments, but got " +
                                   llvm::Twine(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &info = signature.arguments[i];
    auto what = [&] { return signature.describeArgument(i); };
    if (llvm::Error error = checkView(what, info.dtype, info.shape, inputs[i]))
      return error;
    if (info.dtype == DType::I1 && inputs[i].getNumElements() > 0 &&
        !hasOnlyZerosAndOnes(inputs[i], 0,
                             static_cast<const uint8_t *>(inputs[i].data)))
      return llvm::createStringError(
          what() + ": expected bytes of 0 and 1, but got others");
  }
  return llvm::Error::success();
}

static bool isSame(const BufferView &a, const BufferView &b) {
  return a.data == b.data && a.shape == b.shape && a.strides == b.strides;
}

llvm::Error linattn::detail::checkOutputs(
    const Signature &signature, llvm::ArrayRef<BufferView> inputs,
    llvm::ArrayRef<BufferView> outputs,
    llvm::ArrayRef<llvm::SmallVector<int64_t, 4>> shapes) {
  // These ranges decide nearly all comparisons.
  llvm::SmallVector<ByteRange, 16> ranges;
  for (const BufferView &input : inputs)
    ranges.emplace_back(getMemory(input));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BufferView &output = outputs[i];
    auto what = [&] { return signature.describeResult(i); };
    if (llvm::Error error =
            checkView(what, signature.results[i].dtype, shapes[i], output))
      return error;
    const ByteRange &range = ranges.emplace_back(getMemory(output));
    if (output.getNumElements() == 0)
      continue;
    if (output.readOnly)
      return llvm::createStringError(what() +
                                     ": expected a writable buffer, but got a "
                                     "read-only one");
    // Overlapping elements of a result would be written twice.
    if (mayRepeatElements(getMemory(output)))
      return llvm::createStringError(
          what() + ": expected strides that give every element its "
                   "own place in memory");
    auto replaced = static_cast<size_t>(signature.results[i].inPlaceOf);
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (j == replaced && isSame(output, inputs[j]))
        continue;
      if (range.meets(ranges[j]) && mayOverlap(output, inputs[j]))
        return llvm::createStringError(what() +
                                       ": expected a buffer of its own, but it "
                                       "overlaps " +
                                       signature.describeArgument(j));
    }
    for (size_t j = 0; j < i; ++j)
      if (range.meets(ranges[inputs.size() + j]) &&
          mayOverlap(output, outputs[j]))
        return llvm::createStringError(what() +
                                       ": expected a buffer of its own, but it "
                                       "overlaps " +
                                       signature.describeResult(j));
  }
  return llvm::Error::success();
}
