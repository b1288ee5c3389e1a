//===- FeatureMapGradient.cpp - Gradients of maps of whole tokens ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The formulas of #linattn.feature_map as equations on tensors, which have
// gradients of their own. Maps of one element decompose into linalg already.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "OpGradients.h"
#include "TensorBuilder.h"
#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/MapParameters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;
using namespace mlir::linattn;

namespace {

/// Emits the features of one op, in its accumulation type.
class TokenFeatures {
public:
  TokenFeatures(FeatureMapOp op, OpBuilder &b)
      : op(op), map(*op.getFeatureMap()),
        t(b, op.getLoc(),
          getAccumulationType(getElementTypeOrSelf(op.getInput()))) {}

  FailureOr<SmallVector<Value>> build();

private:
  using Scalar = function_ref<Value(OpBuilder &, Location, Value)>;

  Value each(Value x, Scalar function) {
    return t.map("bhtd->bhtd", x,
                 [&](OpBuilder &nested, Location at, ValueRange args) {
                   return function(nested, at, args[0]);
                 });
  }
  Value scaled(Value x, double factor) {
    return factor == 1.0 ? x : t.timesExp(x, Value(), factor);
  }
  Value exp(Value x) {
    return each(x, [](OpBuilder &nested, Location at, Value y) -> Value {
      return math::ExpOp::create(nested, at, y);
    });
  }
  Value negate(Value x) { return arith::NegFOp::create(t.b, t.loc, x); }
  Value relu(Value x) {
    return each(x, [](OpBuilder &nested, Location at, Value y) -> Value {
      return arith::MaximumFOp::create(nested, at, y,
                                       emitFloat(nested, at, y.getType(), 0.0));
    });
  }
  /// x·x for each token.
  Value square() { return t.product("bhtd,bhtd->bht", x, x); }
  /// W x with the map's parameter.
  Value project(unsigned position) {
    Value matrix = op.getParameters()[position];
    bool perHead = cast<ShapedType>(matrix.getType()).getRank() == 3;
    return t.product(perHead ? "bhtd,hmd->bhtm" : "bhtd,md->bhtm", x, matrix);
  }
  /// x divided by a function of a number for each token.
  Value divide(Value y, Value total, Scalar function);
  Value softmax(Value y);
  Value favor();
  Value randomFourier();
  Value cosformer();
  Value dpfp();
  Value standardized();
  /// x_i y_j for each row i and the columns that `columns` says.
  void appendRows(SmallVectorImpl<Value> &parts, Value left, Value right,
                  bool isUpper, double diagonal, double mixed);
  Value column(Value y, int64_t i, int64_t count = 1) {
    return t.slice(y, 3, t.b.getIndexAttr(i), t.b.getIndexAttr(count));
  }
  int64_t rowsOf(Value y) {
    return cast<ShapedType>(y.getType()).getDimSize(3);
  }

  FeatureMapOp op;
  FeatureMapAttr map;
  TensorBuilder t;
  Value x;
};

} // namespace

Value TokenFeatures::divide(Value y, Value total, Scalar function) {
  return t.map("bhtd,bht->bhtd", {y, total},
               [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
                 return arith::DivFOp::create(nested, at, args[0],
                                              function(nested, at, args[1]));
               });
}

Value TokenFeatures::softmax(Value y) {
  Value most = t.maximum("bhtd->bht", y);
  Value weights = t.map(
      "bhtd,bht->bhtd", {y, most},
      [](OpBuilder &nested, Location at, ValueRange args) -> Value {
        return math::ExpOp::create(
            nested, at, arith::SubFOp::create(nested, at, args[0], args[1]));
      });
  Value total = t.sum("bhtd->bht", weights);
  return divide(weights, total,
                [](OpBuilder &, Location, Value y) { return y; });
}

/// e^(±Wx − x·x/2 − ln(m)/2), or its logarithm.
Value TokenFeatures::favor() {
  Value z = project(0);
  if (map.getKind() == FeatureMapKind::FavorHyperbolic)
    z = t.concat(3, {z, negate(z)});
  double shift = std::log(double(rowsOf(z)));
  Value logarithm =
      t.map("bhtd,bht->bhtd", {z, square()},
            [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
              Type type = args[1].getType();
              Value both = arith::AddFOp::create(
                  nested, at, args[1], emitFloat(nested, at, type, shift));
              Value half = arith::MulFOp::create(
                  nested, at, both, emitFloat(nested, at, type, 0.5));
              return arith::SubFOp::create(nested, at, args[0], half);
            });
  return map.getLog() ? logarithm : exp(logarithm);
}

/// [sin Wx, cos Wx] / √m, times e^(x·x/2) for the exponential kind.
Value TokenFeatures::randomFourier() {
  Value z = project(0);
  Value sine = each(z, [](OpBuilder &nested, Location at, Value y) -> Value {
    return math::SinOp::create(nested, at, y);
  });
  Value cosine = each(z, [](OpBuilder &nested, Location at, Value y) -> Value {
    return math::CosOp::create(nested, at, y);
  });
  Value features =
      scaled(t.concat(3, {sine, cosine}), 1.0 / std::sqrt(double(rowsOf(z))));
  if (map.getKind() != FeatureMapKind::RandomFourierExp)
    return features;
  return t.map(
      "bhtd,bht->bhtd", {features, square()},
      [](OpBuilder &nested, Location at, ValueRange args) -> Value {
        Value half = arith::MulFOp::create(
            nested, at, args[1], emitFloat(nested, at, args[1].getType(), 0.5));
        return arith::MulFOp::create(nested, at, args[0],
                                     math::ExpOp::create(nested, at, half));
      });
}

Value TokenFeatures::cosformer() {
  Value positions = op.getPositions();
  bool perBatch = cast<ShapedType>(positions.getType()).getRank() == 2;
  double step = M_PI / 2 / double(map.getMaxLength());
  auto half = [&](bool isSine) {
    return t.map(
        perBatch ? "bhtd,bt->bhtd" : "bhtd,t->bhtd", {relu(x), positions},
        [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
          Value angle = arith::MulFOp::create(
              nested, at, arith::SIToFPOp::create(nested, at, t.type, args[1]),
              emitFloat(nested, at, t.type, step));
          Value factor = isSine ? Value(math::SinOp::create(nested, at, angle))
                                : Value(math::CosOp::create(nested, at, angle));
          return arith::MulFOp::create(nested, at, args[0], factor);
        });
  };
  return t.concat(3, {half(false), half(true)});
}

/// γ ⊙ (x − mean) / √(variance + eps) + β.
Value TokenFeatures::standardized() {
  double size = double(rowsOf(x)), eps = getMapEps(map);
  auto divided = [](OpBuilder &nested, Location at, Value y, double count) {
    return arith::DivFOp::create(nested, at, y,
                                 emitFloat(nested, at, y.getType(), count));
  };
  Value sum = t.sum("bhtd->bht", x);
  Value centred =
      t.map("bhtd,bht->bhtd", {x, sum},
            [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
              Value mean = divided(nested, at, args[1], size);
              return arith::SubFOp::create(nested, at, args[0], mean);
            });
  Value squares = t.product("bhtd,bhtd->bht", centred, centred);
  Value unit = divide(
      centred, squares, [&](OpBuilder &nested, Location at, Value y) -> Value {
        Value variance = divided(nested, at, y, size);
        variance = arith::AddFOp::create(
            nested, at, variance, emitFloat(nested, at, y.getType(), eps));
        return math::SqrtOp::create(nested, at, variance);
      });
  std::string subscripts = "bhtd";
  for (Value parameter : op.getParameters())
    subscripts +=
        cast<ShapedType>(parameter.getType()).getRank() == 2 ? ",hd" : ",d";
  return t.map(subscripts + "->bhtd",
               {unit, op.getParameters()[0], op.getParameters()[1]},
               [](OpBuilder &nested, Location at, ValueRange args) -> Value {
                 Value y = arith::MulFOp::create(nested, at, args[0], args[1]);
                 return arith::AddFOp::create(nested, at, y, args[2]);
               });
}

/// r ⊙ roll(r, j) for each shift j, r = relu([x, −x]).
Value TokenFeatures::dpfp() {
  Value r = relu(t.concat(3, {x, negate(x)}));
  int64_t size = rowsOf(r);
  SmallVector<Value> parts;
  for (int64_t shift = 1; shift <= map.getShifts(); ++shift) {
    int64_t moved = shift % size;
    Value rolled = moved == 0 ? r
                              : t.concat(3, {column(r, size - moved, moved),
                                             column(r, 0, size - moved)});
    parts.push_back(t.mul(r, rolled));
  }
  return t.concat(3, parts);
}

/// Products of row i with the columns from i on, or before i.
void TokenFeatures::appendRows(SmallVectorImpl<Value> &parts, Value left,
                               Value right, bool isUpper, double diagonal,
                               double mixed) {
  int64_t size = rowsOf(left);
  if (!isUpper)
    parts.push_back(scaled(t.mul(left, right), diagonal));
  for (int64_t i = isUpper ? 0 : 1; i < size; ++i)
    parts.push_back(scaled(
        t.product("bhto,bhtd->bhtd", column(left, i),
                  isUpper ? column(right, i, size - i) : column(right, 0, i)),
        mixed));
}

FailureOr<SmallVector<Value>> TokenFeatures::build() {
  x = scaled(t.convert(op.getInput()), getMapScale(map));
  double eps = getMapEps(map);
  auto plusEps = [&](OpBuilder &nested, Location at, Value y) -> Value {
    return arith::AddFOp::create(nested, at, y,
                                 emitFloat(nested, at, y.getType(), eps));
  };
  double size = double(rowsOf(x)), root = std::sqrt(size);
  Value features;
  SmallVector<Value> parts;
  switch (map.getKind()) {
  case FeatureMapKind::Softmax:
    features = softmax(x);
    break;
  case FeatureMapKind::L2norm:
    features = divide(
        x, square(), [&](OpBuilder &nested, Location at, Value y) -> Value {
          return math::SqrtOp::create(nested, at, plusEps(nested, at, y));
        });
    break;
  case FeatureMapKind::SumNorm:
    features = divide(x, t.sum("bhtd->bht", x), plusEps);
    break;
  case FeatureMapKind::Favor:
  case FeatureMapKind::FavorHyperbolic:
    features = favor();
    break;
  case FeatureMapKind::RandomFourier:
  case FeatureMapKind::RandomFourierExp:
    features = randomFourier();
    break;
  case FeatureMapKind::T2r: {
    Value z = project(0);
    if (op.getParameters().size() > 1) {
      Value bias = op.getParameters()[1];
      bool perHead = cast<ShapedType>(bias.getType()).getRank() == 2;
      z = t.map(perHead ? "bhtm,hm->bhtm" : "bhtm,m->bhtm", {z, bias},
                [](OpBuilder &nested, Location at, ValueRange args) -> Value {
                  return arith::AddFOp::create(nested, at, args[0], args[1]);
                });
    }
    features = relu(z);
    break;
  }
  case FeatureMapKind::Hadamard:
    features = t.mul(project(0), project(1));
    break;
  case FeatureMapKind::Hedgehog:
  case FeatureMapKind::HedgehogExp: {
    Value z = project(0);
    Value both = t.concat(3, {z, negate(z)});
    bool isSoftmax = map.getKind() == FeatureMapKind::Hedgehog;
    features = isSoftmax ? softmax(both) : map.getLog() ? both : exp(both);
    break;
  }
  case FeatureMapKind::Cosformer:
    features = cosformer();
    break;
  case FeatureMapKind::Dpfp:
    features = dpfp();
    break;
  case FeatureMapKind::Taylor: {
    SmallVector<OpFoldResult> sizes = t.sizes(x);
    sizes[3] = t.b.getIndexAttr(1);
    parts = {t.filled(sizes, 1.0), scaled(x, 1.0 / std::sqrt(root))};
    appendRows(parts, x, x, /*isUpper=*/false, 1.0 / std::sqrt(2.0 * size),
               1.0 / root);
    features = t.concat(3, parts);
    break;
  }
  case FeatureMapKind::Rebased: {
    Value y = standardized();
    appendRows(parts, y, y, /*isUpper=*/false, 1.0 / root,
               std::sqrt(2.0 / size));
    features = t.concat(3, parts);
    break;
  }
  case FeatureMapKind::OuterProduct:
    appendRows(parts, project(0), project(1), /*isUpper=*/true, 1.0, 1.0);
    features = t.concat(3, parts);
    break;
  default:
    return emitNoGradient(op)
           << " for the map " << stringifyFeatureMapKind(map.getKind());
  }
  TensorBuilder narrow(t.b, t.loc, getElementTypeOrSelf(op.getOutput()));
  return SmallVector<Value>{narrow.convert(features)};
}

LogicalResult mlir::linattn::buildFeatureMapGradient(FeatureMapOp op,
                                                     OpBuilder &b,
                                                     Cotangents &c) {
  FeatureMapKind kind =
      cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind();
  if (!needsWholeToken(kind))
    return differentiateThrough(
        b, op, c, [&](OpBuilder &at) { return op.decomposeOperation(at); });
  for (Value value : {op.getInput(), op.getOutput()})
    if (cast<ShapedType>(value.getType()).isDynamicDim(3))
      return emitNoGradient(op) << " for a dynamic number of features";
  return differentiateThrough(
      b, op, c, [&](OpBuilder &at) { return TokenFeatures(op, at).build(); });
}
