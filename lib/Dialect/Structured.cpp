//===- Structured.cpp - Interfaces shared by the structured ops -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Destinations, memory effects, speculation and result shapes: all follow from
// destination-passing style, so one helper serves every op.
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttnChunk.h"
#include "linattn/Dialect/LinAttnConv.h"
#include "linattn/Dialect/LinAttnSoftmax.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Destinations
//===----------------------------------------------------------------------===//

// The destinations are the last operands, in the order of the results.

MutableOperandRange ScanOp::getDpsInitsMutable() {
  unsigned start = getOutputMutable().getOperandNumber();
  return MutableOperandRange(*this, start, getNumOperands() - start);
}

MutableOperandRange StateOp::getDpsInitsMutable() {
  unsigned start = getStateMutable().getOperandNumber();
  return MutableOperandRange(*this, start, getNumOperands() - start);
}

MutableOperandRange ChunkStabilizeOp::getDpsInitsMutable() {
  unsigned start = getFadeMutable().getOperandNumber();
  return MutableOperandRange(*this, start, getNumOperands() - start);
}

Operation *mlir::linattn::cloneStructured(OpBuilder &b, Operation *op,
                                          TypeRange types,
                                          ValueRange operands) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttributes(op->getAttrs());
  for (Region &region : op->getRegions()) {
    Region *copy = state.addRegion();
    IRMapping mapping;
    region.cloneInto(copy, mapping);
  }
  return b.create(state);
}

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

/// Adds operands in segments (absent ones empty), the region of φ, and as
/// results the types of the tensors among the destinations.
template <typename OpTy>
static void buildStructured(OperationState &result, ArrayRef<Value> operands,
                            ArrayRef<Value> destinations) {
  SmallVector<int32_t> segments;
  for (ArrayRef<Value> part : {operands, destinations})
    for (Value operand : part) {
      segments.push_back(operand ? 1 : 0);
      if (operand)
        result.addOperands(operand);
    }
  if constexpr (std::is_same_v<OpTy, ScanOp>)
    segments.push_back(0); // Snapshots come later, if at all.
  if constexpr (OpTy::template hasTrait<OpTrait::AttrSizedOperandSegments>())
    llvm::copy(segments, result.getOrAddProperties<typename OpTy::Properties>()
                             .operandSegmentSizes.begin());
  for (Value destination : destinations)
    if (destination && isa<RankedTensorType>(destination.getType()))
      result.addTypes(destination.getType());
  result.addRegion();
}

void ScanOp::build(OpBuilder &, OperationState &result, Value query, Value key,
                   Value value, Value mask, Value output,
                   const StateValues &state) {
  Value none;
  buildStructured<ScanOp>(
      result,
      {query, key, value, none, none, none, none, none, none, none, none, none,
       mask, none, none, none},
      {output, state.state, state.normalizer, state.runningMax});
}

void StateOp::build(OpBuilder &b, OperationState &result, Value key,
                    Value value, Value mask, const StateValues &state) {
  build(b, result, key, value, Value(), Value(), mask, Value(), state);
}

void StateOp::build(OpBuilder &, OperationState &result, Value key, Value value,
                    Value decay, Value valueDecay, Value mask, Value offsets,
                    const StateValues &state) {
  buildStructured<StateOp>(result,
                           {key, value, decay, valueDecay, mask, offsets},
                           {state.state, state.normalizer, state.runningMax});
}

void ReadOp::build(OpBuilder &, OperationState &result, Value query,
                   Value state, Value normalizer, Value output) {
  Value none;
  buildStructured<ReadOp>(result, {query, state, normalizer, none, none},
                          {output});
}

void QuadraticOp::build(OpBuilder &, OperationState &result, Value query,
                        Value key, Value value, Value mask, Value prefix,
                        Value output) {
  buildStructured<QuadraticOp>(
      result, {query, key, value, mask, prefix, Value(), Value(), Value()},
      {output});
}

//===----------------------------------------------------------------------===//
// Effects, speculation, shapes
//===----------------------------------------------------------------------===//

using Effects =
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static void addEffects(DestinationStyleOpInterface op, Effects &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand,
                         SideEffects::DefaultResource::get());
    if (op.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

/// On buffers nothing may be hoisted. On tensors only ops with static shapes
/// may be, since mismatched dynamic ones are undefined behaviour.
static Speculation::Speculatability
speculatability(DestinationStyleOpInterface op) {
  bool safe = op.hasPureTensorSemantics() &&
              llvm::all_of(op->getOperandTypes(), [](Type type) {
                auto shaped = dyn_cast<ShapedType>(type);
                return !shaped || shaped.hasStaticShape();
              });
  return safe ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

static LogicalResult reify(DestinationStyleOpInterface op, OpBuilder &b,
                           ReifiedRankedShapedTypeDims &shapes) {
  if (!op.hasPureTensorSemantics())
    return failure();
  for (Value init : op.getDpsInits())
    shapes.push_back(tensor::getMixedSizes(b, op.getLoc(), init));
  return success();
}

#define LINATTN_STRUCTURED_OP(OpTy)                                            \
  void OpTy::getEffects(Effects &effects) { addEffects(*this, effects); }      \
  Speculation::Speculatability OpTy::getSpeculatability() {                    \
    return speculatability(*this);                                             \
  }                                                                            \
  LogicalResult OpTy::reifyResultShapes(OpBuilder &b,                          \
                                        ReifiedRankedShapedTypeDims &shapes) { \
    return reify(*this, b, shapes);                                            \
  }

LINATTN_STRUCTURED_OP(QuadraticOp)
LINATTN_STRUCTURED_OP(ScanOp)
LINATTN_STRUCTURED_OP(StateOp)
LINATTN_STRUCTURED_OP(ReadOp)
LINATTN_STRUCTURED_OP(FeatureMapOp)
LINATTN_STRUCTURED_OP(SelectiveScanOp)
LINATTN_STRUCTURED_OP(DiagonalScanOp)
LINATTN_STRUCTURED_OP(Wkv4Op)
LINATTN_STRUCTURED_OP(LogLinearOp)
LINATTN_STRUCTURED_OP(OutputNormOp)
LINATTN_STRUCTURED_OP(CausalConvOp)
LINATTN_STRUCTURED_OP(SweepOp)
LINATTN_STRUCTURED_OP(SweepSelectiveOp)
LINATTN_STRUCTURED_OP(SoftmaxOp)
LINATTN_STRUCTURED_OP(SoftmaxGradientOp)
LINATTN_STRUCTURED_OP(ChunkPackOp)
LINATTN_STRUCTURED_OP(ChunkUnpackOp)
LINATTN_STRUCTURED_OP(ChunkDecayOp)
LINATTN_STRUCTURED_OP(ChunkStabilizeOp)
LINATTN_STRUCTURED_OP(ChunkScoresOp)
LINATTN_STRUCTURED_OP(ChunkSolveOp)
LINATTN_STRUCTURED_OP(ChunkReadOp)
LINATTN_STRUCTURED_OP(ChunkUpdateOp)

#undef LINATTN_STRUCTURED_OP
