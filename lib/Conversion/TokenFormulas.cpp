//===- TokenFormulas.cpp - Feature maps of whole tokens -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of #linattn.feature_map for maps that read whole tokens, stated
// once for scalar loops and for vectors.
//
//===----------------------------------------------------------------------===//

#include "TokenFormulas.h"

#include "linattn/Dialect/MapParameters.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::linattn;

namespace {

class TokenFormulas {
public:
  TokenFormulas(LoopBuilder &lb, FeatureMapOp op, TokenRows &rows)
      : lb(lb), op(op), rows(rows), map(*op.getFeatureMap()),
        type(getAccumulationType(getElementTypeOrSelf(op.getInput()))),
        d(lb.dim(op.getInput(), 3)) {}

  void emit();

private:
  using Element = TokenRows::Element;
  using Row = TokenRows::Row;

  void emitL2norm();
  void emitSumNorm();
  void emitSoftmax();
  void emitFavor();
  void emitRandomFourier();
  void emitT2r();
  void emitHadamard();
  void emitCosformer();
  void emitHedgehog();
  void emitDpfp();
  void emitTaylor();
  void emitRebased();
  void emitOuterProduct();
  /// c x_i x_j for j < i, or for all j, at the features from `first` on.
  void emitPairs(Row x, Value first, Value c, bool all);

  void put(Value first, Value size, function_ref<Value(Value)> f) {
    rows.put({first}, size,
             [&](Value i) -> SmallVector<Value> { return {f(i)}; });
  }
  /// m, the rows of the first matrix.
  Value countRows() { return lb.dim(op.getParameters()[0], hasHeads(op, 0)); }
  Value sumOfSquares() {
    Element x = rows.getToken().lanes;
    return rows.sumOf(d, [&](Value i) { return square(x(i)); });
  }

  Value index(int64_t value) { return lb.index(value); }
  Value number(double value) { return lb.constant(type, value); }
  Value toFloat(Value integer) {
    if (integer.getType().isIndex())
      integer =
          arith::IndexCastOp::create(lb.b, lb.loc, lb.b.getI64Type(), integer);
    return arith::SIToFPOp::create(lb.b, lb.loc, type, integer);
  }
  Value square(Value x) { return lb.mulf(x, x); }
  Value relu(Value x) { return lb.maxf(x, lb.constant(x.getType(), 0.0)); }
  Value divide(Value x, Value y) {
    return arith::DivFOp::create(lb.b, lb.loc, x, y);
  }
  Value sqrt(Value x) { return math::SqrtOp::create(lb.b, lb.loc, x); }
  Value sin(Value x) { return math::SinOp::create(lb.b, lb.loc, x); }
  Value cos(Value x) { return math::CosOp::create(lb.b, lb.loc, x); }
  Value log(Value x) { return math::LogOp::create(lb.b, lb.loc, x); }

  LoopBuilder &lb;
  FeatureMapOp op;
  TokenRows &rows;
  FeatureMapAttr map;
  Type type;
  Value d;
};

} // namespace

bool mlir::linattn::hasHeads(FeatureMapOp op, size_t position) {
  return isPerHead(getMapParameters(op.getFeatureMap()->getKind())[position],
                   op.getParameters()[position]);
}

void TokenFormulas::emit() {
  switch (map.getKind()) {
  case FeatureMapKind::L2norm:
    return emitL2norm();
  case FeatureMapKind::SumNorm:
    return emitSumNorm();
  case FeatureMapKind::Softmax:
    return emitSoftmax();
  case FeatureMapKind::Favor:
  case FeatureMapKind::FavorHyperbolic:
    return emitFavor();
  case FeatureMapKind::RandomFourier:
  case FeatureMapKind::RandomFourierExp:
    return emitRandomFourier();
  case FeatureMapKind::T2r:
    return emitT2r();
  case FeatureMapKind::Hadamard:
    return emitHadamard();
  case FeatureMapKind::Cosformer:
    return emitCosformer();
  case FeatureMapKind::Hedgehog:
  case FeatureMapKind::HedgehogExp:
    return emitHedgehog();
  case FeatureMapKind::Dpfp:
    return emitDpfp();
  case FeatureMapKind::Taylor:
  case FeatureMapKind::TaylorFull:
    return emitTaylor();
  case FeatureMapKind::Rebased:
    return emitRebased();
  case FeatureMapKind::OuterProduct:
    return emitOuterProduct();
  default:
    llvm_unreachable("a map of one element");
  }
}

void TokenFormulas::emitL2norm() {
  Element x = rows.getToken().lanes;
  Value norm =
      rows.toLanes(sqrt(lb.addf(sumOfSquares(), number(getMapEps(map)))));
  put(index(0), d, [&](Value i) { return divide(x(i), norm); });
}

void TokenFormulas::emitSumNorm() {
  Element x = rows.getToken().lanes;
  Value total = rows.toLanes(lb.addf(rows.sumOf(d, x), number(getMapEps(map))));
  put(index(0), d, [&](Value i) { return divide(x(i), total); });
}

void TokenFormulas::emitSoftmax() {
  Element x = rows.getToken().lanes;
  double lowest = -std::numeric_limits<double>::infinity();
  Value most = rows.toLanes(rows.largestOf(d, lowest, x));
  Element weight =
      rows.keep([=](Value i) { return lb.exp(lb.subf(x(i), most)); }).lanes;
  Value total = rows.toLanes(rows.sumOf(d, weight));
  put(index(0), d, [&](Value i) { return divide(weight(i), total); });
}

void TokenFormulas::emitFavor() {
  bool isHyperbolic = map.getKind() == FeatureMapKind::FavorHyperbolic;
  Element z = rows.getProduct(0).lanes;
  Value m = countRows();
  Value count = toFloat(isHyperbolic ? lb.mul(m, index(2)) : m);
  // x·x/2 + ln(m)/2
  Value shift =
      rows.toLanes(lb.mulf(lb.addf(sumOfSquares(), log(count)), number(0.5)));
  auto finish = [&](Value y) {
    y = lb.subf(y, shift);
    return map.getLog() ? y : lb.exp(y);
  };
  if (!isHyperbolic)
    return put(index(0), m, [&](Value r) { return finish(z(r)); });
  rows.put({index(0), m}, m, [&](Value r) -> SmallVector<Value> {
    Value y = z(r);
    return {finish(y), finish(lb.negate(y))};
  });
}

void TokenFormulas::emitRandomFourier() {
  Element z = rows.getProduct(0).lanes;
  Value m = countRows();
  Value factor = divide(number(1), sqrt(toFloat(m)));
  if (map.getKind() == FeatureMapKind::RandomFourierExp)
    factor = lb.mulf(factor, lb.exp(lb.mulf(sumOfSquares(), number(0.5))));
  factor = rows.toLanes(factor);
  rows.put({index(0), m}, m, [&](Value r) -> SmallVector<Value> {
    Value y = z(r);
    return {lb.mulf(sin(y), factor), lb.mulf(cos(y), factor)};
  });
}

void TokenFormulas::emitT2r() {
  Element z = rows.getProduct(0).lanes, bias;
  if (op.getParameters().size() > 1)
    bias = rows.getParameter(1);
  put(index(0), countRows(), [&](Value r) {
    Value y = z(r);
    return relu(bias ? lb.addf(y, bias(r)) : y);
  });
}

void TokenFormulas::emitHadamard() {
  Element z = rows.getProduct(0).lanes, y = rows.getProduct(1).lanes;
  put(index(0), countRows(), [&](Value r) { return lb.mulf(z(r), y(r)); });
}

void TokenFormulas::emitCosformer() {
  Element x = rows.getToken().lanes;
  Value positions = op.getPositions();
  SmallVector<Value> at{rows.getTime()};
  if (cast<ShapedType>(positions.getType()).getRank() == 2)
    at.insert(at.begin(), rows.getBatch());
  double step = M_PI / 2 / double(map.getMaxLength());
  Value angle = lb.mulf(toFloat(lb.load(positions, at)), number(step));
  Value cosine = rows.toLanes(cos(angle)), sine = rows.toLanes(sin(angle));
  rows.put({index(0), d}, d, [&](Value i) -> SmallVector<Value> {
    Value y = relu(x(i));
    return {lb.mulf(y, cosine), lb.mulf(y, sine)};
  });
}

void TokenFormulas::emitHedgehog() {
  Element z = rows.getProduct(0).lanes;
  Value m = countRows(), most, total;
  // exp(±z − most), or their logarithms.
  auto both = [&](Value r, bool log) -> SmallVector<Value> {
    Value y = z(r);
    SmallVector<Value> pair{y, lb.negate(y)};
    for (Value &one : pair) {
      one = most ? lb.subf(one, most) : one;
      one = log ? one : lb.exp(one);
    }
    return pair;
  };
  if (map.getKind() == FeatureMapKind::Hedgehog) {
    most = rows.toLanes(rows.largestOf(m, 0.0, [&](Value r) {
      Value y = z(r);
      return lb.maxf(y, lb.negate(y));
    }));
    total = rows.toLanes(rows.sumOf(m, [&](Value r) {
      SmallVector<Value> pair = both(r, /*log=*/false);
      return lb.addf(pair[0], pair[1]);
    }));
  }
  rows.put({index(0), m}, m, [&](Value r) {
    SmallVector<Value> pair = both(r, map.getLog());
    if (total)
      for (Value &one : pair)
        one = divide(one, total);
    return pair;
  });
}

void TokenFormulas::emitDpfp() {
  Value twice = lb.mul(d, index(2));
  Element r = rows.getRolled(index(0));
  lb.forEach(index(map.getShifts()), [&](Value shift) {
    // Shifts count from 1.
    Element rolled = rows.getRolled(lb.rem(lb.add(shift, index(1)), twice));
    put(lb.mul(shift, twice), twice,
        [&](Value i) { return lb.mulf(r(i), rolled(i)); });
  });
}

void TokenFormulas::emitPairs(Row x, Value first, Value c, bool all) {
  c = rows.toLanes(c);
  lb.forEach(d, [&](Value i) {
    Value xi = x.scalar(i);
    // Rows 0 to i − 1 hold i d products, or 0 + 1 + … + (i − 1).
    Value before =
        all ? lb.mul(i, d) : lb.div(lb.mul(i, lb.sub(i, index(1))), index(2));
    put(lb.add(first, before), all ? d : i,
        [&](Value j) { return lb.mulf(lb.mulf(xi, x.lanes(j)), c); });
  });
}

void TokenFormulas::emitTaylor() {
  Row x = rows.getToken();
  Value size = toFloat(d), root = sqrt(size);
  Value linear = rows.toLanes(divide(number(1), sqrt(root)));
  Value diagonal = divide(number(1), sqrt(lb.mulf(size, number(2))));
  put(index(0), index(1), [&](Value) { return rows.toLanes(number(1)); });
  put(index(1), d, [&](Value i) { return lb.mulf(x.lanes(i), linear); });
  Value first = lb.add(d, index(1));
  if (map.getKind() == FeatureMapKind::TaylorFull)
    return emitPairs(x, first, diagonal, /*all=*/true);
  Value half = rows.toLanes(diagonal);
  put(first, d, [&](Value i) { return lb.mulf(square(x.lanes(i)), half); });
  emitPairs(x, lb.add(first, d), divide(number(1), root), /*all=*/false);
}

void TokenFormulas::emitRebased() {
  Element x = rows.getToken().lanes;
  Value size = toFloat(d);
  Value mean = rows.toLanes(divide(rows.sumOf(d, x), size));
  Value squares =
      rows.sumOf(d, [&](Value i) { return square(lb.subf(x(i), mean)); });
  Value deviation = rows.toLanes(
      sqrt(lb.addf(divide(squares, size), number(getMapEps(map)))));
  Element gamma = rows.getParameter(0), beta = rows.getParameter(1);
  Row y = rows.keep([=](Value i) {
    Value normalized = divide(lb.subf(x(i), mean), deviation);
    return lb.addf(lb.mulf(normalized, gamma(i)), beta(i));
  });
  Value factor = divide(number(1), sqrt(size)), diagonal = rows.toLanes(factor);
  put(index(0), d,
      [&](Value i) { return lb.mulf(square(y.lanes(i)), diagonal); });
  emitPairs(y, d, lb.mulf(factor, number(std::sqrt(2.0))), /*all=*/false);
}

void TokenFormulas::emitOuterProduct() {
  Row y = rows.getProduct(0), z = rows.getProduct(1);
  lb.forEach(d, [&](Value i) {
    // Rows 0 to i − 1 hold d + (d − 1) + … = i (2d − i + 1) / 2 products.
    Value before = lb.div(
        lb.mul(i, lb.add(lb.sub(lb.mul(index(2), d), i), index(1))), index(2));
    Value yi = y.scalar(i);
    put(before, lb.sub(d, i),
        [&](Value j) { return lb.mulf(yi, z.lanes(lb.add(i, j))); });
  });
}

void mlir::linattn::emitTokenFeatures(LoopBuilder &builder, FeatureMapOp op,
                                      TokenRows &rows) {
  TokenFormulas(builder, op, rows).emit();
}
