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

#include "DecomposeSteps.h"

#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/MapParameters.h"
#include "linattn/Dialect/ScanTraits.h"
#include "linattn/Dialect/Scores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;

using Steps = DecomposeSteps;

static constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

static Steps::Sight sightOf(QuadraticOp op) {
  return {op.getCausal(), op.getMask(), op.getPrefix(), op.getPatternAttr()};
}

/// Grouped heads are read in place, which needs their static number.
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

/// The larger of the row maximum and the sink.
static Value maximumOfTwo(OpBuilder &b, Location loc, ValueRange args) {
  return arith::MaximumFOp::create(b, loc, args[0], args.back());
}

/// Σ p + e^(sink − m): args are the sum, the row maximum and the sink.
static Value sumWithSink(OpBuilder &b, Location loc, ValueRange args) {
  // A row without keys or a sink has maximum −∞, as in `maskScores`.
  Value lowest = emitFloat(b, loc, args[1].getType(), -1e30);
  Value shift = arith::MaximumFOp::create(b, loc, args[1], lowest);
  Value weight = math::ExpOp::create(
      b, loc, arith::SubFOp::create(b, loc, args[2], shift));
  return arith::AddFOp::create(b, loc, args[0], weight);
}

/// P = exp(scores − rowmax), o = P V / rowsum(P). A row without keys gives 0.
/// The log-sum-exp of each row goes to `logSum` unless it is null.
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
        // A row without keys has maximum −∞. A finite one keeps the difference
        // from being NaN.
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

/// Keys of spans, and bits of a seed, are read by loops.
template <typename OpTy>
static LogicalResult checkSpansAndDropout(OpTy op) {
  if (!op.getSpans() && !op.getSeed())
    return success();
  return op.emitOpError("cannot be decomposed: ")
         << (op.getSpans() ? "spans of keys" : "dropped weights")
         << " have no linalg ops yet";
}

/// P = e^(scores − L), dS = P (dO Vᵀ − D), and five products of them.
FailureOr<SmallVector<Value>>
SoftmaxGradientOp::decomposeOperation(OpBuilder &b) {
  if (failed(checkSpansAndDropout(*this)))
    return failure();
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
  if (failed(checkSpansAndDropout(*this)))
    return failure();
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
