//===- Forms.cpp - Which form a scan can run in ---------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that knows which form is legal for which scan. A new form, or a
// form that learns another rule, is a change here and nowhere else.
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Forms.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::linattn;

/// Rows of a state column that are updated one by one, whatever the others are.
static std::string whyNotStateTile(ScanOp op) {
  switch (op.getUpdate()) {
  case Update::Add:
    return {};
  case Update::Delta:
  case Update::Dplr:
    return "a rank-1 transition couples the rows of a state column";
  case Update::Oja:
    return "Oja's transition couples the columns of a state row";
  }
  llvm_unreachable("unknown update");
}

static std::string whyNotChunk(ScanOp op) {
  if (op.getUpdate() == Update::Oja)
    return "Oja's transition reads the rows of the state, chunks its columns";
  if (op.getValueDecay())
    return "a decay per value column does not factor into products of chunks";
  return {};
}

static std::string whyNotSegments(ScanOp op) {
  if (op.getCuSeqlens())
    return "its sequences are packed already and run in parallel";
  if (op.getStateIndices())
    return "its states are rows of a pool, which segments would have to gather";
  if (op.getUpdate() == Update::Oja)
    return "Oja's transition acts on the values' side of the state";
  if (op.getInputGate())
    return "the summary of a segment has no input gate";
  if (op.getEvery())
    return "its snapshots are counted from the first token";
  if (op.getBeta() && cast<ShapedType>(op.getBeta().getType()).getRank() == 4)
    return "a beta per value column gives every column a transition of its own";
  return {};
}

std::string mlir::linattn::whyNotForm(ScanOp op, Form form) {
  switch (form) {
  case Form::Auto:
  case Form::Token:
    return {};
  case Form::StateTile:
    return whyNotStateTile(op);
  case Form::Chunk:
    return whyNotChunk(op);
  case Form::Segments:
    return whyNotSegments(op);
  case Form::Quadratic:
    return "a scan starts from a state, which the quadratic form has none of";
  }
  llvm_unreachable("unknown form");
}

StringRef mlir::linattn::whyNoVectorSchedule(ScanOp op) {
  return op.getUpdate() == Update::Oja ? "Oja's rule has no vector schedule"
         : op.getEvery() ? "its snapshots are not expanded into a loop"
                         : "";
}

StringRef mlir::linattn::whyNoChunkTasks(ScanOp op) {
  auto shape = [](Value x) { return cast<ShapedType>(x.getType()); };
  auto isRows = [&](Value x) { return x && shape(x).getRank() == 4; };
  if (op.getConfig() && op.getConfig()->getForm() != Form::Chunk)
    return "its schedule is not chunks";
  if (!whyNotChunk(op).empty())
    return "it has no form in chunks";
  if (op.getCuSeqlens() || op.getStateIndices() || op.getEvery())
    return "its sequences are packed, or its states in a pool or kept";
  if (op.getNormalize() || op.getNormalizer() || op.getRunningMax())
    return "it has a normaliser";
  if (cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind() !=
      FeatureMapKind::Identity)
    return "it has a feature map";
  if (isRows(op.getDecay()) || op.getBonus())
    return "it has a decay per channel or a bonus";
  Type type = getElementTypeOrSelf(op.getState());
  if (!type.isF32() && !type.isF64())
    return "its state is neither f32 nor f64";
  int64_t heads = shape(op.getState()).getDimSize(1);
  if (ShapedType::isDynamic(heads) ||
      llvm::any_of(ValueRange{op.getQuery(), op.getKey(), op.getValue()},
                   [&](Value x) { return shape(x).getDimSize(1) != heads; }))
    return "its operands' head counts differ or are dynamic";
  constexpr int64_t multiple = 16;
  for (int64_t dim : {2, 3})
    if (int64_t size = shape(op.getState()).getDimSize(dim);
        ShapedType::isDynamic(size) || size % multiple)
      return "its head sizes are not static multiples of 16";
  return {};
}

StringRef mlir::linattn::whyNoMatrixUnit(ScanOp op, bool fastProducts) {
  if (!getElementTypeOrSelf(op.getState()).isF32())
    return "its state is not f32";
  if (fastProducts)
    return {};
  for (Value tokens : {op.getQuery(), op.getKey(), op.getValue()})
    if (Type type = getElementTypeOrSelf(tokens);
        !type.isBF16() && !type.isF16())
      return "its tokens have more than 16 bits, for which a matrix unit of "
             "bf16 "
             "takes six products in place of one";
  return {};
}

LogicalResult mlir::linattn::verifyForm(ScanOp op, Form form) {
  std::string why = whyNotForm(op, form);
  if (why.empty())
    return success();
  return op.emitOpError("cannot run in form ")
         << stringifyForm(form) << ": " << why;
}

/// On tensors: is the state that comes in a fill with zero?
static bool startsAtZero(ScanOp op) {
  auto fill = op.getState().getDefiningOp<linalg::FillOp>();
  return !op.getStateIndices() && fill &&
         matchPattern(fill.getInputs().front(), m_AnyZeroFloat());
}

::linattn::ScanProblem mlir::linattn::describeScan(ScanOp op) {
  using Problem = ::linattn::ScanProblem;
  auto size = [](Value value, int64_t dim) {
    int64_t extent = cast<ShapedType>(value.getType()).getDimSize(dim);
    return ShapedType::isDynamic(extent) ? ::linattn::unknownSize : extent;
  };
  Problem problem;
  switch (op.getUpdate()) {
  case Update::Add:
    problem.update = Problem::Update::Add;
    break;
  case Update::Delta:
    problem.update = Problem::Update::Delta;
    break;
  case Update::Dplr:
    problem.update = Problem::Update::Dplr;
    break;
  case Update::Oja:
    problem.update = Problem::Update::Oja;
    break;
  }
  bool scalar = op.getDecay() || op.getRunningMax();
  bool channel =
      op.getDecay() && cast<ShapedType>(op.getDecay().getType()).getRank() == 4;
  problem.decay = channel || op.getValueDecay() ? Problem::Decay::Channel
                  : scalar                      ? Problem::Decay::Scalar
                                                : Problem::Decay::None;
  problem.normalized = op.getNormalize().has_value();
  problem.keySize = size(op.getState(), 2);
  problem.valueSize = size(op.getState(), 3);
  problem.elementBits =
      getElementTypeOrSelf(op.getState()).getIntOrFloatBitWidth();
  // Packed sequences are as long as they are.
  problem.tokens =
      op.getCuSeqlens() ? ::linattn::unknownSize : size(op.getKey(), 2);
  problem.startsAtZero = startsAtZero(op);
  problem.endsUnused = !op.getStateIndices() && op->getNumResults() > 1 &&
                       op->getResult(1).use_empty();
  int64_t states = size(op.getState(), 1), outputs = size(op.getOutput(), 1);
  if (states > 0 && outputs > 0)
    problem.group = outputs / states;
  return problem;
}
