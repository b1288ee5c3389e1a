//===- DecomposeSteps.cpp - The equations of decompositions ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeSteps.h"

#include "linattn/Dialect/Scores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

Value DecomposeSteps::features(Value x, bool stabilised, StringRef maxOver,
                               Scale scale) {
  bool subtractMax = needsRowMax(op.getFeatureMapKind(), stabilised);
  SmallVector<Value> inputs{x};
  std::string subscripts = "bhtk";
  if (subtractMax) {
    inputs.push_back(maximum(x, maxOver));
    subscripts += "," + maxOver.str();
  }
  return elementwise(
      b, loc, subscripts + "->bhtk", inputs, emptyLike(x),
      [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        Value value = convertFloat(nested, nestedLoc, args[0], accumulation);
        if (subtractMax)
          value = arith::SubFOp::create(nested, nestedLoc, value, args[1]);
        value = emitFeatureMap(nested, nestedLoc, op, value);
        return scale.apply(nested, nestedLoc, value);
      });
}

Value DecomposeSteps::maximum(Value x, StringRef over) {
  SmallVector<OpFoldResult> sizes;
  for (size_t i = 0; i < over.size(); ++i)
    sizes.push_back(dim(x, i));
  return elementwise(
      b, loc, "bhtk->" + over.str(), x,
      filled(b, loc, sizes, accumulation,
             -std::numeric_limits<double>::infinity()),
      [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        return arith::MaximumFOp::create(
            nested, nestedLoc,
            convertFloat(nested, nestedLoc, args[0], accumulation), args[1]);
      });
}

Value DecomposeSteps::maskRows(Value rows, Value mask) {
  if (!mask)
    return rows;
  return elementwise(
      b, loc, "bhtk,bt->bhtk", {rows, mask}, emptyLike(rows),
      [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        Value zero = emitFloat(nested, nestedLoc, accumulation, 0.0);
        return arith::SelectOp::create(
            nested, nestedLoc, args[1],
            convertFloat(nested, nestedLoc, args[0], accumulation), zero);
      });
}

Value DecomposeSteps::firstPosition(Value scores) {
  AffineExpr d0, d1;
  bindDims(b.getContext(), d0, d1);
  return getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(b, loc, d0 - d1,
                                            {dim(scores, 3), dim(scores, 2)}));
}

Value DecomposeSteps::adjustScores(QuadraticOp quadratic, Value scores) {
  if (!adjustsScores(quadratic))
    return scores;
  Value shift = firstPosition(scores), slopes = quadratic.getSlopes();
  SmallVector<Value> inputs{scores};
  if (slopes)
    inputs.push_back(slopes);
  return elementwise(
      b, loc, slopes ? "bhij,h->bhij" : "bhij->bhij", inputs, emptyLike(scores),
      [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        Value i = linalg::IndexOp::create(nested, nestedLoc, 2);
        Value j = linalg::IndexOp::create(nested, nestedLoc, 3);
        Value position = arith::AddIOp::create(nested, nestedLoc, i, shift);
        Value slope =
            slopes ? convertFloat(nested, nestedLoc, args[1], accumulation)
                   : Value();
        return emitAdjustedScore(nested, nestedLoc, quadratic, args[0], slope,
                                 position, j);
      });
}

Value DecomposeSteps::maskScores(Value scores, const Sight &sight,
                                 double otherwise) {
  Value mask = sight.mask, prefix = sight.prefix;
  if (!sight.causal && !mask && !sight.pattern)
    return scores;
  Value shift = sight.causal || sight.pattern ? firstPosition(scores) : Value();
  SmallVector<Value> inputs{scores};
  std::string subscripts = "bhij";
  if (mask) {
    inputs.push_back(mask);
    subscripts += ",bj";
  }
  if (prefix) {
    inputs.push_back(prefix);
    subscripts += ",b";
  }
  return elementwise(
      b, loc, subscripts + "->bhij", inputs, emptyLike(scores),
      [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        Value keep = mask ? args[1] : Value();
        auto require = [&](Value condition) {
          keep = keep ? Value(arith::AndIOp::create(nested, nestedLoc, keep,
                                                    condition))
                      : condition;
        };
        Value position, j;
        if (shift) {
          Value i = linalg::IndexOp::create(nested, nestedLoc, 2);
          j = linalg::IndexOp::create(nested, nestedLoc, 3);
          position = arith::AddIOp::create(nested, nestedLoc, i, shift);
        }
        if (sight.pattern)
          require(emitSees(nested, nestedLoc, sight.pattern, position, j));
        if (sight.causal) {
          Value visible = arith::CmpIOp::create(
              nested, nestedLoc, arith::CmpIPredicate::sle, j, position);
          if (prefix) {
            Value length = arith::IndexCastOp::create(
                nested, nestedLoc, b.getIndexType(), args[mask ? 2 : 1]);
            Value isPrompt = arith::CmpIOp::create(
                nested, nestedLoc, arith::CmpIPredicate::slt, j, length);
            visible =
                arith::OrIOp::create(nested, nestedLoc, visible, isPrompt);
          }
          require(visible);
        }
        Value other =
            emitFloat(nested, nestedLoc, args[0].getType(), otherwise);
        return arith::SelectOp::create(nested, nestedLoc, keep, args[0], other);
      });
}

Value DecomposeSteps::withSinks(
    Value sinks, ArrayRef<Value> rows,
    function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  std::string subscripts;
  for (size_t i = 0; i < rows.size(); ++i)
    subscripts += "bht,";
  SmallVector<Value> inputs(rows);
  inputs.push_back(sinks);
  Value like = rows.front();
  Value empty = tensor::EmptyOp::create(
      b, loc, {dim(like, 0), dim(like, 1), dim(like, 2)}, accumulation);
  return elementwise(
      b, loc, subscripts + "h->bht", inputs, empty,
      [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        SmallVector<Value> converted(args.drop_back());
        converted.resize(rows.size());
        converted.push_back(
            convertFloat(nested, nestedLoc, args[rows.size()], accumulation));
        return body(nested, nestedLoc, converted);
      });
}

Value DecomposeSteps::sumDistances(Value x) {
  Value shift = firstPosition(x);
  return elementwise(
      b, loc, "bhij->bhi", x, zeros({dim(x, 0), dim(x, 1), dim(x, 2)}),
      [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
        Value i = linalg::IndexOp::create(nested, at, 2);
        Value j = linalg::IndexOp::create(nested, at, 3);
        Value position = arith::AddIOp::create(nested, at, i, shift);
        Value distance =
            emitDistance(nested, at, args[0].getType(), position, j);
        return arith::SubFOp::create(
            nested, at, args[1],
            arith::MulFOp::create(nested, at, args[0], distance));
      });
}

Value DecomposeSteps::rowSums(Value rows) {
  return elementwise(
      b, loc, "bhij->bhi", rows,
      zeros({dim(rows, 0), dim(rows, 1), dim(rows, 2)}),
      [](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        return arith::AddFOp::create(nested, nestedLoc, args[0], args[1]);
      });
}

SmallVector<Value> DecomposeSteps::write(Value k, Value v, Value state,
                                         Value normalizer) {
  SmallVector<Value> written{contract("bhtk,bhtv->bhkv", k, v, state)};
  if (normalizer)
    written.push_back(elementwise(
        b, loc, "bhtk->bhk", k, normalizer,
        [](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
          return arith::AddFOp::create(nested, nestedLoc, args[0], args[1]);
        }));
  return written;
}

Value DecomposeSteps::finish(
    Value numerator, Value denominator, Value destination,
    function_ref<Value(OpBuilder &, Location, Value, Value)> divide) {
  SmallVector<Value> inputs{numerator};
  if (denominator)
    inputs.push_back(denominator);
  return elementwise(
      b, loc, denominator ? "bhiv,bhi->bhiv" : "bhiv->bhiv", inputs,
      destination,
      [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
        Value value =
            denominator ? divide(nested, nestedLoc, args[0], args[1]) : args[0];
        return convertFloat(nested, nestedLoc, value, tokenType);
      });
}

Value DecomposeSteps::finishNormalized(Value numerator, Value denominator,
                                       Value destination,
                                       std::optional<NormalizeAttr> normalize) {
  return finish(
      numerator, denominator, destination,
      [&](OpBuilder &nested, Location nestedLoc, Value num, Value den) {
        return emitNormalize(nested, nestedLoc, *normalize, tokenType, num,
                             den);
      });
}
