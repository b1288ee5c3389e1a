//===- Decompose.cpp - Structured ops as linalg on tensors ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op as a handful of linalg ops, one equation per step. A scan becomes the
// masked quadratic form with an initial state, so chunk first, then decompose,
// gives the chunk form.
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/MapParameters.h"
#include "linattn/Dialect/ScanTraits.h"
#include "linattn/Dialect/Scores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

namespace {

constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// The keys that a query sees: up to its own position, unmasked, in the prefix,
/// in the pattern, as far as each is given.
struct Sight {
  bool causal = false;
  Value mask = {}, prefix = {};
  PatternAttr pattern = {};
};

Sight sightOf(QuadraticOp op) {
  return {op.getCausal(), op.getMask(), op.getPrefix(), op.getPatternAttr()};
}

/// Emits the steps of one op's decomposition.
class Steps {
public:
  Steps(OpBuilder &b, FeatureMappedOpInterface op, Type tokenType)
      : b(b), loc(op->getLoc()), op(op), tokenType(tokenType),
        accumulation(getAccumulationType(op)) {}

  OpFoldResult dim(Value value, int64_t index) {
    return tensor::getMixedSize(b, loc, value, index);
  }
  Value zeros(ArrayRef<OpFoldResult> sizes) {
    return filled(b, loc, sizes, accumulation, 0.0);
  }
  Value contract(StringRef subscripts, Value lhs, Value rhs, Value init) {
    return einsum(b, loc, subscripts, lhs, rhs, init);
  }
  /// lhs_i · rhs_j of rows of one head size, [B, H, I, J].
  Value dotRows(Value lhs, Value rhs, OpFoldResult heads) {
    return contract("bhik,bhjk->bhij", lhs, rhs,
                    zeros({dim(lhs, 0), heads, dim(lhs, 2), dim(rhs, 2)}));
  }
  Value emptyLike(Value value) {
    return tensor::EmptyOp::create(b, loc, tensor::getMixedSizes(b, loc, value),
                                   accumulation);
  }

  /// scale · φ(x), in the accumulation type. `maxOver` is what the maximum of a
  /// stabilised map is taken over: one token ("bht") or one head ("bh").
  Value features(Value x, bool stabilised, StringRef maxOver, Scale scale) {
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

  Value maximum(Value x, StringRef over) {
    SmallVector<OpFoldResult> sizes;
    for (size_t i = 0; i < over.size(); ++i)
      sizes.push_back(dim(x, i));
    return elementwise(
        b, loc, "bhtk->" + over.str(), x,
        filled(b, loc, sizes, accumulation, minusInfinity),
        [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
          return arith::MaximumFOp::create(
              nested, nestedLoc,
              convertFloat(nested, nestedLoc, args[0], accumulation), args[1]);
        });
  }

  /// Sets rows of masked tokens to zero, in the accumulation type: keys so that
  /// they weigh nothing, values because 0 · NaN is not 0.
  Value maskRows(Value rows, Value mask) {
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

  /// Tk − Tq of scores [B, H, Tq, Tk]: the position of query 0.
  Value firstPosition(Value scores) {
    AffineExpr d0, d1;
    bindDims(b.getContext(), d0, d1);
    return getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(
            b, loc, d0 - d1, {dim(scores, 3), dim(scores, 2)}));
  }

  /// Softcap and ALiBi's bias of scores [B, H, Tq, Tk].
  Value adjustScores(QuadraticOp quadratic, Value scores) {
    if (!adjustsScores(quadratic))
      return scores;
    Value shift = firstPosition(scores), slopes = quadratic.getSlopes();
    SmallVector<Value> inputs{scores};
    if (slopes)
      inputs.push_back(slopes);
    return elementwise(
        b, loc, slopes ? "bhij,h->bhij" : "bhij->bhij", inputs,
        emptyLike(scores),
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

  /// Replaces scores by `otherwise` where key j may not be seen by query i:
  /// j > i + Tk − Tq and not in the prefix, out of the pattern, or masked.
  Value maskScores(Value scores, const Sight &sight, double otherwise) {
    Value mask = sight.mask, prefix = sight.prefix;
    if (!sight.causal && !mask && !sight.pattern)
      return scores;
    Value shift =
        sight.causal || sight.pattern ? firstPosition(scores) : Value();
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
          return arith::SelectOp::create(nested, nestedLoc, keep, args[0],
                                         other);
        });
  }

  /// Rows [B, H, T] from others of that shape and a sink for each head, the
  /// last of `body`'s arguments.
  Value withSinks(Value sinks, ArrayRef<Value> rows,
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

  /// −Σ_j |p − j| x_ij of [B, H, I, J], with query i at position p.
  Value sumDistances(Value x) {
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

  /// Row sums of [B, H, I, J].
  Value rowSums(Value rows) {
    return elementwise(
        b, loc, "bhij->bhi", rows,
        zeros({dim(rows, 0), dim(rows, 1), dim(rows, 2)}),
        [](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
          return arith::AddFOp::create(nested, nestedLoc, args[0], args[1]);
        });
  }

  /// S_1 = S_0 + KᵀV and, with a normalizer, z_1 = z_0 + Σ K.
  SmallVector<Value> write(Value k, Value v, Value state, Value normalizer) {
    SmallVector<Value> written{contract("bhtk,bhtv->bhkv", k, v, state)};
    if (normalizer)
      written.push_back(elementwise(
          b, loc, "bhtk->bhk", k, normalizer,
          [](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
            return arith::AddFOp::create(nested, nestedLoc, args[0], args[1]);
          }));
    return written;
  }

  /// Divides under `normalize` and writes the destination in the token type.
  Value
  finish(Value numerator, Value denominator, Value destination,
         function_ref<Value(OpBuilder &, Location, Value, Value)> divide) {
    SmallVector<Value> inputs{numerator};
    if (denominator)
      inputs.push_back(denominator);
    return elementwise(
        b, loc, denominator ? "bhiv,bhi->bhiv" : "bhiv->bhiv", inputs,
        destination,
        [&](OpBuilder &nested, Location nestedLoc, ValueRange args) -> Value {
          Value value = denominator
                            ? divide(nested, nestedLoc, args[0], args[1])
                            : args[0];
          return convertFloat(nested, nestedLoc, value, tokenType);
        });
  }

  Value finishNormalized(Value numerator, Value denominator, Value destination,
                         std::optional<NormalizeAttr> normalize) {
    return finish(
        numerator, denominator, destination,
        [&](OpBuilder &nested, Location nestedLoc, Value num, Value den) {
          return emitNormalize(nested, nestedLoc, *normalize, tokenType, num,
                               den);
        });
  }

  OpBuilder &b;
  Location loc;
  FeatureMappedOpInterface op;
  Type tokenType;
  Type accumulation;
};

} // namespace

/// Grouped heads are read in place by their number, which has to be known.
static LogicalResult checkHeads(Operation *op, ValueRange operands) {
  SmallVector<int64_t> sizes = llvm::map_to_vector(operands, [](Value operand) {
    return cast<ShapedType>(operand.getType()).getDimSize(1);
  });
  auto isStatic = [](int64_t size) { return !ShapedType::isDynamic(size); };
  if (llvm::all_of(sizes, isStatic))
    return success();
  llvm::erase_if(sizes, ShapedType::isDynamic);
  if (sizes.empty() || llvm::all_equal(sizes))
    return success();
  return op->emitOpError(
      "cannot be decomposed: its head counts differ, and not "
      "all are known");
}

//===----------------------------------------------------------------------===//
// quadratic
//===----------------------------------------------------------------------===//

/// The row maximum where a sink is one of the scores.
static Value maximumOfTwo(OpBuilder &b, Location loc, ValueRange args) {
  return arith::MaximumFOp::create(b, loc, args[0], args.back());
}

/// Σ p + e^(sink − m): args are the sum, the row maximum and the sink.
static Value sumWithSink(OpBuilder &b, Location loc, ValueRange args) {
  // As of scores, a row without keys or a sink has maximum −∞.
  Value lowest = emitFloat(b, loc, args[1].getType(), -1e30);
  Value shift = arith::MaximumFOp::create(b, loc, args[1], lowest);
  Value weight = math::ExpOp::create(
      b, loc, arith::SubFOp::create(b, loc, args[2], shift));
  return arith::AddFOp::create(b, loc, args[0], weight);
}

/// P = exp(scores − rowmax), o = P V / rowsum(P); rows without a key give 0.
/// Behind o the log-sum-exp of each row, into `logSum` unless it is null.
static SmallVector<Value> decomposeSoftmax(Steps &steps, QuadraticOp op,
                                           Value scores, Value numeratorInit,
                                           Value logSum) {
  OpBuilder &b = steps.b;
  scores = steps.maskScores(steps.adjustScores(op, scores), sightOf(op),
                            minusInfinity);
  Value rowMax = steps.maximum(scores, "bht");
  if (op.getSinks())
    rowMax = steps.withSinks(op.getSinks(), {rowMax}, maximumOfTwo);
  Value p = elementwise(
      b, steps.loc, "bhij,bhi->bhij", {scores, rowMax}, steps.emptyLike(scores),
      [&](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        // A row without keys has maximum −∞; a finite one keeps it from NaN.
        Value lowest = emitFloat(nested, loc, args[1].getType(), -1e30);
        Value shift = arith::MaximumFOp::create(nested, loc, args[1], lowest);
        return math::ExpOp::create(
            nested, loc, arith::SubFOp::create(nested, loc, args[0], shift));
      });
  Value numerator = steps.contract("bhij,bhjv->bhiv", p,
                                   steps.maskRows(op.getValue(), op.getMask()),
                                   numeratorInit);
  Value denominator = steps.rowSums(p);
  if (op.getSinks())
    denominator =
        steps.withSinks(op.getSinks(), {denominator, rowMax}, sumWithSink);
  SmallVector<Value> results;
  results.push_back(steps.finish(
      numerator, denominator, op.getOutput(),
      [](OpBuilder &nested, Location loc, Value num, Value den) -> Value {
        Value zero = emitFloat(nested, loc, den.getType(), 0.0);
        Value one = emitFloat(nested, loc, den.getType(), 1.0);
        Value isEmpty = arith::CmpFOp::create(
            nested, loc, arith::CmpFPredicate::OEQ, den, zero);
        Value divisor = arith::SelectOp::create(nested, loc, isEmpty, one, den);
        return arith::DivFOp::create(nested, loc, num, divisor);
      }));
  if (logSum)
    results.push_back(elementwise(
        b, steps.loc, "bhi,bhi->bhi", {rowMax, denominator}, logSum,
        [](OpBuilder &nested, Location loc, ValueRange args) -> Value {
          return arith::AddFOp::create(
              nested, loc, args[0], math::LogOp::create(nested, loc, args[1]));
        }));
  return results;
}

/// The output, and the log-sum-exp of softmax weights into `logSum` unless that
/// is null.
static FailureOr<SmallVector<Value>>
decomposeQuadratic(QuadraticOp op, OpBuilder &b, Value logSum) {
  if (failed(checkHeads(op, {op.getQuery(), op.getKey(), op.getValue()})))
    return failure();
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  bool stabilised = op.getNormalize().has_value();
  bool isRunning = needsRunningMax(mapped.getFeatureMapKind(), stabilised);
  if (isRunning && (op.getCausal() || op.getMask() || op.getPattern()))
    return op.emitOpError("cannot be decomposed: the exp map under a "
                          "normalizer needs a running maximum");

  Steps steps(b, mapped, getElementTypeOrSelf(op.getQuery()));
  bool softmax = op.getWeights() == Weights::Softmax;
  // Scores: scale · φ(q_i)·φ(k_j).
  Value q = steps.features(op.getQuery(), stabilised, "bht", Scale::of(op));
  Value k = softmax ? op.getKey()
                    : steps.features(op.getKey(), stabilised,
                                     isRunning ? "bh" : "bht", 1.0);
  Value scores = steps.dotRows(q, k, steps.dim(op.getOutput(), 1));
  Value numeratorInit =
      steps.zeros(tensor::getMixedSizes(b, op.getLoc(), op.getOutput()));
  if (softmax)
    return decomposeSoftmax(steps, op, scores, numeratorInit, logSum);

  scores = steps.maskScores(scores, sightOf(op), 0.0);
  Value numerator = steps.contract("bhij,bhjv->bhiv", scores,
                                   steps.maskRows(op.getValue(), op.getMask()),
                                   numeratorInit);
  Value denominator = op.getNormalize() ? steps.rowSums(scores) : Value();
  return SmallVector<Value>{steps.finishNormalized(
      numerator, denominator, op.getOutput(), op.getNormalize())};
}

FailureOr<SmallVector<Value>> QuadraticOp::decomposeOperation(OpBuilder &b) {
  return decomposeQuadratic(*this, b, /*logSum=*/Value());
}

/// P = e^(scores − L), dS = P (dO Vᵀ − D), and five products of them.
FailureOr<SmallVector<Value>>
SoftmaxGradientOp::decomposeOperation(OpBuilder &b) {
  QuadraticOp op = createQuadratic(b);
  Steps steps(b, cast<FeatureMappedOpInterface>(op.getOperation()),
              getElementTypeOrSelf(getQuery()));
  Scale scale = Scale::of(op);
  Location loc = getLoc();
  OpFoldResult heads = steps.dim(getQuery(), 1);
  Value q = steps.features(getQuery(), /*stabilised=*/false, "bht", scale);
  Value k = steps.maskRows(getKey(), getMask());
  Value v = steps.maskRows(getValue(), getMask());
  Value products = steps.dotRows(q, k, heads);
  Value scores = steps.maskScores(steps.adjustScores(op, products), sightOf(op),
                                  minusInfinity);
  Value p = elementwise(
      b, loc, "bhij,bhi->bhij", {scores, getLogSum()}, steps.emptyLike(scores),
      [](OpBuilder &nested, Location at, ValueRange x) -> Value {
        Value lowest = emitFloat(nested, at, x[1].getType(), -1e30);
        Value shift = arith::MaximumFOp::create(nested, at, x[1], lowest);
        return math::ExpOp::create(
            nested, at, arith::SubFOp::create(nested, at, x[0], shift));
      });
  Value ds = elementwise(
      b, loc, "bhij,bhij,bhi->bhij",
      {p, steps.dotRows(getCotangent(), v, heads), getCorrection()},
      steps.emptyLike(scores),
      [](OpBuilder &nested, Location at, ValueRange x) -> Value {
        return arith::MulFOp::create(
            nested, at, x[0], arith::SubFOp::create(nested, at, x[1], x[2]));
      });
  Value bySlopes = getSlopes() ? steps.sumDistances(ds) : Value();
  if (getSoftcap())
    ds = elementwise(
        b, loc, "bhij,bhij->bhij", {ds, products}, steps.emptyLike(scores),
        [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
          return arith::MulFOp::create(nested, at, x[0],
                                       emitCapDerivative(nested, at, op, x[1]));
        });
  auto zerosLike = [&](Value x) {
    return steps.zeros(tensor::getMixedSizes(b, loc, x));
  };
  Value dq = steps.contract("bhij,bhjk->bhik", ds, k, zerosLike(getQuery()));
  SmallVector<Value> results{
      elementwise(b, loc, "bhik->bhik", dq, getQueryOutput(),
                  [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                    return scale.apply(nested, at, x[0]);
                  }),
      steps.contract("bhij,bhik->bhjk", ds, q, zerosLike(getKey())),
      steps.contract("bhij,bhiv->bhjv", p, getCotangent(),
                     zerosLike(getValue()))};
  if (bySlopes)
    results.push_back(bySlopes);
  op.erase();
  return results;
}

FailureOr<SmallVector<Value>> SoftmaxOp::decomposeOperation(OpBuilder &b) {
  QuadraticOp quadratic = createQuadratic(b);
  FailureOr<SmallVector<Value>> values =
      decomposeQuadratic(quadratic, b, getLogSum());
  quadratic.erase();
  return values;
}

//===----------------------------------------------------------------------===//
// scan
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> ScanOp::decomposeOperation(OpBuilder &b) {
  if (failed(checkHeads(*this, {getQuery(), getKey(), getValue()})))
    return failure();
  if (!getRule(*this).isAdditive() || getDecay() || getValueDecay() ||
      getReadout() != Readout::Inclusive || getReverse() || getCuSeqlens() ||
      getStateIndices() || getRunningMax() || getEvery())
    return emitOpError("cannot be decomposed: only the additive update without "
                       "decay, gates, sequences, pool of states, running "
                       "maximum or snapshots has this form");

  Steps steps(b, cast<FeatureMappedOpInterface>(getOperation()),
              getElementTypeOrSelf(getQuery()));
  // Q' = scale·φ(Q), K' = φ(K), masked rows of K' zero.
  Value q = steps.features(getQuery(), false, "bht", Scale::of(*this));
  Value k =
      steps.maskRows(steps.features(getKey(), false, "bht", 1.0), getMask());
  Value v = steps.maskRows(getValue(), getMask());
  // P = tril(Q' K'ᵀ)
  OpFoldResult tokens = steps.dim(getQuery(), 2);
  Value p =
      steps.contract("bhik,bhjk->bhij", q, k,
                     steps.zeros({steps.dim(getQuery(), 0),
                                  steps.dim(getOutput(), 1), tokens, tokens}));
  p = steps.maskScores(p, {/*causal=*/true}, 0.0);
  // O = Q' S_0 + P V
  Value o = steps.contract(
      "bhik,bhkv->bhiv", q, getState(),
      steps.zeros(tensor::getMixedSizes(b, getLoc(), getOutput())));
  o = steps.contract("bhij,bhjv->bhiv", p, v, o);
  // den = Q' z_0 + rowsum(P)
  Value denominator;
  if (getNormalize()) {
    Value sums = steps.rowSums(p);
    denominator = steps.contract("bhik,bhk->bhi", q, getNormalizer(), sums);
  }
  SmallVector<Value> results{
      steps.finishNormalized(o, denominator, getOutput(), getNormalize())};
  llvm::append_range(results, steps.write(k, v, getState(), getNormalizer()));
  return results;
}

//===----------------------------------------------------------------------===//
// state, read, feature_map
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> StateOp::decomposeOperation(OpBuilder &b) {
  if (failed(checkHeads(*this, {getKey(), getValue()})))
    return failure();
  if (getRunningMax())
    return emitOpError("cannot be decomposed: the exp map under a normalizer "
                       "needs a running maximum");
  if (getDecay() || getValueDecay() || getCuSeqlens())
    return emitOpError("cannot be decomposed: decays and packed sequences make "
                       "it more than one product");
  Steps steps(b, cast<FeatureMappedOpInterface>(getOperation()),
              getElementTypeOrSelf(getKey()));
  Value k =
      steps.maskRows(steps.features(getKey(), false, "bht", 1.0), getMask());
  Value v = steps.maskRows(getValue(), getMask());
  return steps.write(k, v, getState(), getNormalizer());
}

FailureOr<SmallVector<Value>> ReadOp::decomposeOperation(OpBuilder &b) {
  if (failed(checkHeads(*this, {getQuery(), getState()})))
    return failure();
  if (getRunningMax())
    return emitOpError("cannot be decomposed: its denominator is compared with "
                       "a floor that follows the running maximum");
  Steps steps(b, cast<FeatureMappedOpInterface>(getOperation()),
              getElementTypeOrSelf(getQuery()));
  Value q = steps.features(getQuery(), getNormalize().has_value(), "bht",
                           Scale::of(*this));
  Value o = steps.contract(
      "bhik,bhkv->bhiv", q, getState(),
      steps.zeros(tensor::getMixedSizes(b, getLoc(), getOutput())));
  Value denominator;
  if (getNormalize())
    denominator = steps.contract(
        "bhik,bhk->bhi", q, getNormalizer(),
        steps.zeros({steps.dim(q, 0), steps.dim(q, 1), steps.dim(q, 2)}));
  return SmallVector<Value>{
      steps.finishNormalized(o, denominator, getOutput(), getNormalize())};
}

FailureOr<SmallVector<Value>> FeatureMapOp::decomposeOperation(OpBuilder &b) {
  auto mapped = cast<FeatureMappedOpInterface>(getOperation());
  if (needsWholeToken(mapped.getFeatureMapKind()))
    return emitOpError("cannot be decomposed: feature map ")
           << stringifyFeatureMapKind(mapped.getFeatureMapKind())
           << " needs whole tokens";
  Steps steps(b, mapped, getElementTypeOrSelf(getOutput()));
  Value features = steps.features(getInput(), /*stabilised=*/false, "bht", 1.0);
  return SmallVector<Value>{
      steps.finish(features, Value(), getOutput(), nullptr)};
}
