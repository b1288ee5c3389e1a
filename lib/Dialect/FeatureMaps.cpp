//===- FeatureMaps.cpp - Emitting feature maps ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OperationSupport.h"

#include <cmath>

using namespace mlir;
using namespace mlir::linattn;

bool mlir::linattn::needsRowMax(FeatureMapKind kind, bool stabilised) {
  return kind == FeatureMapKind::SoftmaxKernel ||
         (kind == FeatureMapKind::Exp && stabilised);
}

Value mlir::linattn::emitFloat(OpBuilder &b, Location loc, Type type,
                               double value) {
  TypedAttr attr = b.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, Attribute(attr));
  return arith::ConstantOp::create(b, loc, attr);
}

/// The type that `type` becomes when the scalar `x` is widened to the type of
/// `like`.
static Type widen(Type type, Type like) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? vector.clone(type) : type;
}

/// Clones the scalar region on `x`, element by element when `x` is a vector.
static Value emitRegion(OpBuilder &b, Location loc, Region &region, Value x) {
  Block &block = region.front();
  IRMapping mapping;
  mapping.map(block.getArgument(0), x);
  Type like = x.getType();
  auto vector = dyn_cast<VectorType>(like);
  // Scalars from outside are the same for every element.
  auto lookup = [&](Value value) -> Value {
    if (Value mapped = mapping.lookupOrNull(value))
      return mapped;
    if (!vector)
      return value;
    return vector::BroadcastOp::create(b, loc, vector.clone(value.getType()),
                                       value);
  };
  for (Operation &op : block.without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>()) {
      auto value = cast<TypedAttr>(cast<arith::ConstantOp>(op).getValue());
      if (vector)
        value = DenseElementsAttr::get(vector.clone(value.getType()),
                                       Attribute(value));
      mapping.map(op.getResult(0), arith::ConstantOp::create(b, loc, value));
      continue;
    }
    OperationState state(loc, op.getName());
    for (Value operand : op.getOperands())
      state.addOperands(lookup(operand));
    for (Type type : op.getResultTypes())
      state.addTypes(widen(type, like));
    state.addAttributes(op.getAttrs());
    mapping.map(op.getResults(), b.create(state)->getResults());
  }
  return lookup(cast<YieldOp>(block.getTerminator()).getResult());
}

bool mlir::linattn::keepsElements(FeatureMapKind kind) {
  return kind == FeatureMapKind::Identity || kind == FeatureMapKind::Relu;
}

bool mlir::linattn::mapsZeroToZero(FeatureMapKind kind) {
  return keepsElements(kind) || kind == FeatureMapKind::Relu2;
}

Value mlir::linattn::emitFeatureMap(OpBuilder &b, Location loc,
                                    FeatureMappedOpInterface op, Value x) {
  Type type = x.getType();
  auto relu = [&] {
    // maxnumf would drop a NaN; maximumf keeps it visible.
    return arith::MaximumFOp::create(b, loc, x, emitFloat(b, loc, type, 0.0));
  };
  switch (op.getFeatureMapKind()) {
  case FeatureMapKind::Identity:
    return x;
  case FeatureMapKind::Relu:
    return relu();
  case FeatureMapKind::Relu2: {
    Value positive = relu();
    return arith::MulFOp::create(b, loc, positive, positive);
  }
  case FeatureMapKind::Elu1: {
    Value zero = emitFloat(b, loc, type, 0.0);
    Value isPositive =
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, zero);
    Value linear =
        arith::AddFOp::create(b, loc, x, emitFloat(b, loc, type, 1.0));
    // The argument of the exponential is never positive, so that it cannot
    // overflow.
    Value exponential =
        math::ExpOp::create(b, loc, arith::MinimumFOp::create(b, loc, x, zero));
    return arith::SelectOp::create(b, loc, isPositive, linear, exponential);
  }
  case FeatureMapKind::SoftmaxKernel:
  case FeatureMapKind::Exp:
    return math::ExpOp::create(b, loc, x);
  case FeatureMapKind::Region:
    return emitRegion(b, loc, op.getFeatureMapRegion(), x);
  default:
    llvm_unreachable("a map of whole tokens");
  }
}

/// max(|den|, abs_floor · e^-m): the floor of a denominator stored times e^-m.
static Value emitAbsFloor(OpBuilder &b, Location loc, double floor,
                          Value runningMax, Value denominator) {
  Type type = denominator.getType();
  Value bound = emitFloat(b, loc, type, runningMax ? std::log(floor) : floor);
  if (runningMax) // As one exponential: the product overflows only where it
                  // must.
    bound = math::ExpOp::create(
        b, loc, arith::SubFOp::create(b, loc, bound, runningMax));
  Value magnitude = math::AbsFOp::create(b, loc, denominator);
  return arith::MaximumFOp::create(b, loc, magnitude, bound);
}

/// The divisor: the denominator plus eps, or at least the floor.
static Value emitDivisor(OpBuilder &b, Location loc, NormalizeAttr normalize,
                         Type tokenType, Value denominator, Value runningMax) {
  Type type = denominator.getType();
  if (FloatAttr floor = normalize.getFloor())
    return arith::MaximumFOp::create(
        b, loc, denominator, emitFloat(b, loc, type, floor.getValueAsDouble()));
  double eps = tokenType.getIntOrFloatBitWidth() < 32 ? 1e-4 : 1e-6;
  if (FloatAttr floor = normalize.getAbsFloor()) {
    denominator =
        emitAbsFloor(b, loc, floor.getValueAsDouble(), runningMax, denominator);
    eps = 0.0;
  }
  if (FloatAttr given = normalize.getEps())
    eps = given.getValueAsDouble();
  if (eps == 0.0)
    return denominator;
  return arith::AddFOp::create(b, loc, denominator,
                               emitFloat(b, loc, type, eps));
}

/// A query that attends to nothing gives 0: 0 over a divisor of 0 is 0 for any
/// eps.
static Value emitSafeDivision(OpBuilder &b, Location loc, Value numerator,
                              Value divisor) {
  Value zero = emitFloat(b, loc, divisor.getType(), 0.0);
  Value isEmpty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, divisor, zero);
  return arith::SelectOp::create(
      b, loc, isEmpty, zero, arith::DivFOp::create(b, loc, numerator, divisor));
}

Value mlir::linattn::emitClamp(OpBuilder &b, Location loc,
                               NormalizeAttr normalize, Value value) {
  FloatAttr clamp = normalize.getClamp();
  if (!clamp)
    return value;
  double limit = clamp.getValueAsDouble();
  auto bound = [&](double x) { return emitFloat(b, loc, value.getType(), x); };
  value = arith::MaximumFOp::create(b, loc, value, bound(-limit));
  return arith::MinimumFOp::create(b, loc, value, bound(limit));
}

Value mlir::linattn::emitInverseDenominator(OpBuilder &b, Location loc,
                                            NormalizeAttr normalize,
                                            Type tokenType, Value denominator,
                                            Value runningMax) {
  return emitSafeDivision(
      b, loc, emitFloat(b, loc, denominator.getType(), 1.0),
      emitDivisor(b, loc, normalize, tokenType, denominator, runningMax));
}

Value mlir::linattn::emitNormalize(OpBuilder &b, Location loc,
                                   NormalizeAttr normalize, Type tokenType,
                                   Value numerator, Value denominator,
                                   Value runningMax) {
  Value divisor =
      emitDivisor(b, loc, normalize, tokenType, denominator, runningMax);
  return emitClamp(b, loc, normalize,
                   emitSafeDivision(b, loc, numerator, divisor));
}

bool mlir::linattn::haveSameFeatureMap(FeatureMappedOpInterface a,
                                       FeatureMappedOpInterface b) {
  if (a.getFeatureMapKind() != b.getFeatureMapKind())
    return false;
  if (a.getFeatureMapKind() != FeatureMapKind::Region)
    return true;
  return OperationEquivalence::isRegionEquivalentTo(
      &a.getFeatureMapRegion(), &b.getFeatureMapRegion(),
      OperationEquivalence::IgnoreLocations);
}
