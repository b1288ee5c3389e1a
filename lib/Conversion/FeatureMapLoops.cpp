//===- FeatureMapLoops.cpp - Feature maps as scalar loops -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of #linattn.feature_map, feature by feature. Nothing is kept
// between two features: what one needs of the others (a maximum, a norm) is
// computed for the token beforehand.
//
//===----------------------------------------------------------------------===//

#include "NaiveLoops.h"

#include "linattn/Dialect/MapParameters.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::linattn;

namespace {

class TokenMap : public LoopBuilder {
public:
  TokenMap(OpBuilder &b, FeatureMapOp op, bool lanes)
      : LoopBuilder(b, op.getLoc()), op(op), map(*op.getFeatureMap()),
        type(getAccumulationType(getElementTypeOrSelf(op.getInput()))),
        d(dim(op.getInput(), 3)) {
    forThreads = lanes;
  }

  void emit() {
    parallelRows(op.getInput(), [&](Value ofBatch, Value ofHead, Value token) {
      batch = ofBatch;
      head = ofHead;
      t = token;
      emitToken();
    });
  }

private:
  Value number(double value) { return constant(type, value); }
  Value toFloat(Value integer) {
    if (integer.getType().isIndex())
      integer = arith::IndexCastOp::create(b, loc, b.getI64Type(), integer);
    return arith::SIToFPOp::create(b, loc, type, integer);
  }
  Value divide(Value x, Value y) { return arith::DivFOp::create(b, loc, x, y); }
  Value sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
  Value relu(Value x) { return maxf(x, number(0)); }

  /// The element of the token, times the map's scale.
  Value x(Value i) {
    Value value = convert(load(op.getInput(), {batch, head, t, i}), type);
    double scale = getMapScale(map);
    return scale == 1.0 ? value : mulf(value, number(scale));
  }
  /// A parameter's element; its last index is the last of `indices`.
  Value parameter(unsigned position, SmallVector<Value> indices) {
    Value operand = op.getParameters()[position];
    if (isPerHead(getMapParameters(map.getKind())[position], operand))
      indices.insert(indices.begin(), head);
    return convert(load(operand, indices), type);
  }
  Value rows() {
    Value matrix = op.getParameters()[0];
    bool perHead = cast<ShapedType>(matrix.getType()).getRank() == 3;
    return dim(matrix, perHead);
  }
  /// (W x)_r
  Value project(unsigned position, Value r) {
    return reduce(d, number(0), [&](Value i, Value sum) {
      return addf(sum, mulf(parameter(position, {r, i}), x(i)));
    });
  }
  Value sum(function_ref<Value(Value)> term) { return sumLanes(d, type, term); }
  void put(Value feature, Value value) {
    store(convert(value, getElementTypeOrSelf(op.getOutput())), op.getOutput(),
          {batch, head, t, feature});
  }

  void emitToken();
  void emitFavor();
  void emitRandomFourier();
  void emitHedgehog();
  void emitSoftmax();
  void emitCosformer();
  void emitDpfp();
  void emitTaylor();
  void emitRebased();

  FeatureMapOp op;
  FeatureMapAttr map;
  Type type;
  Value d, batch, head, t;
};

} // namespace

void TokenMap::emitToken() {
  FeatureMapKind kind = map.getKind();
  switch (kind) {
  case FeatureMapKind::Softmax:
    return emitSoftmax();
  case FeatureMapKind::L2norm: {
    Value square = sum([&](Value i) { return mulf(x(i), x(i)); });
    Value norm = sqrt(addf(square, number(getMapEps(map))));
    return forLanes(d, [&](Value i) { put(i, divide(x(i), norm)); });
  }
  case FeatureMapKind::SumNorm: {
    Value total =
        addf(sum([&](Value i) { return x(i); }), number(getMapEps(map)));
    return forLanes(d, [&](Value i) { put(i, divide(x(i), total)); });
  }
  case FeatureMapKind::Favor:
  case FeatureMapKind::FavorHyperbolic:
    return emitFavor();
  case FeatureMapKind::RandomFourier:
  case FeatureMapKind::RandomFourierExp:
    return emitRandomFourier();
  case FeatureMapKind::T2r:
    return forLanes(rows(), [&](Value r) {
      Value z = project(0, r);
      if (op.getParameters().size() > 1)
        z = addf(z, parameter(1, {r}));
      put(r, relu(z));
    });
  case FeatureMapKind::Hadamard:
    return forLanes(
        rows(), [&](Value r) { put(r, mulf(project(0, r), project(1, r))); });
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
    return forLanes(d, [&](Value i) {
      // Rows 0 to i − 1 hold d + (d − 1) + … = i (2d − i + 1) / 2 products.
      Value before =
          div(mul(i, add(sub(mul(index(2), d), i), index(1))), index(2));
      Value y = project(0, i);
      forEach(i, d, 1, [&](Value j) {
        put(add(before, sub(j, i)), mulf(y, project(1, j)));
      });
    });
  default:
    llvm_unreachable("a map of one element");
  }
}

void TokenMap::emitSoftmax() {
  double lowest = -std::numeric_limits<double>::infinity();
  Value most = maxLanes(d, number(lowest), [&](Value i) { return x(i); });
  auto weight = [&](Value i) { return exp(subf(x(i), most)); };
  Value total = sum(weight);
  forLanes(d, [&](Value i) { put(i, divide(weight(i), total)); });
}

void TokenMap::emitFavor() {
  bool isHyperbolic = map.getKind() == FeatureMapKind::FavorHyperbolic;
  Value m = rows();
  Value count = toFloat(isHyperbolic ? mul(m, index(2)) : m);
  // x·x/2 + ln(m)/2
  Value square = sum([&](Value i) { return mulf(x(i), x(i)); });
  Value shift =
      mulf(addf(square, math::LogOp::create(b, loc, count)), number(0.5));
  auto finish = [&](Value feature, Value z) {
    z = subf(z, shift);
    put(feature, map.getLog() ? z : exp(z));
  };
  forLanes(m, [&](Value r) {
    Value z = project(0, r);
    finish(r, z);
    if (isHyperbolic)
      finish(add(m, r), negate(z));
  });
}

void TokenMap::emitRandomFourier() {
  Value m = rows();
  Value factor = divide(number(1), sqrt(toFloat(m)));
  if (map.getKind() == FeatureMapKind::RandomFourierExp) {
    Value square = sum([&](Value i) { return mulf(x(i), x(i)); });
    factor = mulf(factor, exp(mulf(square, number(0.5))));
  }
  forLanes(m, [&](Value r) {
    Value z = project(0, r);
    put(r, mulf(math::SinOp::create(b, loc, z), factor));
    put(add(m, r), mulf(math::CosOp::create(b, loc, z), factor));
  });
}

void TokenMap::emitHedgehog() {
  Value m = rows();
  Value most = number(0), total;
  bool isSoftmax = map.getKind() == FeatureMapKind::Hedgehog;
  auto both = [&](Value r) {
    Value z = subf(project(0, r), most),
          mirror = subf(negate(project(0, r)), most);
    return std::pair(z, mirror);
  };
  if (isSoftmax) {
    most = maxLanes(m, number(0), [&](Value r) -> Value {
      Value z = project(0, r);
      return maxf(z, negate(z));
    });
    total = sumLanes(m, type, [&](Value r) {
      auto [z, mirror] = both(r);
      return addf(exp(z), exp(mirror));
    });
  }
  forLanes(m, [&](Value r) {
    auto [z, mirror] = both(r);
    for (auto [feature, value] : {std::pair(r, z), {add(m, r), mirror}}) {
      Value y = map.getLog() ? value : exp(value);
      put(feature, isSoftmax ? divide(y, total) : y);
    }
  });
}

void TokenMap::emitCosformer() {
  Value positions = op.getPositions();
  bool perBatch = cast<ShapedType>(positions.getType()).getRank() == 2;
  Value position =
      perBatch ? load(positions, {batch, t}) : load(positions, {t});
  double step = M_PI / 2 / double(map.getMaxLength());
  Value angle = mulf(toFloat(position), number(step));
  Value cosine = math::CosOp::create(b, loc, angle);
  Value sine = math::SinOp::create(b, loc, angle);
  forLanes(d, [&](Value i) {
    Value y = relu(x(i));
    put(i, mulf(y, cosine));
    put(add(d, i), mulf(y, sine));
  });
}

void TokenMap::emitDpfp() {
  Value twice = mul(d, index(2));
  // r = relu([x, −x])
  auto r = [&](Value i) {
    Value isFirst =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, i, d);
    Value value = x(select(isFirst, i, sub(i, d)));
    return relu(select(isFirst, value, negate(value)));
  };
  forEach(index(map.getShifts()), [&](Value shift) {
    forLanes(twice, [&](Value i) {
      // roll(r, j)_i = r_{i − j}, j counted from 1.
      Value moved = sub(sub(i, shift), index(1));
      Value wrapped = rem(moved, twice);
      Value isNegative = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::slt, wrapped, index(0));
      wrapped = select(isNegative, add(wrapped, twice), wrapped);
      put(add(mul(shift, twice), i), mulf(r(i), r(wrapped)));
    });
  });
}

void TokenMap::emitTaylor() {
  Value size = toFloat(d), root = sqrt(size);
  Value linear = divide(number(1), sqrt(root));
  Value diagonal = divide(number(1), sqrt(mulf(size, number(2))));
  Value mixed = divide(number(1), root);
  put(index(0), number(1));
  Value first = add(d, index(1));
  forLanes(d, [&](Value i) {
    put(add(i, index(1)), mulf(x(i), linear));
    if (map.getKind() == FeatureMapKind::TaylorFull) {
      forEach(d, [&](Value j) {
        put(add(first, add(mul(i, d), j)), mulf(mulf(x(i), x(j)), diagonal));
      });
      return;
    }
    put(add(first, i), mulf(mulf(x(i), x(i)), diagonal));
    Value before = add(add(first, d), div(mul(i, sub(i, index(1))), index(2)));
    forEach(i, [&](Value j) {
      put(add(before, j), mulf(mulf(x(i), x(j)), mixed));
    });
  });
}

void TokenMap::emitRebased() {
  Value size = toFloat(d), root = sqrt(size);
  Value mean = divide(sum([&](Value i) { return x(i); }), size);
  Value variance = divide(sum([&](Value i) -> Value {
                            Value centred = subf(x(i), mean);
                            return mulf(centred, centred);
                          }),
                          size);
  Value deviation = sqrt(addf(variance, number(getMapEps(map))));
  auto y = [&](Value i) {
    Value centred = divide(subf(x(i), mean), deviation);
    return addf(mulf(centred, parameter(0, {i})), parameter(1, {i}));
  };
  Value diagonal = divide(number(1), root);
  Value mixed = mulf(diagonal, number(std::sqrt(2.0)));
  forLanes(d, [&](Value i) {
    Value yi = y(i);
    put(i, mulf(mulf(yi, yi), diagonal));
    Value before = add(d, div(mul(i, sub(i, index(1))), index(2)));
    forEach(i,
            [&](Value j) { put(add(before, j), mulf(mulf(yi, y(j)), mixed)); });
  });
}

/// A map of one element, or of elements below their maximum.
static void lowerElementMap(OpBuilder &b, FeatureMapOp op, bool lanes) {
  NaiveOp naive(b, cast<FeatureMappedOpInterface>(op.getOperation()),
                op.getInput(), Scale(), /*stabilised=*/false);
  naive.forThreads = lanes;
  Value size = naive.dim(op.getInput(), 3);
  naive.parallelRows(op.getInput(), [&](Value batch, Value head, Value t) {
    Value shift;
    if (naive.rowMax)
      shift = naive.maxLanes(size, naive.lowestStart(), [&](Value d) {
        return naive.loadAs(op.getInput(), {batch, head, t, d});
      });
    naive.forLanes(size, [&](Value d) {
      Value y = naive.feature(op.getInput(), {batch, head, t, d}, shift);
      naive.store(naive.convert(y, getElementTypeOrSelf(op.getOutput())),
                  op.getOutput(), {batch, head, t, d});
    });
  });
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, FeatureMapOp op,
                                      bool lanes) {
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  if (needsWholeToken(mapped.getFeatureMapKind()))
    return TokenMap(b, op, lanes).emit();
  lowerElementMap(b, op, lanes);
}
