//===- Verify.cpp - Verifiers and shape contracts -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes are checked through the ops' DimRelations, everything else by the free
// functions below. Identifiers in parentheses are the constraint numbers of the
// ops' descriptions.
//
//===----------------------------------------------------------------------===//

#include "VerifyUtils.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/MapParameters.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::verify;

//===----------------------------------------------------------------------===//
// attention, quadratic
//===----------------------------------------------------------------------===//

template <typename OpTy>
static void attentionRelations(OpTy op, Value output, Relations &relations) {
  Named query{op.getQuery(), "query"}, key{op.getKey(), "key"},
      value{op.getValue(), "value"}, result{output, "output"};
  relations.equal("A1", "head size", query, 3, key, 3);
  relations.equal("A2", "sequence length", key, 2, value, 2);
  relations.equal("A3", "batch size", query, 0, key, 0);
  relations.equal("A3", "batch size", query, 0, value, 0);
  relations.headsDivide("A4", {query, key, value});
  if (op.getMask()) {
    Named mask{op.getMask(), "mask"};
    relations.equal("A7", "batch size", query, 0, mask, 0);
    relations.equal("A7", "sequence length", key, 2, mask, 1);
  }
  if (op.getPrefix())
    relations.equal("A13", "batch size", query, 0, {op.getPrefix(), "prefix"},
                    0);
  for (Named perHead :
       {Named{op.getSlopes(), "slopes"}, Named{op.getSinks(), "sinks"}})
    if (perHead.value)
      relations.equal("A16", "head count", result, 1, perHead, 0);
  relations.equal("A10", "batch size", query, 0, result, 0);
  relations.headsMax("A10", result, {query, key, value});
  relations.equal("A10", "sequence length", query, 2, result, 2);
  relations.equal("A10", "head size", value, 3, result, 3);
}

/// (A13), (A15), (A17): a prefix, and the softcap.
template <typename OpTy>
static LogicalResult verifyPrefixAndCap(OpTy op) {
  if (op.getPrefix() && !op.getCausal()) // (A13)
    return op.emitOpError("expected a prefix only with causal, but got one "
                          "without");
  if (op.getPrefix() && op.getPattern())
    return op.emitOpError(
        "expected either a prefix or a pattern, but got both");
  if (std::optional<APFloat> cap = op.getSoftcap())
    if (!cap->isFinite() || cap->isNegative() || cap->isZero())
      return op.emitOpError(
                 "expected softcap to be finite and positive, but got ")
             << cap->convertToDouble();
  return success();
}

/// (A15): options that change scores go with softmax weights.
template <typename OpTy>
static LogicalResult verifyScores(OpTy op) {
  std::pair<StringRef, bool> given[] = {
      {"softcap", op.getSoftcap().has_value()},
      {"slopes", bool(op.getSlopes())},
      {"sinks", bool(op.getSinks())}};
  for (auto [name, isGiven] : given)
    if (isGiven && op.getWeights() != Weights::Softmax)
      return op.emitOpError("expected ")
             << name << " only with softmax weights, but got linear ones";
  return success();
}

template <typename OpTy>
static LogicalResult verifyAttention(OpTy op, Value output) {
  Named query{op.getQuery(), "query"};
  for (Named other : {Named{op.getKey(), "key"}, Named{op.getValue(), "value"},
                      Named{output, "output"}})
    if (failed(verifySameElementType(op, query, other))) // (A6)
      return failure();
  if (failed(verifyFeatureMap(op)) || failed(verifyScale(op)) || // (A11), (A14)
      failed(verifyAbsFloor(op, op.getNormalize())))             // (A12)
    return failure();
  if (failed(verifyScores(op)) ||     // (A15)
      failed(verifyPrefixAndCap(op))) // (A13), (A15), (A17)
    return failure();
  if (op.getWeights() == Weights::Softmax) { // (A9)
    if (op.getFeatureMap() &&
        op.getFeatureMap()->getKind() != FeatureMapKind::Identity)
      return op.emitOpError(
                 "expected softmax weights without a feature map, but got ")
             << stringifyFeatureMapKind(op.getFeatureMap()->getKind());
    if (op.getNormalize())
      return op.emitOpError(
          "expected softmax weights without normalize, but got both");
  }
  return verifyRelations(op);
}

SmallVector<DimRelation> AttentionOp::getDimRelations() {
  Relations relations;
  attentionRelations(*this, getOutput(), relations);
  if (getCausal() && hasState())
    relations.equal("A5", "sequence length", {getQuery(), "query"}, 2,
                    {getKey(), "key"}, 2);
  return relations.list;
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, getOutput());
}

SmallVector<DimRelation> QuadraticOp::getDimRelations() {
  Relations relations;
  attentionRelations(*this, getOutput(), relations);
  return relations.list;
}

LogicalResult QuadraticOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySummands(*this, getSummands(), /*matrices=*/4)))
    return failure();
  Type type = getElementTypeOrSelf(getQuery());
  if (getSummands() && !type.isBF16()) // (Q1)
    return emitOpError("expected summands only for bf16 tokens, but got ")
           << type;
  return verifyAttention(*this, getOutput());
}

//===----------------------------------------------------------------------===//
// softmax, softmax_gradient
//===----------------------------------------------------------------------===//

/// [B, H, Tq] beside [B, H, Tq, D].
static void rowRelations(StringRef id, Named rows, Named tokens,
                         Relations &relations) {
  static constexpr StringRef dims[] = {"batch size", "head count",
                                       "sequence length"};
  if (rows.value)
    for (int64_t dim = 0; dim < 3; ++dim)
      relations.equal(id, dims[dim], rows, dim, tokens, dim);
}

/// (F3): [B, Tq, 3] beside [B, H, Tq, K].
template <typename OpTy>
static void spanRelations(StringRef id, OpTy op, Relations &relations) {
  Named spans{op.getSpans(), "spans"}, query{op.getQuery(), "query"};
  if (!spans.value)
    return;
  relations.equal(id, "batch size", query, 0, spans, 0);
  relations.equal(id, "sequence length", query, 2, spans, 1);
}

/// (F3), (F4)
template <typename OpTy>
static LogicalResult verifySpansAndDropout(OpTy op) {
  if (Value spans = op.getSpans()) {
    int64_t numbers = cast<ShapedType>(spans.getType()).getDimSize(2);
    if (numbers != 3)
      return op.emitOpError("expected spans to have 3 numbers for each query, "
                            "but got ")
             << (ShapedType::isDynamic(numbers) ? "an unknown number"
                                                : Twine(numbers).str());
    if (op.getPrefix())
      return op.emitOpError("expected either spans or a prefix, but got both");
  }
  std::optional<APFloat> dropout = op.getDropout();
  if (bool(op.getSeed()) != dropout.has_value())
    return op.emitOpError(
               "expected both seed and dropout or neither, but got only ")
           << (dropout ? "dropout" : "seed");
  if (dropout &&
      !(dropout->convertToDouble() >= 0.0 && dropout->convertToDouble() < 1.0))
    return op.emitOpError("expected dropout to be in [0, 1), but got ")
           << dropout->convertToDouble();
  return success();
}

SmallVector<DimRelation> SoftmaxOp::getDimRelations() {
  Relations relations;
  attentionRelations(*this, getOutput(), relations);
  spanRelations("F3", *this, relations);
  rowRelations("F2", {getLogSum(), "log_sum"}, {getOutput(), "output"},
               relations);
  return relations.list;
}

LogicalResult SoftmaxOp::verify() {
  Named query{getQuery(), "query"};
  Type type = getAccumulationType(elementType(getQuery()));
  if (failed(verifySemantics(*this)))
    return failure();
  for (Named other : {Named{getKey(), "key"}, Named{getValue(), "value"},
                      Named{getOutput(), "output"}}) // (F1)
    if (failed(verifySameElementType(*this, query, other)))
      return failure();
  if (failed(verifyScale(*this, type, getScale(), getScaleValue())) ||
      failed(verifyPrefixAndCap(*this)) ||
      failed(verifySpansAndDropout(*this)) || // (F3), (F4)
      failed(verifyElementType(*this, {getLogSum(), "log_sum"}, type))) // (F2)
    return failure();
  return verifyRelations(*this);
}

SmallVector<DimRelation> SoftmaxGradientOp::getDimRelations() {
  Relations relations;
  Named query{getQuery(), "query"}, key{getKey(), "key"},
      value{getValue(), "value"}, cotangent{getCotangent(), "cotangent"};
  relations.equal("G1", "head size", query, 3, key, 3);
  relations.equal("G1", "head size", value, 3, cotangent, 3);
  for (Named other : {key, value, cotangent}) {
    relations.equal("G2", "batch size", query, 0, other, 0);
    relations.equal("G2", "head count", query, 1, other, 1);
  }
  relations.equal("G2", "sequence length", query, 2, cotangent, 2);
  relations.equal("G2", "sequence length", key, 2, value, 2);
  rowRelations("G4", {getLogSum(), "log_sum"}, query, relations);
  rowRelations("G4", {getCorrection(), "correction"}, query, relations);
  rowRelations("G6", {getSlopeOutput(), "slope_output"}, query, relations);
  auto sameShape = [&](Named output, Named operand) {
    rowRelations("G5", output, operand, relations);
    relations.equal("G5", "head size", output, 3, operand, 3);
  };
  sameShape({getQueryOutput(), "query_output"}, query);
  sameShape({getKeyOutput(), "key_output"}, key);
  sameShape({getValueOutput(), "value_output"}, value);
  if (Named mask{getMask(), "mask"}; mask.value) {
    relations.equal("G7", "batch size", query, 0, mask, 0);
    relations.equal("G7", "sequence length", key, 2, mask, 1);
  }
  if (getPrefix())
    relations.equal("G7", "batch size", query, 0, {getPrefix(), "prefix"}, 0);
  if (getSlopes())
    relations.equal("G7", "head count", query, 1, {getSlopes(), "slopes"}, 0);
  spanRelations("G8", *this, relations);
  return relations.list;
}

LogicalResult SoftmaxGradientOp::verify() {
  Named query{getQuery(), "query"};
  if (failed(verifySemantics(*this)))
    return failure();
  Type type = elementType(getQuery());
  if (!type.isF32() && !type.isF64()) // (G3)
    return emitOpError("expected query to have element type f32 or f64, but "
                       "got ")
           << type;
  for (Named other :
       {Named{getKey(), "key"}, Named{getValue(), "value"},
        Named{getCotangent(), "cotangent"}, Named{getLogSum(), "log_sum"},
        Named{getCorrection(), "correction"},
        Named{getQueryOutput(), "query_output"},
        Named{getKeyOutput(), "key_output"},
        Named{getValueOutput(), "value_output"},
        Named{getSlopeOutput(), "slope_output"}})
    if (other.value && failed(verifySameElementType(*this, query, other)))
      return failure();
  if (bool(getSlopes()) != bool(getSlopeOutput())) // (G6)
    return emitOpError("expected both slopes and slope_output or neither, but "
                       "got only ")
           << (getSlopes() ? "slopes" : "slope_output");
  if (failed(verifyScale(*this, type, getScale(), getScaleValue())) || // (G7)
      failed(verifyPrefixAndCap(*this)) ||
      failed(verifySpansAndDropout(*this))) // (G8)
    return failure();
  return verifyRelations(*this);
}

//===----------------------------------------------------------------------===//
// state, read, feature_map
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> StateOp::getDimRelations() {
  Relations relations;
  Named key{getKey(), "key"}, value{getValue(), "value"},
      state{getState(), "state"};
  relations.equal("T1", "sequence length", key, 2, value, 2);
  relations.equal("T2", "batch size", key, 0, value, 0);
  if (getCuSeqlens())
    relations.oneLess("T9", "batch size", state, 0,
                      {getCuSeqlens(), "cu_seqlens"}, 0);
  else
    relations.equal("T2", "batch size", key, 0, state, 0);
  relations.headsDivide("T3", {key, value});
  stateRelations("T5", key, value, state, getNormalizer(), getRunningMax(),
                 relations);
  gateRelations({getDecay(), "decay"}, key, state, 3, "head size", key,
                relations);
  gateRelations({getValueDecay(), "value_decay"}, key, state, 3, "head size",
                value, relations);
  if (getMask()) {
    Named mask{getMask(), "mask"};
    relations.equal("T5", "batch size", key, 0, mask, 0);
    relations.equal("T5", "sequence length", key, 2, mask, 1);
  }
  return relations.list;
}

LogicalResult StateOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySameElementType(*this, {getKey(), "key"},
                                   {getValue(), "value"}))) // (T4)
    return failure();
  if (failed(verifyStateTypes(*this, elementType(getKey()), // (T5)
                              {getState(), "state"}, getNormalizer(),
                              getRunningMax())))
    return failure();
  auto kind =
      cast<FeatureMappedOpInterface>(getOperation()).getFeatureMapKind();
  if (needsRunningMax(kind, bool(getNormalizer())) != bool(getRunningMax()))
    return emitOpError("expected running_max exactly with feature map exp and "
                       "a normalizer, but got ") // (T7)
           << (getRunningMax() ? "one without them" : "none");
  if (failed(verifyRank(*this, {getDecay(), "decay"}, {1, 3, 4},
                        "[H], [B, H, T] or [B, H, T, K]")) || // (T8)
      failed(verifyRank(*this, {getValueDecay(), "value_decay"}, {4},
                        "[B, H, T, V]")))
    return failure();
  if (getValueDecay() && getNormalizer()) // (T8)
    return emitOpError("expected value_decay only without a normalizer, but "
                       "got both");
  if (failed(verifyPackedBatch(*this, getCuSeqlens(), getKey())) || // (T9)
      failed(verifyFeatureMap(*this)))
    return failure();
  return verifyRelations(*this);
}

SmallVector<DimRelation> ReadOp::getDimRelations() {
  Relations relations;
  Named query{getQuery(), "query"}, state{getState(), "state"},
      output{getOutput(), "output"};
  relations.equal("R1", "head size", query, 3, state, 2);
  relations.equal("R1", "batch size", query, 0, state, 0);
  relations.headsDivide("R2", {query, state});
  relations.equal("R3", "batch size", query, 0, output, 0);
  relations.headsMax("R3", output, {query, state});
  relations.equal("R3", "sequence length", query, 2, output, 2);
  relations.equal("R3", "head size", state, 3, output, 3);
  if (getNormalizer()) {
    Named normalizer{getNormalizer(), "normalizer"};
    relations.equal("R4", "batch size", normalizer, 0, state, 0);
    relations.equal("R4", "head count", normalizer, 1, state, 1);
    relations.equal("R4", "head size", normalizer, 2, state, 2);
  }
  if (getRunningMax()) {
    Named runningMax{getRunningMax(), "running_max"};
    relations.equal("R8", "batch size", runningMax, 0, state, 0);
    relations.equal("R8", "head count", runningMax, 1, state, 1);
  }
  return relations.list;
}

LogicalResult ReadOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySameElementType(*this, {getQuery(), "query"},
                                   {getOutput(), "output"}))) // (R3)
    return failure();
  if (failed(verifyStateTypes(*this, elementType(getQuery()), // (R5)
                              {getState(), "state"}, getNormalizer(),
                              getRunningMax())) ||
      failed(verifyNormalizer(*this, getNormalize(), getNormalizer()))) // (R4)
    return failure();
  if (getRunningMax() && // (R8)
      !(getNormalize() && getNormalize()->getAbsFloor()))
    return emitOpError("expected running_max only with abs_floor, but got ")
           << (getNormalize() ? "another denominator" : "no normalize");
  if (failed(verifyFeatureMap(*this)) ||
      failed(verifyScale(*this)) ||                  // (R7), (R10)
      failed(verifyAbsFloor(*this, getNormalize()))) // (R9)
    return failure();
  return verifyRelations(*this);
}

LogicalResult FeatureMapOp::verify() {
  if (failed(verifySemantics(*this)) || failed(verifyMapOperands(*this)) ||
      failed(verifyFeatureMap(*this)))
    return failure();
  return verifyRelations(*this);
}
