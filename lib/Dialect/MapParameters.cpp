//===- MapParameters.cpp - linattn.feature_map and its parameters ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/MapParameters.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::linattn;

const FeatureMapTraits &mlir::linattn::getMapTraits(FeatureMapKind kind) {
  const FeatureMapTraits *map = ::linattn::findFeatureMap(
      kind == FeatureMapKind::Region ? "identity"
                                     : stringifyFeatureMapKind(kind));
  assert(map && "every map has a row in the table of maps");
  return *map;
}

ArrayRef<MapParameter> mlir::linattn::getMapParameters(FeatureMapKind kind) {
  return getMapTraits(kind).parameters;
}

bool mlir::linattn::isPerHead(const MapParameter &parameter, Value operand) {
  return cast<ShapedType>(operand.getType()).getRank() == parameter.rank() + 1;
}

bool mlir::linattn::needsWholeToken(FeatureMapKind kind) {
  return getMapTraits(kind).has(FeatureMapTraits::Token);
}

double mlir::linattn::getMapEps(FeatureMapAttr map) {
  if (map.getEps())
    return map.getEps().getValueAsDouble();
  return getMapTraits(map.getKind()).eps.value_or(0.0);
}

double mlir::linattn::getMapScale(FeatureMapAttr map) {
  return map.getScale() ? map.getScale().getValueAsDouble() : 1.0;
}

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

/// Verifies that a number is finite, and not negative where the sign matters.
static LogicalResult verifyNumber(function_ref<InFlightDiagnostic()> emit,
                                  FloatAttr attr, StringRef name,
                                  bool mayBeNegative) {
  if (!attr || (attr.getValue().isFinite() &&
                (mayBeNegative || !attr.getValue().isNegative())))
    return success();
  return emit() << "expected " << name << " to be finite"
                << (mayBeNegative ? "" : " and not negative") << ", but got "
                << attr.getValueAsDouble();
}

/// "a, b or c": the maps that take a clause.
static std::string
spellMaps(function_ref<bool(const FeatureMapTraits &)> takes) {
  SmallVector<StringRef> names;
  for (const FeatureMapTraits &map : ::linattn::getFeatureMaps())
    if (takes(map))
      names.push_back(map.name);
  std::string text = llvm::join(ArrayRef(names).drop_back(), ", ");
  return text + (text.empty() ? "" : " or ") + names.back().str();
}

LogicalResult FeatureMapAttr::verify(function_ref<InFlightDiagnostic()> emit,
                                     FeatureMapKind kind, bool log,
                                     int64_t shifts, int64_t maxLength,
                                     FloatAttr scale, FloatAttr eps) {
  auto only = [&](bool isGiven, StringRef name, bool isAllowed,
                  StringRef kinds) -> LogicalResult {
    if (!isGiven || isAllowed)
      return success();
    return emit() << "expected " << name << " only with " << kinds
                  << ", but got " << stringifyFeatureMapKind(kind);
  };
  auto onlyWith = [&](bool isGiven, StringRef name,
                      function_ref<bool(const FeatureMapTraits &)> takes) {
    return only(isGiven, name, takes(getMapTraits(kind)), spellMaps(takes));
  };
  auto has = [](FeatureMapTraits::Flags flag) {
    return [=](const FeatureMapTraits &map) { return map.has(flag); };
  };
  if (failed(onlyWith(log, "log", has(FeatureMapTraits::Log))) ||
      failed(onlyWith(shifts != 1, "shifts", has(FeatureMapTraits::Shifts))) ||
      failed(onlyWith(maxLength != 0, "max_length",
                      has(FeatureMapTraits::Positions))) ||
      failed(only(bool(scale), "scale", needsWholeToken(kind),
                  "a map of whole tokens")) ||
      failed(onlyWith(
          bool(eps), "eps",
          [](const FeatureMapTraits &map) { return map.eps.has_value(); })) ||
      failed(verifyNumber(emit, scale, "scale", /*mayBeNegative=*/true)) ||
      failed(verifyNumber(emit, eps, "eps", /*mayBeNegative=*/false)))
    return failure();
  constexpr int64_t mostShifts = 1 << 20, longest = int64_t(1) << 40;
  if (shifts < 1 || shifts > mostShifts)
    return emit() << "expected shifts from 1 to " << mostShifts << ", but got "
                  << shifts;
  if (getMapTraits(kind).has(FeatureMapTraits::Positions) &&
      (maxLength < 1 || maxLength > longest))
    return emit() << "expected " << stringifyFeatureMapKind(kind)
                  << " with a max_length from 1 to " << longest << ", but got "
                  << maxLength;
  return success();
}

//===----------------------------------------------------------------------===//
// The op's contract
//===----------------------------------------------------------------------===//

void FeatureMapOp::build(OpBuilder &b, OperationState &result, Value input,
                         ValueRange parameters, Value positions, Value output,
                         FeatureMapAttr map) {
  SmallVector<Type> types;
  if (isa<RankedTensorType>(output.getType()))
    types.push_back(output.getType());
  build(b, result, types, input, parameters, positions, output, map,
        ConfigAttr());
}

static FeatureMapKind kindOf(FeatureMapOp op) {
  return cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind();
}

namespace {

/// Appends equalities of dimensions.
struct Equalities {
  SmallVector<DimRelation> &list;

  void add(StringRef id, StringRef what, DimRef a, DimRef b) {
    list.push_back({DimRelationKind::Equal, {a, b}, what, id});
  }
};

} // namespace

SmallVector<DimRelation> FeatureMapOp::getDimRelations() {
  SmallVector<DimRelation> relations;
  Equalities equal{relations};
  auto input = [&](int64_t dim) { return DimRef{getInput(), dim, "input"}; };
  auto output = [&](int64_t dim) { return DimRef{getOutput(), dim, "output"}; };
  static constexpr StringRef what[] = {"batch size", "head count",
                                       "sequence length"};
  for (int64_t dim = 0; dim < 3; ++dim)
    equal.add("F1", what[dim], input(dim), output(dim));

  // After verification, each operand has a fixed position in the list.
  FeatureMapKind kind = kindOf(*this);
  auto formula = *::linattn::featureSizeFormula(
      getMapTraits(kind).name,
      getFeatureMap() ? getFeatureMap()->getShifts() : 1);
  DimRef size = input(3);
  for (auto [parameter, operand] :
       llvm::zip(getMapParameters(kind), getParameters())) {
    bool perHead = isPerHead(parameter, operand);
    StringRef name = parameter.name;
    DimRef first{operand, perHead, name};
    if (perHead)
      equal.add("F4", "head count", {operand, 0, name}, input(1));
    switch (parameter.shape) {
    case MapParameter::Square:
      equal.add("F4", "head size", first, input(3));
      [[fallthrough]];
    case MapParameter::Matrix:
      equal.add("F4", "head size", {operand, perHead + 1, name}, input(3));
      if (!formula.countsRows)
        break;
      if (&parameter == getMapParameters(kind).begin())
        size = first;
      else
        equal.add("F4", "number of rows", size, first);
      break;
    case MapParameter::VectorOfRows:
      equal.add("F4", "number of rows", size, first);
      break;
    case MapParameter::VectorOfSize:
      equal.add("F4", "head size", first, input(3));
      break;
    }
  }
  if (formula.linear == 2 && !formula.quadratic && !formula.countsRows)
    equal.add("F3", "head size", input(3), output(3));
  else
    relations.push_back({DimRelationKind::Features,
                         {output(3), size},
                         stringifyFeatureMapKind(kind),
                         "F3",
                         formula});
  if (Value positions = getPositions()) {
    int64_t rank = cast<ShapedType>(positions.getType()).getRank();
    equal.add("F5", "sequence length", {positions, rank - 1, "positions"},
              input(2));
    if (rank == 2)
      equal.add("F5", "batch size", {positions, 0, "positions"}, input(0));
  }
  return relations;
}

/// Verifies the element types (F1).
static LogicalResult verifyElementTypes(FeatureMapOp op) {
  Type input = getElementTypeOrSelf(op.getInput());
  Type output = getElementTypeOrSelf(op.getOutput());
  Type accumulation = getAccumulationType(input);
  if (output == input || output == accumulation)
    return success();
  InFlightDiagnostic error =
      op.emitOpError("expected output to have element type ") << input;
  if (accumulation != input)
    error << " or " << accumulation;
  return error << ", but got " << output;
}

/// Verifies the presence and the ranks of parameters (F4).
static LogicalResult verifyParameters(FeatureMapOp op) {
  ArrayRef<MapParameter> expected = getMapParameters(kindOf(op));
  size_t most = expected.size(), count = op.getParameters().size();
  size_t least = llvm::count_if(
      expected, [](const MapParameter &each) { return !each.isOptional; });
  if (count < least || count > most) {
    InFlightDiagnostic error = op.emitOpError("expected ")
                               << stringifyFeatureMapKind(kindOf(op))
                               << " to have ";
    if (!most)
      error << "no params";
    else
      error << "params ";
    llvm::interleaveComma(expected, error, [&](const MapParameter &each) {
      error << StringRef(each.name) << (each.isOptional ? " (optional)" : "");
    });
    return error << ", but got " << count;
  }
  for (auto [parameter, operand] : llvm::zip(expected, op.getParameters())) {
    int64_t rank = cast<ShapedType>(operand.getType()).getRank();
    if (rank == parameter.rank() || rank == parameter.rank() + 1)
      continue;
    return op.emitOpError("expected ")
           << StringRef(parameter.name) << " to be "
           << (parameter.isMatrix() ? "[m, d] or [H, m, d]" : "[d] or [H, d]")
           << ", but got " << operand.getType();
  }
  return success();
}

LogicalResult mlir::linattn::verifyMapOperands(FeatureMapOp op) {
  if (failed(verifyElementTypes(op)) || failed(verifyParameters(op)))
    return failure();
  bool needsPositions =
      getMapTraits(kindOf(op)).has(FeatureMapTraits::Positions); // (F5)
  if (needsPositions != bool(op.getPositions()))
    return op.emitOpError("expected positions exactly with feature map ")
           << spellMaps([](const FeatureMapTraits &map) {
                return map.has(FeatureMapTraits::Positions);
              })
           << ", but got " << (needsPositions ? "none" : "some with ")
           << (needsPositions ? StringRef()
                              : stringifyFeatureMapKind(kindOf(op)));
  return success();
}
