//===- ViewChecks.cpp - Are these the buffers we want? -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ViewChecks.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace linattn;
using namespace linattn::detail;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Overlap
//===----------------------------------------------------------------------===//

namespace {

/// The bytes of a view as runs of `runBytes` that repeat with steps which are
/// all multiples of `period` (0 if there is a single run).
struct Footprint {
  int64_t begin, end;
  int64_t runBegin, runBytes;
  int64_t period;
};

/// Requires at least one element.
Footprint getFootprint(const BufferView &view) {
  int64_t size = getByteSize(view.dtype);
  auto base = static_cast<int64_t>(reinterpret_cast<intptr_t>(view.data));
  Footprint result{base, base + size, base, size, 0};
  llvm::SmallVector<std::pair<int64_t, int64_t>> steps;
  for (auto [extent, stride] : llvm::zip(view.shape, view.strides)) {
    int64_t bytes = stride * size;
    if (extent <= 1 || bytes == 0)
      continue;
    // A walk backwards covers the same elements as one forwards.
    if (bytes < 0)
      result.begin += (extent - 1) * bytes;
    else
      result.end += (extent - 1) * bytes;
    steps.push_back({std::abs(bytes), extent});
  }
  result.runBegin = result.begin;
  llvm::sort(steps);
  for (auto [bytes, extent] : steps) {
    if (result.period == 0 && bytes == result.runBytes)
      result.runBytes *= extent;
    else
      result.period = std::gcd(result.period, bytes);
  }
  return result;
}

/// From the first byte of a view to past its last; empty without elements.
struct ByteRange {
  explicit ByteRange(const BufferView &view) {
    int64_t size = getByteSize(view.dtype), last = 0, first = 0;
    bool isEmpty = false;
    for (size_t i = 0; i < view.shape.size(); ++i) {
      isEmpty |= view.shape[i] == 0;
      int64_t reach = (view.shape[i] - 1) * view.strides[i];
      (reach < 0 ? first : last) += reach;
    }
    auto base = static_cast<int64_t>(reinterpret_cast<intptr_t>(view.data));
    begin = base + first * size;
    end = isEmpty ? begin : base + (last + 1) * size;
  }
  bool meets(const ByteRange &other) const {
    return begin < other.end && other.begin < end;
  }

  int64_t begin, end;
};

} // namespace

bool linattn::detail::mayOverlap(const BufferView &a, const BufferView &b) {
  if (a.getNumElements() == 0 || b.getNumElements() == 0)
    return false;
  Footprint first = getFootprint(a), second = getFootprint(b);
  if (first.end <= second.begin || second.end <= first.begin)
    return false;
  int64_t period = std::gcd(first.period, second.period);
  if (period == 0)
    return true;
  // Modulo the period each view is one run; q, k and v packed side by side are
  // disjoint runs.
  int64_t distance = (second.runBegin - first.runBegin) % period;
  if (distance < 0)
    distance += period;
  return distance < first.runBytes || distance + second.runBytes > period;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static bool matches(llvm::ArrayRef<int64_t> expected,
                    llvm::ArrayRef<int64_t> actual) {
  return llvm::equal(expected, actual, [](int64_t want, int64_t got) {
    return want == kDynamicExtent ? got >= 0 : want == got;
  });
}

/// Names a view; only errors need to know.
using Describe = llvm::function_ref<std::string()>;

/// The checks that inputs and outputs share.
static llvm::Error checkView(Describe what, DType dtype,
                             llvm::ArrayRef<int64_t> shape,
                             const BufferView &view) {
  if (view.dtype != dtype)
    return makeError(what() + ": expected elements of type " +
                     std::string(getName(dtype)) + ", but got " +
                     std::string(getName(view.dtype)));
  if (view.shape.size() != shape.size() || !matches(shape, view.shape))
    return makeError(what() + ": expected shape " + formatShape(shape) +
                     ", but got " + formatShape(view.shape));
  if (view.strides.size() != view.shape.size())
    return makeError(what() + ": expected " + llvm::Twine(view.shape.size()) +
                     " strides, but got " + llvm::Twine(view.strides.size()));
  if (view.getNumElements() == 0)
    return llvm::Error::success();
  if (!view.data)
    return makeError(what() + ": expected a buffer of shape " +
                     formatShape(view.shape) + ", but got a null pointer");
  if (reinterpret_cast<uintptr_t>(view.data) % getByteSize(dtype) != 0)
    return makeError(what() + ": expected a pointer aligned to " +
                     llvm::Twine(getByteSize(dtype)) + " bytes");
  return llvm::Error::success();
}

/// Code takes a byte of a mask for true by its lowest bit or by all of them, as
/// suits it: other values than 0 and 1 would mean different things.
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
    return makeError("'" + signature.entry + "': expected " +
                     llvm::Twine(signature.arguments.size()) +
                     " arguments, but got " + llvm::Twine(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo &info = signature.arguments[i];
    auto what = [&] { return signature.describeArgument(i); };
    if (llvm::Error error = checkView(what, info.dtype, info.shape, inputs[i]))
      return error;
    if (info.dtype == DType::I1 && inputs[i].getNumElements() > 0 &&
        !hasOnlyZerosAndOnes(inputs[i], 0,
                             static_cast<const uint8_t *>(inputs[i].data)))
      return makeError(what() + ": expected bytes of 0 and 1, but got others");
  }
  return llvm::Error::success();
}

/// Results are written element by element: two indices must not share one.
static bool hasRepeatedElements(const BufferView &view) {
  llvm::SmallVector<std::pair<int64_t, int64_t>> steps;
  for (auto [extent, stride] : llvm::zip(view.shape, view.strides))
    if (extent > 1)
      steps.push_back({std::abs(stride), extent});
  llvm::sort(steps);
  int64_t covered = 0;
  for (auto [stride, extent] : steps) {
    if (stride <= covered)
      return true;
    covered += stride * (extent - 1);
  }
  return false;
}

static bool isSame(const BufferView &a, const BufferView &b) {
  return a.data == b.data && a.shape == b.shape && a.strides == b.strides;
}

llvm::Error linattn::detail::checkOutputs(
    const Signature &signature, llvm::ArrayRef<BufferView> inputs,
    llvm::ArrayRef<BufferView> outputs,
    llvm::ArrayRef<llvm::SmallVector<int64_t, 4>> shapes) {
  // Nearly always all there is to know about overlaps.
  llvm::SmallVector<ByteRange, 16> ranges;
  for (const BufferView &input : inputs)
    ranges.emplace_back(input);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const BufferView &output = outputs[i];
    auto what = [&] { return signature.describeResult(i); };
    if (llvm::Error error =
            checkView(what, signature.results[i].dtype, shapes[i], output))
      return error;
    const ByteRange &range = ranges.emplace_back(output);
    if (output.getNumElements() == 0)
      continue;
    if (output.readOnly)
      return makeError(what() + ": expected a writable buffer, but got a "
                                "read-only one");
    if (hasRepeatedElements(output))
      return makeError(what() +
                       ": expected strides that give every element its "
                       "own place in memory");
    auto replaced = static_cast<size_t>(signature.results[i].inPlaceOf);
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (j == replaced && isSame(output, inputs[j]))
        continue;
      if (range.meets(ranges[j]) && mayOverlap(output, inputs[j]))
        return makeError(what() +
                         ": expected a buffer of its own, but it "
                         "overlaps " +
                         signature.describeArgument(j));
    }
    for (size_t j = 0; j < i; ++j)
      if (range.meets(ranges[inputs.size() + j]) &&
          mayOverlap(output, outputs[j]))
        return makeError(what() +
                         ": expected a buffer of its own, but it "
                         "overlaps " +
                         signature.describeResult(j));
  }
  return llvm::Error::success();
}
