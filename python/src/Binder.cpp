//===- Binder.cpp - A call's extents from its arrays ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Errors.h"
#include "Plan.h"

#include "llvm/ADT/STLExtras.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

static void checkDType(const OperandSpec &spec, const BufferView &view,
                       DType dtype) {
  if (view.dtype != dtype)
    throwTypeError(spec.name + ": expected dtype " + getPythonName(dtype) +
                   ", but got " + getPythonName(view.dtype));
}

const Layout &Binder::layoutOf(const OperandSpec &spec) const {
  const auto &layouts = spec.layouts[static_cast<size_t>(mode)];
  return layouts.empty() ? spec.layouts[0].front() : layouts.front();
}

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static std::string formatLayout(const Layout &layout, const DimNames &names) {
  std::string text = "(";
  for (const Layout::UserDim &dim : layout.user) {
    // In the user's terms, where the name implies the heads and tokens.
    llvm::StringRef name = names.name(dim.id);
    DimClass kind = names.classOf(dim.id);
    std::string word = kind == DimClass::Head       ? "H"
                       : kind == DimClass::Length   ? "T"
                       : name == "K" || name == "V" ? "D"
                                                    : name.str();
    text += (text.size() > 1 ? ", " : "") + word;
  }
  return text + ")";
}

/// "a, b or c"
static std::string joinAlternatives(llvm::ArrayRef<std::string> words) {
  std::string text;
  for (auto [index, word] : llvm::enumerate(words))
    text += (index == 0                  ? ""
             : index + 1 == words.size() ? " or "
                                         : ", ") +
            word;
  return text;
}

void Binder::failRank(const OperandSpec &spec, const BufferView &view) const {
  llvm::SmallVector<std::string, 3> expected;
  size_t last = 0;
  for (size_t i = kNumRankModes; i-- > 0;) {
    if (spec.layouts[i].empty())
      continue;
    const Layout &layout = spec.layouts[i].front();
    size_t rank = layout.user.size();
    // The mode is the same if no dimension is dropped.
    if (rank == last)
      expected.pop_back();
    last = rank;
    expected.push_back(formatLayout(layout, plan->names));
  }
  throwValueError(spec.name + ": expected shape " + joinAlternatives(expected) +
                  ", but got " + formatPythonShape(view.shape));
}

void Binder::chooseMode(const OperandSpec &spec, const BufferView &view) {
  for (size_t i = kNumRankModes; i-- > 0;)
    if (!spec.layouts[i].empty() &&
        spec.layouts[i].front().user.size() == view.shape.size())
      mode = static_cast<RankMode>(i);
  if (layoutOf(spec).user.size() != view.shape.size())
    failRank(spec, view);
  for (size_t i = 0; i < plan->names.size(); ++i) {
    DimClass kind = plan->names.classOf(static_cast<DimNames::Id>(i));
    bool isBatch = static_cast<DimNames::Id>(i) == plan->batch;
    if ((kind == DimClass::Head && mode != RankMode::Full) ||
        (isBatch && mode == RankMode::NoBatch))
      extents[i] = 1;
  }
}

/// Binds extents in the order in which they help to distinguish layouts,
/// features last.
void Binder::bindExtents(const OperandSpec &spec, const Layout &layout,
                         const BufferView &view) {
  for (auto [dim, size] : llvm::zip(layout.user, view.shape)) {
    int64_t &extent = extents[dim.id];
    const OperandSpec *&owner = boundBy[dim.id];
    DimClass kind = plan->names.classOf(dim.id);
    // A convolution with one weight carries no inputs between calls.
    bool mayBeEmpty = spec.role == OperandRole::Carried && size == 0;
    if (size < 1 && !mayBeEmpty &&
        (kind == DimClass::Head || kind == DimClass::Feature))
      throwValueError(
          spec.name +
          ": expected at least one head and one feature, but got shape " +
          formatPythonShape(view.shape));
    if (extent != kUnknown && extent != size)
      throwValueError(
          spec.name + ": expected the " + plan->names.describe(dim.id) +
          (owner ? " of " + owner->name + ", " : " to be ") +
          std::to_string(extent) + ", but got " + std::to_string(size));
    extent = size;
    owner = &spec;
  }
}

BufferView Binder::bindTokens(const OperandSpec &spec, const BufferView &view) {
  if (isFirst)
    chooseMode(spec, view);
  if (!isFloat(view.dtype))
    throwTypeError(
        spec.name +
        ": expected float16, bfloat16, float32 or float64, but got " +
        getPythonName(view.dtype));
  const OperandSpec &first = plan->operands.front();
  const Layout &layout = layoutOf(spec);
  if (layout.user.size() != view.shape.size())
    throwValueError(spec.name + ": expected the number of dimensions of " +
                    first.name + ", " + std::to_string(layout.user.size()) +
                    ", but got " + std::to_string(view.shape.size()));
  if (isFirst)
    dtype = view.dtype;
  if (view.dtype != dtype)
    throwTypeError(spec.name + ": expected the dtype of " + first.name + ", " +
                   getPythonName(dtype) + ", but got " +
                   getPythonName(view.dtype));
  bindExtents(spec, layout, view);
  isFirst = false;
  return layout.toLogical(view, extents);
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

void Binder::failHeads() const {
  std::vector<const OperandSpec *> owners;
  std::string names, counts;
  for (const OperandSpec &spec : plan->operands)
    if (spec.role == OperandRole::Tokens)
      for (const Layout::UserDim &dim : spec.layouts[0].front().user)
        if (plan->names.classOf(dim.id) == DimClass::Head)
          owners.push_back(&spec);
  for (auto [index, spec] : llvm::enumerate(owners)) {
    llvm::StringRef separator = index == 0                   ? ""
                                : index + 1 == owners.size() ? " and "
                                                             : ", ";
    names += separator.str() + spec->name;
    for (const Layout::UserDim &dim : spec->layouts[0].front().user)
      if (plan->names.classOf(dim.id) == DimClass::Head)
        counts += separator.str() + std::to_string(extents[dim.id]);
  }
  std::string blamed = owners.size() > 1 ? owners[1]->name : "heads";
  throwValueError(blamed + ": expected the head counts of " + names +
                  " to divide one another, but got " + counts);
}

void Binder::applyRules() {
  if (plan->states != DimNames::kNone && !plan->hasOffsets)
    extents[plan->states] = extents[plan->batch];
  for (const DimRule &rule : plan->rules) {
    int64_t left = rule.kind == SizeRule::Constant ? 1 : extents[rule.left];
    int64_t right = rule.kind == SizeRule::Max ? extents[rule.right] : 1;
    if (left == kUnknown || right == kUnknown)
      continue;
    if (rule.kind == SizeRule::Max &&
        std::max(left, right) % std::min(left, right) != 0)
      failHeads();
    // The number of features is a polynomial of the second degree.
    constexpr int64_t mostSquared = int64_t(1) << 30;
    if (rule.kind == SizeRule::Features && left > mostSquared)
      throwValueError(plan->names.describe(rule.left) + ": expected at most " +
                      std::to_string(mostSquared) + ", but got " +
                      std::to_string(left));
    int64_t value = rule.kind == SizeRule::Max ? std::max(left, right)
                    : rule.kind == SizeRule::Features
                        ? rule.features.evaluate(left)
                    : rule.kind == SizeRule::Quotient
                        ? left / rule.factor
                        : multiplySaturating(left, rule.factor);
    int64_t &result = extents[rule.result];
    if (const OperandSpec *owner = boundBy[rule.result];
        owner && result != value)
      throwValueError(owner->name + ": expected the " +
                      plan->names.describe(rule.result) + " to be " +
                      std::to_string(value) + ", but got " +
                      std::to_string(result));
    result = value;
  }
}

//===----------------------------------------------------------------------===//
// Other operands
//===----------------------------------------------------------------------===//

BufferView Binder::bindGate(const OperandSpec &spec, const BufferView &view,
                            uint8_t &alternative) {
  const char *types = "float16, bfloat16, float32 or float64";
  bool hasType = isFloat(view.dtype);
  if (spec.role == OperandRole::Mask) {
    types = "bool";
    hasType = view.dtype == DType::I1;
  } else if (spec.role == OperandRole::Positions ||
             spec.role == OperandRole::Counts) {
    types = "int32 or int64";
    hasType = view.dtype == DType::I32 || view.dtype == DType::I64;
  }
  if (!hasType)
    throwTypeError(spec.name + ": expected dtype " + types + ", but got " +
                   getPythonName(view.dtype));
  // A gate of a single head may keep its head dimension.
  std::string expected;
  for (size_t i : {size_t(0), static_cast<size_t>(mode)}) {
    for (const Layout &layout : spec.layouts[i]) {
      if (layout.matches(view.shape, extents)) {
        for (auto [dim, size] : llvm::zip(layout.user, view.shape))
          if (dim.inner == DimNames::kNone)
            extents[dim.id] = size;
        alternative = layout.alternative;
        return layout.toLogical(view, extents);
      }
      expected += (expected.empty() ? "" : " or ") +
                  layout.formatShape(extents, plan->names);
    }
    if (mode == RankMode::Full || spec.layouts[size_t(mode)].empty())
      break;
  }
  throwValueError(spec.name + ": expected shape " + expected + ", but got " +
                  formatPythonShape(view.shape));
}

void Binder::bindOffsets(const OperandSpec &spec, const BufferView &view) {
  const std::string &name = spec.name;
  int64_t batch = extents[plan->batch];
  int64_t tokens = extents[spec.layouts[0].front().user.front().id];
  if (view.dtype != DType::I32 && view.dtype != DType::I64)
    throwTypeError(name + ": expected int32 or int64, but got " +
                   getPythonName(view.dtype));
  if (view.getRank() != 1 || view.shape[0] < 1)
    throwValueError(name + ": expected shape (N + 1,), but got " +
                    formatPythonShape(view.shape));
  if (batch != 1)
    throwValueError(name + ": expected a batch size of 1, but got " +
                    std::to_string(batch));
  auto at = [&](int64_t i) -> int64_t {
    if (view.dtype == DType::I32)
      return static_cast<const int32_t *>(view.data)[i * view.strides[0]];
    return static_cast<const int64_t *>(view.data)[i * view.strides[0]];
  };
  int64_t count = view.shape[0] - 1;
  if (plan->states != DimNames::kNone)
    extents[plan->states] = count;
  // Reading elements would wait for the device.
  if (isDevice)
    return;
  if (at(0) != 0)
    throwValueError(name + ": expected the first offset to be 0, but got " +
                    std::to_string(at(0)));
  for (int64_t i = 0; i < count; ++i)
    if (at(i + 1) < at(i))
      throwValueError(
          name + ": expected offsets that do not decrease, but got " +
          std::to_string(at(i)) + " before " + std::to_string(at(i + 1)));
  if (at(count) != tokens)
    throwValueError(
        name + ": expected the last offset to be the number of tokens, " +
        std::to_string(tokens) + ", but got " + std::to_string(at(count)));
}

void Binder::checkExact(const OperandSpec &spec, const BufferView &view) const {
  const Layout &layout = layoutOf(spec);
  if (!layout.matches(view.shape, extents))
    throwValueError(spec.name + ": expected shape " +
                    layout.formatShape(extents, plan->names) + ", but got " +
                    formatPythonShape(view.shape));
  checkDType(spec, view, dtypeOf(spec));
}

/// Reports tokens that do not fit the state of earlier tokens.
void Binder::blameTokens(const OperandSpec &spec, const Layout &layout,
                         const BufferView &view) const {
  if (layout.user.size() != view.shape.size())
    return;
  for (auto [dim, size] : llvm::zip(layout.user, view.shape)) {
    int64_t extent = extents[dim.id];
    if (extent == kUnknown || extent == size)
      continue;
    std::string sizes = " of the state, " + std::to_string(size) +
                        ", but got " + std::to_string(extent);
    auto format = [&](const std::string &what) { return what + sizes; };
    std::string expected = format(plan->names.describe(dim.id));
    if (dim.id == plan->states && !plan->hasOffsets)
      throwValueError(plan->operands.front().name + ": expected the " +
                      format("batch size"));
    if (dim.id == plan->states)
      for (const OperandSpec &operand : plan->operands)
        if (operand.role == OperandRole::Offsets)
          throwValueError(operand.name + ": expected the " +
                          format("number of sequences"));
    if (const OperandSpec *owner = boundBy[dim.id])
      throwValueError(owner->name + ": expected the " + expected);
    // A derived size repeats the error of its sources.
    for (const DimRule &rule : plan->rules) {
      if (rule.result != dim.id)
        continue;
      for (DimNames::Id source : {rule.left, rule.right})
        if (source != DimNames::kNone && boundBy[source] &&
            (rule.kind != SizeRule::Max || extents[source] == extent))
          throwValueError(boundBy[source]->name + ": expected the " + expected);
    }
  }
}

BufferView Binder::bindState(const OperandSpec &spec, const BufferView &view) {
  const Layout &layout = layoutOf(spec);
  if (plan->trustsState && !layout.matches(view.shape, extents))
    blameTokens(spec, layout, view);
  checkExact(spec, view);
  // A read takes the heads and the value size from the state.
  bindExtents(spec, layout, view);
  return layout.toLogical(view, extents);
}

BufferView Binder::bind(const OperandSpec &spec, const BufferView &view,
                        uint8_t &alternative) {
  alternative = 0;
  if (spec.role == OperandRole::Tokens)
    return bindTokens(spec, view);
  if (spec.role == OperandRole::Number)
    return view;
  if (spec.role == OperandRole::Offsets) {
    bindOffsets(spec, view);
    return view;
  }
  if (spec.role != OperandRole::State && spec.role != OperandRole::Carried)
    return bindGate(spec, view, alternative);
  return bindState(spec, view);
}

//===----------------------------------------------------------------------===//
// Binding
//===----------------------------------------------------------------------===//

bool Binding::fits(llvm::ArrayRef<const BufferView *> arrays) const {
  return llvm::equal(
      arrays, given, [](const BufferView *array, const BufferView &known) {
        return array->dtype == known.dtype && array->shape == known.shape &&
               array->strides == known.strides;
      });
}
