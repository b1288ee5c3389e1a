//===- Operands.cpp - Check a call's buffers ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Operands.h"
#include "Failure.h"
#include "linattn/Support/DType.h"
#include "linattn/Support/Overlap.h"
#include "linattn/Support/Sizes.h"

using namespace linattn;
using namespace linattn::runner;

std::string linattn::runner::describeOperand(const Bundle &bundle,
                                             size_t index) {
  if (index >= bundle.numArguments)
    return "result " + std::to_string(index - bundle.numArguments);
  const std::string &name = bundle.operands[index].name;
  return "argument " + std::to_string(index) +
         (name.empty() ? "" : " (%" + name + ")");
}

std::string linattn::runner::formatExtents(const int64_t *extents,
                                           size_t rank) {
  std::string text;
  for (size_t i = 0; i < rank; ++i)
    text +=
        (i ? "x" : "") + (extents[i] == -1 ? "?" : std::to_string(extents[i]));
  return rank == 0 ? "scalar" : text;
}

size_t linattn::runner::countResultExtents(const Bundle &bundle) {
  size_t count = 0;
  for (const std::vector<int32_t> &result : bundle.shapes.results)
    count += result.size();
  return count;
}

static std::string nameOf(int32_t dtype) {
  return dtype >= LINATTN_F16 && dtype <= LINATTN_INDEX
             ? std::string(getName(static_cast<DType>(dtype)))
             : "type " + std::to_string(dtype);
}

static StridedMemory getMemory(const linattn_view &view) {
  return {view.data, getByteSize(static_cast<DType>(view.dtype)), view.rank,
          view.shape, view.strides};
}

/// Why the view cannot be addressed; empty if it can.
static std::string findTooLarge(const linattn_view &view) {
  Range<const int64_t> shape{view.shape, view.shape + view.rank};
  Range<const int64_t> strides{view.strides, view.strides + view.rank};
  int64_t elementBytes = getByteSize(static_cast<DType>(view.dtype));
  if (fitsAddresses(elementBytes, shape, strides))
    return "";
  bool hasBytes = getByteCount(elementBytes, shape).has_value();
  std::string text = formatExtents(view.shape, view.rank);
  for (int32_t d = 0; hasBytes && d < view.rank; ++d)
    text += (d ? ", " : " and strides ") + std::to_string(view.strides[d]);
  return describeTooLarge(elementBytes, text);
}

static size_t countStrides(const linattn_view *views, int32_t count) {
  size_t total = 0;
  for (int32_t i = 0; i < count; ++i)
    total += views[i].rank > 0 ? views[i].rank : 0;
  return total;
}

CallViews::CallViews(const Bundle &bundle, const linattn_view *given,
                     int32_t numGiven, bool onlyArguments)
    : bundle(bundle),
      count(onlyArguments ? bundle.numArguments : bundle.operands.size()),
      views(count), strides(countStrides(given, numGiven)) {
  if (static_cast<size_t>(numGiven) != count)
    fail("'" + bundle.entry + "': expected " + std::to_string(count) +
         (onlyArguments ? " arguments" : " arguments and results") +
         ", but got " + std::to_string(numGiven));
  int64_t *next = strides.get();
  for (size_t i = 0; i < count; ++i) {
    views[i] = given[i];
    if (!views[i].strides && views[i].rank > 0) {
      int64_t step = 1;
      for (int32_t d = views[i].rank; d-- > 0;) {
        next[d] = step;
        // If this overflows, the number of bytes does too.
        step = multiplyWrapping(step, views[i].shape[d]);
      }
      views[i].strides = next;
      next += views[i].rank;
    }
    checkView(i);
  }
}

void CallViews::checkView(size_t index) {
  const Operand &operand = bundle.operands[index];
  const linattn_view &view = views[index];
  auto what = [&] { return describeOperand(bundle, index); };
  if (view.dtype != operand.dtype)
    fail(what() + ": expected elements of type " + nameOf(operand.dtype) +
         ", but got " + nameOf(view.dtype));
  bool fits = static_cast<size_t>(view.rank) == operand.shape.size();
  for (size_t d = 0; fits && d < operand.shape.size(); ++d)
    fits = operand.shape[d] == -1 ? view.shape[d] >= 0
                                  : view.shape[d] == operand.shape[d];
  if (!fits)
    fail(what() + ": expected shape " +
         formatExtents(operand.shape.data(), operand.shape.size()) +
         ", but got " +
         (view.rank < 0 ? "a negative rank"
                        : formatExtents(view.shape, view.rank)));
  if (std::string problem = findTooLarge(view); !problem.empty())
    fail(what() + ": " + problem);
  if (view.rank == 0 || operand.isStrided || view.shape[view.rank - 1] <= 1 ||
      view.strides[view.rank - 1] == 1 || getMemory(view).isEmpty())
    return;
  fail(what() + ": expected an innermost stride of 1, but got " +
       std::to_string(view.strides[view.rank - 1]));
}

/// The message of a check, with the sizes that it shows.
static std::string formatCheck(const std::string &message,
                               const std::vector<int32_t> &sizes,
                               const int64_t *values) {
  std::string text;
  for (size_t i = 0; i < message.size(); ++i) {
    size_t number = i + 2 < message.size() ? message[i + 1] - '0' : 10;
    if (message[i] != '{' || number >= sizes.size() || message[i + 2] != '}') {
      text += message[i];
      continue;
    }
    text += std::to_string(values[sizes[number]]);
    i += 2;
  }
  return text;
}

void CallViews::computeShapes(int64_t *extents) {
  const ShapeRules &rules = bundle.shapes;
  StackArray<int64_t, 256> values(rules.program.instructions.size());
  bool fits = rules.program.evaluate(views.get(), values.get());
  if (rules.check >= 0) {
    auto failed = static_cast<size_t>(values[rules.check]);
    if (failed < rules.messages.size())
      fail("'" + bundle.entry + "': " +
           formatCheck(rules.messages[failed], rules.sizes, values.get()));
  }
  if (!fits)
    fail("'" + bundle.entry +
         "': expected sizes whose products fit in 64 bits");
  for (size_t i = 0; i < rules.results.size(); ++i) {
    Range<int64_t> shape{extents, extents};
    for (int32_t extent : rules.results[i]) {
      *extents = values[extent];
      if (*extents++ < 0)
        fail("result " + std::to_string(i) +
             ": expected sizes that are not negative, but got " +
             std::to_string(values[extent]));
    }
    shape.last = extents;
    const Operand &operand = bundle.operands[bundle.numArguments + i];
    int64_t elementBytes = getByteSize(static_cast<DType>(operand.dtype));
    if (!getByteCount(elementBytes, shape))
      fail(describeOperand(bundle, bundle.numArguments + i) + ": " +
           describeTooLarge(
               elementBytes,
               formatExtents(shape.first, shape.last - shape.first)));
  }
}

void CallViews::checkOverlap(size_t result) {
  const linattn_view &view = views[result];
  for (size_t i = 0; i < result; ++i) {
    const linattn_view &other = views[i];
    if (bundle.operands[i].isScalar ||
        !mayOverlap(getMemory(view), getMemory(other)))
      continue;
    bool same =
        view.data == other.data && view.rank == other.rank &&
        std::equal(view.shape, view.shape + view.rank, other.shape) &&
        std::equal(view.strides, view.strides + view.rank, other.strides);
    if (same && bundle.operands[result].inPlaceOf == static_cast<int32_t>(i))
      continue;
    fail(describeOperand(bundle, result) +
         ": expected a buffer of its own, but it overlaps " +
         describeOperand(bundle, i));
  }
}

void CallViews::checkResults(const int64_t *extents) {
  for (size_t i = 0; i < count; ++i) {
    const linattn_view &view = views[i];
    bool isResult = i >= bundle.numArguments;
    if (isResult && !std::equal(view.shape, view.shape + view.rank, extents))
      fail(describeOperand(bundle, i) + ": expected shape " +
           formatExtents(extents, view.rank) + ", but got " +
           formatExtents(view.shape, view.rank));
    extents += isResult ? view.rank : 0;
    StridedMemory memory = getMemory(view);
    if (memory.isEmpty())
      continue;
    if (!view.data)
      fail(describeOperand(bundle, i) + ": expected a buffer of shape " +
           formatExtents(view.shape, view.rank) + ", but got a null pointer");
    if (reinterpret_cast<uintptr_t>(view.data) % memory.elementBytes != 0)
      fail(describeOperand(bundle, i) + ": expected a pointer aligned to " +
           std::to_string(memory.elementBytes) + " bytes");
    if (!isResult)
      continue;
    if (mayRepeatElements(memory))
      fail(describeOperand(bundle, i) +
           ": expected strides that give every element its own place in "
           "memory");
    checkOverlap(i);
  }
}
