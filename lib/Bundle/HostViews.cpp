//===- HostViews.cpp - Memrefs of host code as formulas -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HostViews.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace ::linattn::detail;
using namespace mlir;
namespace json = llvm::json;

HostViews::HostViews(func::FuncOp func, int64_t numOperands, Formulas &formulas,
                     BundleWriter &writer)
    : func(func), numOperands(numOperands), formulas(formulas), writer(writer) {
  for (BlockArgument argument : func.getArguments()) {
    int64_t number = argument.getArgNumber();
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type)
      continue;
    HostView view;
    view.buffer = number;
    auto [strides, offset] = type.getStridesAndOffset();
    for (int64_t d = 0; d < type.getRank(); ++d) {
      view.extents.push_back(type.isDynamicDim(d)
                                 ? formulas.size(number, d)
                                 : formulas.constant(type.getDimSize(d)));
      view.strides.push_back(ShapedType::isDynamic(strides[d])
                                 ? formulas.stride(number, d)
                                 : formulas.constant(strides[d]));
    }
    views[argument] = std::move(view);
  }
}

std::optional<bool> HostViews::take(Operation &op) {
  problem = {};
  return llvm::TypeSwitch<Operation *, std::optional<bool>>(&op)
      .Case<memref::AllocOp, memref::GetGlobalOp, memref::DimOp,
            memref::ExtractAlignedPointerAsIndexOp,
            memref::ExtractStridedMetadataOp, memref::SubViewOp,
            memref::CollapseShapeOp, memref::ExpandShapeOp, memref::CastOp>(
          [&](auto op) { return visit(op); })
      .Default(std::optional<bool>());
}

static int64_t getElementBytes(MemRefType type) {
  Type element = type.getElementType();
  return element.isIndex()
             ? 8
             : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

/// A row-major view of the next buffer.
HostView HostViews::makeView(SmallVector<int64_t> extents) {
  HostView view;
  view.buffer = numOperands + static_cast<int64_t>(buffers.size());
  view.extents = std::move(extents);
  view.strides.resize(view.extents.size());
  int64_t count = formulas.constant(1);
  for (size_t d = view.extents.size(); d-- > 0;) {
    view.strides[d] = count;
    count = formulas.add("mul", {count, view.extents[d]});
  }
  return view;
}

bool HostViews::visit(memref::AllocOp alloc) {
  MemRefType type = alloc.getType();
  if (!type.getLayout().isIdentity() ||
      !type.getElementType().isIntOrIndexOrFloat())
    return false;
  SmallVector<int64_t> extents;
  unsigned next = 0;
  for (int64_t d = 0; d < type.getRank(); ++d)
    extents.push_back(type.isDynamicDim(d)
                          ? formulas.lookup(alloc.getDynamicSizes()[next++])
                          : formulas.constant(type.getDimSize(d)));
  if (llvm::is_contained(extents, -1))
    return false;
  int64_t bytes = formulas.constant(getElementBytes(type));
  for (int64_t extent : extents) {
    // In a loop, the maximum over its iterations.
    int64_t most = formulas.boundAbove(extent);
    if (most < 0)
      return fail("a buffer whose size no formula bounds");
    bytes = formulas.add("mul", {bytes, most});
  }
  views[alloc] = makeView(std::move(extents));
  buffers.push_back(
      json::Object{{"bytes", bytes}, {"element_bytes", getElementBytes(type)}});
  return true;
}

bool HostViews::visit(memref::GetGlobalOp constant) {
  auto global = SymbolTable::lookupNearestSymbolFrom<memref::GlobalOp>(
      func, constant.getNameAttr());
  auto contents = dyn_cast_if_present<DenseElementsAttr>(
      global ? global.getInitialValueAttr() : Attribute());
  MemRefType type = constant.getType();
  if (!contents || type.getElementTypeBitWidth() < 8 ||
      !type.getLayout().isIdentity())
    return false;
  std::string bytes;
  int64_t copies = contents.isSplat() ? contents.getNumElements() : 1;
  for (int64_t i = 0; i < copies; ++i)
    bytes.append(contents.getRawData().begin(), contents.getRawData().end());
  SmallVector<int64_t> extents;
  for (int64_t extent : type.getShape())
    extents.push_back(formulas.constant(extent));
  views[constant] = makeView(std::move(extents));
  buffers.push_back(json::Object{{"contents", writer.addBlob(bytes)},
                                 {"element_bytes", getElementBytes(type)}});
  return true;
}

bool HostViews::visit(memref::DimOp dim) {
  auto it = views.find(dim.getSource());
  std::optional<int64_t> index = dim.getConstantIndex();
  if (it == views.end() || !index)
    return false;
  formulas.bind(dim, it->second.extents[*index]);
  return true;
}

bool HostViews::visit(memref::ExtractAlignedPointerAsIndexOp address) {
  auto it = views.find(address.getSource());
  if (it == views.end() || !isOperand(it->second))
    return fail("of a buffer that is not an operand");
  formulas.bind(address, formulas.address(it->second.buffer));
  return true;
}

bool HostViews::visit(memref::ExtractStridedMetadataOp data) {
  auto it = views.find(data.getSource());
  if (it == views.end() || !data.getBaseBuffer().use_empty())
    return false;
  const HostView &view = it->second;
  formulas.bind(data.getOffset(),
                view.offset < 0 ? formulas.constant(0) : view.offset);
  for (auto [value, number] : llvm::zip(data.getSizes(), view.extents))
    formulas.bind(value, number);
  for (auto [value, number] : llvm::zip(data.getStrides(), view.strides))
    formulas.bind(value, number);
  return true;
}

int64_t HostViews::getNumber(OpFoldResult value) {
  if (std::optional<int64_t> known = getConstantIntValue(value))
    return formulas.constant(*known);
  return formulas.lookup(cast<Value>(value));
}

bool HostViews::visit(memref::SubViewOp slice) {
  auto it = views.find(slice.getSource());
  if (it == views.end())
    return false;
  const HostView source = it->second;
  HostView view;
  view.buffer = source.buffer;
  view.offset = source.offset;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  for (size_t d = 0; d < source.extents.size(); ++d) {
    int64_t offset = getNumber(slice.getMixedOffsets()[d]);
    int64_t extent = getNumber(slice.getMixedSizes()[d]);
    int64_t step = getNumber(slice.getMixedStrides()[d]);
    if (offset < 0 || extent < 0 || step < 0)
      return false;
    int64_t elements = formulas.add("mul", {offset, source.strides[d]});
    view.offset = view.offset < 0
                      ? elements
                      : formulas.add("add", {view.offset, elements});
    if (dropped[d])
      continue;
    view.extents.push_back(extent);
    view.strides.push_back(formulas.add("mul", {step, source.strides[d]}));
  }
  views[slice] = std::move(view);
  return true;
}

/// The verifier has checked that the collapsed dimensions are contiguous.
bool HostViews::visit(memref::CollapseShapeOp reshape) {
  auto it = views.find(reshape.getSrc());
  if (it == views.end())
    return false;
  const HostView source = it->second;
  HostView view{source.buffer, source.offset, {}, {}};
  for (ArrayRef<int64_t> group : reshape.getReassociationIndices()) {
    int64_t extent = formulas.constant(1);
    for (int64_t d : group)
      extent = formulas.add("mul", {extent, source.extents[d]});
    view.extents.push_back(extent);
    view.strides.push_back(source.strides[group.back()]);
  }
  views[reshape] = std::move(view);
  return true;
}

bool HostViews::visit(memref::ExpandShapeOp reshape) {
  auto it = views.find(reshape.getSrc());
  if (it == views.end())
    return false;
  const HostView source = it->second;
  HostView view{source.buffer, source.offset, {}, {}};
  for (OpFoldResult size : reshape.getMixedOutputShape())
    view.extents.push_back(getNumber(size));
  if (llvm::is_contained(view.extents, -1))
    return false;
  view.strides.resize(view.extents.size());
  for (auto [d, group] : llvm::enumerate(reshape.getReassociationIndices())) {
    int64_t stride = source.strides[d];
    for (int64_t inner : llvm::reverse(group)) {
      view.strides[inner] = stride;
      stride = formulas.add("mul", {stride, view.extents[inner]});
    }
  }
  views[reshape] = std::move(view);
  return true;
}

bool HostViews::visit(memref::CastOp cast) {
  auto it = views.find(cast.getSource());
  if (it == views.end())
    return false;
  HostView view = it->second;
  views[cast] = std::move(view);
  return true;
}
