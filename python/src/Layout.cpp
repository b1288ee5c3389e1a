//===- Layout.cpp - How users lay out an array ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Transposing is a matter of strides, so that no element moves.
//
//===----------------------------------------------------------------------===//

#include "Layout.h"
#include "linattn/Support/Sizes.h"

#include "llvm/ADT/STLExtras.h"

namespace nb = nanobind;
using namespace linattn;
using namespace linattn::python;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

DimNames::Id DimNames::find(llvm::StringRef name) const {
  auto at = llvm::find(names, name);
  return at == names.end() ? kNone : static_cast<Id>(at - names.begin());
}

DimNames::Id DimNames::get(llvm::StringRef name) {
  Id id = find(name);
  if (id != kNone)
    return id;
  if (names.size() == kMax)
    throw nb::value_error(
        ("layout: expected at most " + std::to_string(kMax) + " dimensions")
            .c_str());
  names.push_back(name.str());
  classes.push_back(mlir::linattn::classifyDim(name));
  return static_cast<Id>(names.size() - 1);
}

std::string DimNames::describe(Id id) const {
  switch (classOf(id)) {
  case DimClass::Batch:
    return names[id].front() == 'N' ? "number of states" : "batch size";
  case DimClass::Head:
    return "number of heads";
  case DimClass::Length:
    return "sequence length";
  case DimClass::Feature:
    break;
  }
  if (names[id] == "K")
    return "head size";
  return names[id] == "V" ? "value head size" : "size " + names[id];
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

/// Determines the source of every dimension of the op's operand.
static void connect(Layout &layout, llvm::ArrayRef<DimNames::Id> logical) {
  for (DimNames::Id id : logical) {
    Layout::Source source{-1};
    for (auto [index, dim] : llvm::enumerate(layout.user)) {
      if (id == DimNames::kNone || (id != dim.id && id != dim.inner))
        continue;
      source = {static_cast<int8_t>(index), dim.inner, id == dim.inner};
    }
    layout.logical.push_back(source);
  }
}

std::vector<Layout> linattn::python::parseLayouts(llvm::StringRef text,
                                                  DimNames &names) {
  std::vector<Layout> layouts;
  for (const mlir::linattn::LayoutNames &words :
       mlir::linattn::parseLayout(text)) {
    Layout layout;
    layout.alternative = static_cast<uint8_t>(layouts.size());
    for (llvm::StringRef word : words.user) {
      auto [outer, inner] = word.split('*');
      layout.user.push_back({names.get(outer)});
      if (!inner.empty())
        layout.user.back().inner = names.get(inner);
    }
    llvm::SmallVector<DimNames::Id, 4> logical;
    for (llvm::StringRef word : words.logical)
      logical.push_back(word == "1" ? DimNames::kNone : names.get(word));
    connect(layout, logical);
    layouts.push_back(layout);
  }
  return layouts;
}

bool Layout::drop(RankMode mode, const DimNames &names, Layout &result) const {
  auto isDropped = [&](DimNames::Id id) {
    DimClass kind = names.classOf(id);
    return (kind == DimClass::Head && mode != RankMode::Full) ||
           (kind == DimClass::Batch && mode == RankMode::NoBatch);
  };
  result = Layout();
  result.alternative = alternative;
  llvm::SmallVector<int8_t, 4> newDims;
  for (const UserDim &dim : user) {
    bool keeps = dim.inner != DimNames::kNone || !isDropped(dim.id);
    newDims.push_back(keeps ? static_cast<int8_t>(result.user.size())
                            : int8_t(-1));
    if (keeps)
      result.user.push_back(dim);
  }
  for (Source source : logical) {
    if (source.dim >= 0)
      source.dim = newDims[source.dim];
    result.logical.push_back(source);
  }
  return !result.user.empty();
}

static int64_t getExtent(const Layout::UserDim &dim, const Extents &extents) {
  int64_t extent = extents[dim.id];
  if (dim.inner == DimNames::kNone)
    return extent;
  if (extent == kUnknown || extents[dim.inner] == kUnknown)
    return kUnknown;
  return multiplySaturating(extent, extents[dim.inner]);
}

bool Layout::matches(llvm::ArrayRef<int64_t> shape,
                     const Extents &extents) const {
  if (shape.size() != user.size())
    return false;
  for (auto [dim, size] : llvm::zip(user, shape)) {
    int64_t extent = getExtent(dim, extents);
    if (extent != kUnknown && extent != size)
      return false;
  }
  return true;
}

std::string Layout::formatShape(const Extents &extents,
                                const DimNames &names) const {
  std::string text = "(";
  for (const UserDim &dim : user) {
    int64_t extent = getExtent(dim, extents);
    text += (text.size() > 1 ? ", " : "") + (extent == kUnknown
                                                 ? names.name(dim.id).str()
                                                 : std::to_string(extent));
  }
  return text + (user.size() == 1 ? ",)" : ")");
}

llvm::SmallVector<int64_t, 4> Layout::getShape(const Extents &extents) const {
  llvm::SmallVector<int64_t, 4> shape;
  for (const UserDim &dim : user)
    shape.push_back(getExtent(dim, extents));
  return shape;
}

BufferView Layout::toLogical(const BufferView &view,
                             const Extents &extents) const {
  BufferView result;
  result.data = view.data;
  result.dtype = view.dtype;
  result.readOnly = view.readOnly;
  for (const Source &source : logical) {
    int64_t extent = 1, stride = 0;
    if (source.dim >= 0) {
      extent = view.shape[source.dim];
      stride = view.strides[source.dim];
      if (source.innerExtent != DimNames::kNone) {
        int64_t inner = extents[source.innerExtent];
        extent = source.isInner ? inner : inner ? extent / inner : 0;
        stride = source.isInner ? stride : stride * inner;
      }
    }
    result.shape.push_back(extent);
    result.strides.push_back(stride);
  }
  return result;
}
