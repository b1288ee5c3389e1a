//===- SignAnalysis.cpp - The sign of attention weights -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/SignAnalysis.h"
#include "linattn/Dialect/MapParameters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Intervals
//===----------------------------------------------------------------------===//

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// An interval of numbers. `open` excludes the lower end: e^x is above 0.
struct Interval {
  double low = -infinity, high = infinity;
  bool open = false;

  bool isPositive() const { return low > 0 || (low == 0 && open); }
  bool isNotNegative() const { return low >= 0; }
};

/// A bound that no number reached does not count.
double known(double bound, double otherwise) {
  return std::isnan(bound) ? otherwise : bound;
}

Interval hull(Interval a, Interval b) {
  Interval lower = a.low < b.low ? a : b;
  if (a.low == b.low)
    lower.open = a.open && b.open;
  return {lower.low, std::max(a.high, b.high), lower.open};
}

Interval add(Interval a, Interval b) {
  return {known(a.low + b.low, -infinity), known(a.high + b.high, infinity),
          a.open || b.open};
}

Interval negate(Interval a) { return {-a.high, -a.low}; }

/// 0 · ∞ is 0 here: the limit of products of finite numbers.
double product(double x, double y) { return x == 0 || y == 0 ? 0 : x * y; }

Interval multiply(Interval a, Interval b) {
  double ends[] = {product(a.low, b.low), product(a.low, b.high),
                   product(a.high, b.low), product(a.high, b.high)};
  bool open = a.isPositive() && b.isPositive();
  return {*llvm::min_element(ends), *llvm::max_element(ends), open};
}

Interval square(Interval a) {
  double low =
      a.low <= 0 && a.high >= 0 ? 0 : std::min(a.low * a.low, a.high * a.high);
  return {low, std::max(a.low * a.low, a.high * a.high), a.isPositive()};
}

Interval divide(Interval a, Interval b) {
  if (!b.isPositive())
    return {};
  // 1/b lies above 0, for any b.
  return multiply(a, {b.high == infinity ? 0 : 1 / b.high,
                      b.low == 0 ? infinity : 1 / b.low, true});
}

Interval maximum(Interval a, Interval b) {
  Interval higher = a.low > b.low ? a : b;
  if (a.low == b.low)
    higher.open = a.open || b.open;
  return {higher.low, std::max(a.high, b.high), higher.open};
}

Interval minimum(Interval a, Interval b) {
  Interval result = hull(a, b);
  result.high = std::min(a.high, b.high);
  return result;
}

/// A monotone function, by its values at the ends.
template <typename Function>
Interval rising(Interval a, Function f) {
  return {known(f(a.low), -infinity), known(f(a.high), infinity), a.open};
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Evaluates φ on intervals, from its result back to its argument.
class PhiRange {
public:
  explicit PhiRange(Block &block) : argument(block.getArgument(0)) {}

  /// The interval of `value` for arguments in `x`.
  Interval of(Value value, Interval x) {
    if (value == argument)
      return x;
    Operation *op = value.getDefiningOp();
    // Expressions are small. The analysis gives up on a chain that branches
    // everywhere.
    if (!op || ++steps > maxSteps)
      return {};
    if (FloatAttr constant; matchPattern(value, m_Constant(&constant))) {
      double number = constant.getValueAsDouble();
      return std::isnan(number) ? Interval() : Interval{number, number};
    }
    auto operand = [&](unsigned i) { return of(op->getOperand(i), x); };
    return TypeSwitch<Operation *, Interval>(op)
        .Case([&](arith::AddFOp) { return add(operand(0), operand(1)); })
        .Case(
            [&](arith::SubFOp) { return add(operand(0), negate(operand(1))); })
        .Case([&](arith::MulFOp mul) {
          return mul.getLhs() == mul.getRhs()
                     ? square(operand(0))
                     : multiply(operand(0), operand(1));
        })
        .Case([&](arith::DivFOp) { return divide(operand(0), operand(1)); })
        .Case([&](arith::NegFOp) { return negate(operand(0)); })
        .Case<arith::MaximumFOp, arith::MaxNumFOp>(
            [&](auto) { return maximum(operand(0), operand(1)); })
        .Case<arith::MinimumFOp, arith::MinNumFOp>(
            [&](auto) { return minimum(operand(0), operand(1)); })
        .Case([&](arith::SelectOp select) { return ofSelect(select, x); })
        .Case([&](arith::UIToFPOp) { return Interval{0, infinity}; })
        .Case([&](math::AbsFOp) {
          Interval a = operand(0);
          return maximum(a, negate(a)).isPositive()
                     ? maximum(a, negate(a))
                     : Interval{0, std::max(-a.low, a.high)};
        })
        .Case([&](math::ExpOp) { return exponential(operand(0), M_E); })
        .Case([&](math::Exp2Op) { return exponential(operand(0), 2); })
        .Case([&](math::SqrtOp) {
          return rising(maximum(operand(0), {0, 0}),
                        [](double y) { return std::sqrt(y); });
        })
        .Case([&](math::LogOp) {
          return rising(maximum(operand(0), {0, 0}),
                        [](double y) { return std::log(y); });
        })
        .Case([&](math::Log1pOp) {
          return rising(maximum(operand(0), {-1, -1}),
                        [](double y) { return std::log1p(y); });
        })
        .Case([&](math::TanhOp) {
          return rising(operand(0), [](double y) { return std::tanh(y); });
        })
        .Case([&](math::ErfOp) {
          return rising(operand(0), [](double y) { return std::erf(y); });
        })
        .Case<math::SinOp, math::CosOp>([&](auto) { return Interval{-1, 1}; })
        .Case([&](math::PowFOp) {
          // A power of a nonnegative number is nonnegative.
          return operand(0).isNotNegative()
                     ? Interval{0, infinity, operand(0).isPositive()}
                     : Interval();
        })
        .Default([](Operation *) { return Interval(); });
  }

private:
  static Interval exponential(Interval a, double base) {
    return {std::pow(base, a.low), std::pow(base, a.high),
            a.low == -infinity || a.open};
  }

  /// Both branches, each for the arguments for which the comparison selects it.
  Interval ofSelect(arith::SelectOp select, Interval x) {
    Interval whenTrue = x, whenFalse = x;
    auto compare = select.getCondition().getDefiningOp<arith::CmpFOp>();
    FloatAttr limit;
    if (compare && compare.getLhs() == argument &&
        matchPattern(compare.getRhs(), m_Constant(&limit)) &&
        limit.getValue().isFinite()) {
      double c = limit.getValueAsDouble();
      Interval above = maximum(x, {c, c}), below = minimum(x, {c, c});
      switch (compare.getPredicate()) {
      case arith::CmpFPredicate::OGT:
        above.open |= above.low == c;
        [[fallthrough]];
      case arith::CmpFPredicate::OGE:
        whenTrue = above;
        whenFalse = below;
        break;
      case arith::CmpFPredicate::OLT:
      case arith::CmpFPredicate::OLE:
        whenTrue = below;
        whenFalse = above;
        break;
      default:
        break;
      }
    }
    return hull(of(select.getTrueValue(), whenTrue),
                of(select.getFalseValue(), whenFalse));
  }

  static constexpr int maxSteps = 10000;
  Value argument;
  int steps = 0;
};

} // namespace

static Sign signOf(Interval range) {
  return range.isPositive()      ? Sign::Positive
         : range.isNotNegative() ? Sign::NotNegative
                                 : Sign::Any;
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

Sign mlir::linattn::getFeatureSign(FeatureMappedOpInterface op) {
  FeatureMapKind kind = op.getFeatureMapKind();
  if (kind == FeatureMapKind::Region) {
    Block &block = op.getFeatureMapRegion().front();
    Value result = cast<YieldOp>(block.getTerminator()).getResult();
    return signOf(PhiRange(block).of(result, {}));
  }
  const FeatureMapTraits &map = getMapTraits(kind);
  // A logarithm has any sign.
  if (map.has(FeatureMapTraits::Log) &&
      cast<FeatureMapOp>(op.getOperation()).getFeatureMap()->getLog())
    return Sign::Any;
  return map.sign;
}

Sign mlir::linattn::getWeightSign(FeatureMappedOpInterface op, Value query,
                                  Value key) {
  if (op.getFeatureMapKind() != FeatureMapKind::Identity)
    return getFeatureSign(op);
  auto queryMap = query ? query.getDefiningOp<FeatureMapOp>() : FeatureMapOp();
  auto keyMap = key ? key.getDefiningOp<FeatureMapOp>() : FeatureMapOp();
  if (!queryMap || !keyMap)
    return Sign::Any;
  FeatureMapKind kind = cast<FeatureMappedOpInterface>(queryMap.getOperation())
                            .getFeatureMapKind();
  bool isSame = queryMap.getFeatureMapAttr() == keyMap.getFeatureMapAttr() &&
                llvm::equal(queryMap.getParameters(), keyMap.getParameters());
  Sign features = std::min(
      getFeatureSign(cast<FeatureMappedOpInterface>(queryMap.getOperation())),
      getFeatureSign(cast<FeatureMappedOpInterface>(keyMap.getOperation())));
  return isSame ? std::max(features, getMapTraits(kind).weightSign) : features;
}
