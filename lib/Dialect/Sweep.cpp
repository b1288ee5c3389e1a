//===- Sweep.cpp - linattn.sweep ------------------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keyword.h"
#include "VerifyUtils.h"

#include "linattn/Dialect/LinAttnSweep.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::verify;

#define GET_OP_CLASSES
#include "linattn/Dialect/LinAttnSweep.cpp.inc"

SmallVector<DimRelation> SweepOp::getDimRelations() {
  Relations relations;
  Named query{getQuery(), "query"}, key{getKey(), "key"},
      value{getValue(), "value"}, valueQuery{getValueQuery(), "value_query"},
      output{getOutput(), "output"},
      valueOutput{getValueOutput(), "value_output"}, state{getState(), "state"};
  relations.equal("W1", "head size", query, 3, key, 3);
  relations.equal("W1", "head size", valueOutput, 3, key, 3);
  relations.equal("W1", "value size", valueQuery, 3, value, 3);
  relations.equal("W1", "value size", output, 3, value, 3);
  static constexpr StringRef dims[] = {"batch size", "head count",
                                       "sequence length"};
  for (Named tokens : {query, value, valueQuery, output, valueOutput})
    for (int64_t dim = 0; dim < 3; ++dim)
      relations.equal("W2", dims[dim], tokens, dim, key, dim);
  if (Value offsets = getCuSeqlens())
    relations.oneLess("W7", "batch size", state, 0, {offsets, "cu_seqlens"}, 0);
  else
    relations.equal("W4", "batch size", state, 0, key, 0);
  relations.equal("W4", "head count", state, 1, key, 1);
  relations.equal("W4", "head size", state, 2, key, 3);
  relations.equal("W4", "value size", state, 3, value, 3);
  for (Named gate :
       {Named{getDecay(), "decay"}, Named{getA(), "a"}, Named{getB(), "b"}}) {
    if (!gate.value)
      continue;
    int64_t rank = rankOf(gate.value);
    if (rank == 1) {
      relations.equal("W5", "head count", gate, 0, state, 1);
      continue;
    }
    for (int64_t dim = 0; dim < 3; ++dim)
      relations.equal("W5", dims[dim], gate, dim, key, dim);
    if (rank == 4)
      relations.equal("W5", "head size", gate, 3, key, 3);
  }
  return relations.list;
}

LogicalResult SweepOp::verify() {
  if (failed(verifySemantics(*this)))
    return failure();
  Named query{getQuery(), "query"};
  for (Named other :
       {Named{getKey(), "key"}, Named{getValue(), "value"},
        Named{getValueQuery(), "value_query"}, Named{getOutput(), "output"},
        Named{getValueOutput(), "value_output"}}) // (W3)
    if (failed(verifySameElementType(*this, query, other)))
      return failure();
  if (failed(verifyStateTypes(*this, elementType(getQuery()), // (W4)
                              {getState(), "state"}, Value(), Value())) ||
      failed(verifyRank(*this, {getDecay(), "decay"}, {1, 3, 4},
                        "[H], [B, H, T] or [B, H, T, K]")) || // (W5)
      failed(verifyRank(*this, {getA(), "a"}, {4}, "[B, H, T, K]")) ||
      failed(verifyRank(*this, {getB(), "b"}, {4}, "[B, H, T, K]")) ||
      failed(verifyPackedBatch(*this, getCuSeqlens(), getQuery()))) // (W7)
    return failure();
  if (bool(getA()) != bool(getB())) // (W6)
    return emitOpError("expected both a and b or neither, but got only ")
           << (getA() ? "a" : "b");
  if (getDecayWrites() && (!getDecay() || getA())) // (W10)
    return emitOpError("expected decay_writes with a decay and without a and "
                       "b, but got ")
           << (getA() ? "a" : "no decay");
  Type type = elementType(getState());
  if (std::optional<APFloat> scale = getScale(); // (W8)
      scale && !isUsableScale(scale->convertToDouble(), type))
    return emitOpError("expected scale to be 0 or a normal number of ")
           << type << ", but got " << scale->convertToDouble();
  if (failed(verifyConstantDecay(*this, {getDecay(), "decay"}))) // (W9)
    return failure();
  return verifyRelations(*this);
}

ScanOp SweepOp::createScan(OpBuilder &b) {
  Value none;
  SmallVector<Type> types;
  for (Value destination : {getOutput(), getState()})
    if (isa<RankedTensorType>(destination.getType()))
      types.push_back(destination.getType());
  return ScanOp::create(b, getLoc(), types, getQuery(), getKey(), getValue(),
                        getDecay(), none, none, getA(), getB(), none, none,
                        none, none, none, getCuSeqlens(), none, none,
                        getOutput(), getState(), none, none, ValueRange(),
                        getA() ? Update::Dplr : Update::Add, getReadout(),
                        getA() ? Transition::Before : Transition::After,
                        getReverse(), IntegerAttr(), FeatureMapAttr(),
                        NormalizeAttr(), getScaleAttr(), getConfigAttr());
}
