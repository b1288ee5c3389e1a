//===- Forms.cpp - Which form a scan can run in ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===

#include "linattn/Transforms/Forms.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/ScanTraits.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::linattn;
using ::linattn::Schedule;

std::string mlir::linattn::whyNotForm(ScanOp op, Form form) {
  switch (form) {
  case Form::Auto:
  case Form::Token:
    return {};
  case Form::StateTile:
    return whyNot(op, Schedule::StateTile).str();
  case Form::Chunk:
    return whyNot(op, Schedule::Chunk).str();
  case Form::Segments:
    return whyNot(op, Schedule::Segments).str();
  case Form::Quadratic:
    return "a scan starts from a state, which the quadratic form has none of";
  }
  llvm_unreachable("unknown form");
}

Form mlir::linattn::getVectorForm(ScanOp op) {
  Form form = op.getConfig() ? op.getConfig()->getForm() : Form::Auto;
  if (form != Form::Auto)
    return form;
  for (Form legal : {Form::StateTile, Form::Chunk})
    if (whyNotForm(op, legal).empty())
      return legal;
  return Form::Token;
}

/// Why tasks of one head have no vector lowering, as a sentence; empty if they
/// have.
static StringRef whyNoTasks(const Recurrence &r, bool pads) {
  auto shape = [](Value x) { return cast<ShapedType>(x.getType()); };
  Type type = getElementTypeOrSelf(r.state.state);
  if (!type.isF32() && !type.isF64())
    return "its state is neither f32 nor f64";
  for (Value x : {r.state.state, r.query, r.key, r.value, r.output})
    if (x && shape(x).isDynamicDim(1))
      return "its operands have dynamic head counts";
  // Zeros that fill up a few features would take most of the time.
  constexpr int64_t leastPadded = 32;
  FeatureMappedOpInterface mapped = r.op;
  pads &= mapsZeroToZero(mapped.getFeatureMapKind());
  for (int64_t dim : {2, 3})
    if (int64_t size = shape(r.state.state).getDimSize(dim);
        ShapedType::isDynamic(size) ||
        (size % kTileRows && !(pads && size >= leastPadded)))
      return "its head sizes are not static multiples of 16";
  return {};
}

StringRef mlir::linattn::whyNoChunkTasks(ScanOp op, bool pads) {
  StringRef why = whyNot(op, Schedule::ChunkTasks);
  return why.empty() ? whyNoTasks(Recurrence(op), pads) : why;
}

StringRef mlir::linattn::whyNoChunkTasks(StateOp op, bool pads) {
  StringRef why = ::linattn::whyNot(Schedule::ChunkTasks, getTraits(op));
  return why.empty() ? whyNoTasks(Recurrence(op), pads) : why;
}

StringRef mlir::linattn::whyNoChunkTasks(ReadOp op, bool pads) {
  Recurrence r(op);
  if (r.isStabilised() ||
      needsRowMax(r.op.getFeatureMapKind(),
                  /*stabilised=*/op.getNormalizer() != nullptr))
    return "it has a running maximum";
  return whyNoTasks(r, pads);
}

StringRef mlir::linattn::whyNoMatrixUnit(const Recurrence &r,
                                         bool fastProducts) {
  if (!getElementTypeOrSelf(r.state.state).isF32())
    return "its state is not f32";
  auto shapeOf = [](Value x) { return cast<ShapedType>(x.getType()); };
  constexpr int64_t fewFeatures = 128;
  bool hasFewFeatures = shapeOf(r.state.state).getDimSize(2) < fewFeatures;
  // Their scores run in vectors, with decays of each term.
  if (r.decay && shapeOf(r.decay).getRank() == 4 && hasFewFeatures)
    return "it decays per channel and has fewer than 128 key features, for "
           "which vectors are faster";
  FeatureMappedOpInterface mapped = r.op;
  if (!keepsElements(mapped.getFeatureMapKind()) && hasFewFeatures)
    return "its features need two bf16 summands and are fewer than 128, for "
           "which vectors are faster";
  for (Value tokens : {r.query, r.key, r.value}) {
    if (!tokens || getElementTypeOrSelf(tokens).isBF16())
      continue;
    if (!getElementTypeOrSelf(tokens).isF16() && !fastProducts)
      return "its tokens have more than 16 bits, for which a matrix unit of "
             "bf16 takes six products in place of one";
    if (hasFewFeatures)
      return "its tokens need two bf16 summands and have fewer than 128 key "
             "features, for which vectors are faster";
  }
  return {};
}

StringRef mlir::linattn::whyNotFilledUp(const Recurrence &r) {
  if (r.mask || r.reverse || r.write)
    return "its tokens have a mask, another order or a gate of their own";
  return {};
}

StringRef mlir::linattn::whyNotMeasured(const Recurrence &r) {
  auto shapeOf = [](Value x) { return cast<ShapedType>(x.getType()); };
  FeatureMappedOpInterface mapped = r.op;
  if (!r.key || !r.query)
    return "attention over all keys was not measured in a matrix unit";
  if (r.decay && shapeOf(r.decay).getRank() == 4)
    return "decays per channel were not measured in a matrix unit";
  if (r.state.normalizer)
    return "normalisers were not measured in a matrix unit";
  if (mapped.getFeatureMapKind() != FeatureMapKind::Identity)
    return "feature maps were not measured in a matrix unit";
  if (r.a || r.erase || r.write || r.inputGate)
    return "transitions and gates of their own were not measured in a matrix "
           "unit";
  auto states = shapeOf(r.state.state);
  if (states.getDimSize(0) == 1 && states.getDimSize(1) == 1)
    return "one head of one sequence was not measured in a matrix unit";
  for (int64_t dim : {2, 3})
    if (states.getDimSize(dim) % kTileRows)
      return "head sizes that zeros fill up were not measured in a matrix unit";
  return {};
}

StringRef mlir::linattn::whyNoMatrixUnit(QuadraticOp op) {
  auto size = [](Value x, int64_t dim) {
    return cast<ShapedType>(x.getType()).getDimSize(dim);
  };
  auto fillsTile = [&](Value tokens) {
    int64_t features = size(tokens, 3);
    return !ShapedType::isDynamic(features) && features >= kTileRows;
  };
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  if (!getElementTypeOrSelf(op.getQuery()).isBF16())
    return "its tokens are not in bf16";
  if (mapped.getFeatureMapKind() != FeatureMapKind::Identity)
    return "it has a feature map";
  if (!fillsTile(op.getQuery()) || !fillsTile(op.getValue()))
    return "its head sizes are not known, or fill no tile of 16";
  if (op.getConfig() && op.getConfig()->getForm() == Form::Token)
    return "it takes one query at a time";
  int64_t queries = size(op.getQuery(), 2);
  if (!ShapedType::isDynamic(queries) && queries < kTileRows)
    return "its queries fill no tile of 16";
  // `linattn-reassociate` leaves them to this form at run time.
  if (ShapedType::isDynamic(queries) && op.getWeights() == Weights::Linear &&
      !op.getCausal() && !op.getPattern())
    return "it takes as many tokens as are too few for a state";
  return {};
}

LogicalResult mlir::linattn::verifyForm(ScanOp op, Form form) {
  std::string why = whyNotForm(op, form);
  if (why.empty())
    return success();
  return op.emitOpError("cannot run in form ")
         << stringifyForm(form) << ": " << why;
}

bool mlir::linattn::isInTask(Operation *op) {
  return op->getParentOfType<scf::ForallOp>() != nullptr;
}

bool mlir::linattn::isZeroFill(Value tensor) {
  auto fill = tensor.getDefiningOp<linalg::FillOp>();
  return fill && matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
}

LogicalResult mlir::linattn::verifyChunkSize(Operation *op, int64_t size) {
  if (size >= 1)
    return success();
  return op->emitError("expected chunk-size to be at least 1, but got ")
         << size;
}

/// On tensors: whether the initial state is a fill with zero.
static bool startsAtZero(ScanOp op) {
  return !op.getStateIndices() && isZeroFill(op.getState());
}

::linattn::ScanProblem mlir::linattn::describeScan(ScanOp op) {
  using Problem = ::linattn::ScanProblem;
  auto size = [](Value value, int64_t dim) {
    int64_t extent = cast<ShapedType>(value.getType()).getDimSize(dim);
    return ShapedType::isDynamic(extent) ? ::linattn::unknownSize : extent;
  };
  Problem problem;
  problem.rule = &getRule(op);
  bool scalar = op.getDecay() || op.getRunningMax();
  bool channel =
      op.getDecay() && cast<ShapedType>(op.getDecay().getType()).getRank() == 4;
  problem.decay = channel || op.getValueDecay() ? Problem::Decay::Channel
                  : scalar                      ? Problem::Decay::Scalar
                                                : Problem::Decay::None;
  problem.normalized = op.getNormalize().has_value();
  problem.keySize = size(op.getState(), 2);
  auto columns = op->getAttrOfType<IntegerAttr>(kColumnsAttrName);
  problem.valueSize = columns ? columns.getInt() : size(op.getState(), 3);
  problem.elementBits =
      getElementTypeOrSelf(op.getState()).getIntOrFloatBitWidth();
  // The lengths of packed sequences are unknown.
  problem.tokens =
      op.getCuSeqlens() ? ::linattn::unknownSize : size(op.getKey(), 2);
  // Behind chunks of a unit a state comes in, and it goes out.
  bool isRemainder = op->hasAttr(kRemainderAttrName);
  problem.startsAtZero = !isRemainder && startsAtZero(op);
  problem.endsUnused = !isRemainder && !op.getStateIndices() &&
                       op->getNumResults() > 1 && op->getResult(1).use_empty();
  int64_t states = size(op.getState(), 1), outputs = size(op.getOutput(), 1);
  if (states > 0 && outputs > 0)
    problem.group = outputs / states;
  return problem;
}
