//===- RecurrencesVerify.cpp - Verifiers of the small recurrences ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As in Verify.cpp: sizes are relations, all else is checked here, and the
// identifiers in parentheses are those of the ops' descriptions.
//
//===----------------------------------------------------------------------===//

#include "VerifyUtils.h"

#include "linattn/Dialect/LinAttnSweep.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::verify;

//===----------------------------------------------------------------------===//
// Shared
//===----------------------------------------------------------------------===//

static constexpr StringRef channelNames[] = {"batch size", "sequence length",
                                             "channel count"};

/// `other`, if present, has the shape of `tokens`, [B, T, C].
static void sameTokens(StringRef id, Named tokens, Named other,
                       Relations &relations) {
  for (int64_t dim = 0; other.value && dim < 3; ++dim)
    relations.equal(id, channelNames[dim], tokens, dim, other, dim);
}

/// `operand`, if present, is [C] or [B, T, C].
static void channelsOrTokens(StringRef id, Named tokens, Named operand,
                             Relations &relations) {
  if (!operand.value)
    return;
  if (rankOf(operand.value) == 3)
    sameTokens(id, tokens, operand, relations);
  else
    relations.equal(id, "channel count", operand, 0, tokens, 2);
}

/// One state per batch element, or per sequence.
static void stateCount(StringRef id, StringRef packedId, Named tokens,
                       Named state, Value offsets, Relations &relations) {
  if (offsets)
    relations.oneLess(packedId, "first dimension", state, 0,
                      {offsets, "cu_seqlens"}, 0);
  else
    relations.equal(id, "batch size", tokens, 0, state, 0);
}

/// States are f32 or f64, and f64 if the tokens are.
static LogicalResult verifyStateType(Operation *op, Named tokens, Named state) {
  if (!state.value)
    return success();
  Type type = elementType(state.value);
  if (type.isF64() || (type.isF32() && !elementType(tokens.value).isF64()))
    return success();
  return op->emitOpError("expected ")
         << state.name << " to have element type "
         << (elementType(tokens.value).isF64() ? "f64" : "f32 or f64")
         << ", but got " << type;
}

/// The optional operand requires another one.
static LogicalResult verifyNeeds(Operation *op, Value operand, StringRef name,
                                 Value needed, StringRef neededName) {
  if (!operand || needed)
    return success();
  return op->emitOpError("expected ")
         << name << " only with " << neededName << ", but got it alone";
}

/// The two operands are either both present or both absent.
static LogicalResult verifyBothOrNeither(Operation *op, Named x, Named y) {
  if (bool(x.value) == bool(y.value))
    return success();
  return op->emitOpError("expected ")
         << x.name << " and " << y.name << " together, but got only "
         << (x.value ? x.name : y.name);
}

//===----------------------------------------------------------------------===//
// selective_scan
//===----------------------------------------------------------------------===//

/// A projection of states, by its rank.
static void projectionRelations(StringRef id, Named projection, Named tokens,
                                Named a, Relations &relations) {
  if (!projection.value)
    return;
  int64_t rank = rankOf(projection.value);
  relations.equal(id, "state size", projection, rank - 1, a, 1);
  if (rank == 2) {
    relations.equal(id, "channel count", projection, 0, tokens, 2);
    return;
  }
  relations.equal(id, "batch size", projection, 0, tokens, 0);
  relations.equal(id, "sequence length", projection, rank - 2, tokens, 1);
  if (rank != 4)
    return;
  // One of the two divides the other and is the number of groups.
  DimRef groups{projection.value, 1, projection.name},
      channels{tokens.value, 2, tokens.name};
  StringRef what = "channel or group count";
  relations.list.push_back(
      {DimRelationKind::Max, {channels, channels, groups}, what, id});
  relations.list.push_back(
      {DimRelationKind::Divides, {groups, channels}, what, id});
}

/// (M5): an imaginary part is shaped like its real part.
static void likeRealPart(Named imaginary, Named real, Relations &relations) {
  if (!imaginary.value || rankOf(imaginary.value) != rankOf(real.value))
    return;
  for (int64_t dim = 0, rank = rankOf(real.value); dim < rank; ++dim)
    relations.equal("M5", "shape", imaginary, dim, real, dim);
}

SmallVector<DimRelation> SelectiveScanOp::getDimRelations() {
  Relations relations;
  Named input{getInput(), "input"}, a{getA(), "a"}, b{getB(), "b"},
      c{getC(), "c"}, state{getState(), "state"};
  sameTokens("M1", input, {getGate(), "gate"}, relations);
  sameTokens("M1", input, {getOutput(), "output"}, relations);
  channelsOrTokens("M2", input, {getDelta(), "delta"}, relations);
  relations.equal("M3", "channel count", a, 0, input, 2);
  for (Named operand :
       {Named{getSkip(), "skip"}, Named{getDeltaBias(), "delta_bias"}})
    channelsOrTokens("M3", input, operand, relations);
  projectionRelations("M4", b, input, a, relations);
  projectionRelations("M4", c, input, a, relations);
  if (rankOf(b.value) == 4 && rankOf(c.value) == 4)
    relations.equal("M4", "group count", b, 1, c, 1);
  likeRealPart({getAImag(), "a_imag"}, a, relations);
  likeRealPart({getBImag(), "b_imag"}, b, relations);
  likeRealPart({getCImag(), "c_imag"}, c, relations);
  likeRealPart({getStateImag(), "init_imag"}, state, relations);
  stateCount("M6", "M7", input, state, getCuSeqlens(), relations);
  relations.equal("M6", "channel count", state, 1, input, 2);
  relations.equal("M6", "state size", state, 2, a, 1);
  return relations.list;
}

LogicalResult SelectiveScanOp::verify() {
  Named input{getInput(), "input"}, state{getState(), "state"},
      stateImag{getStateImag(), "init_imag"};
  if (failed(verifySemantics(*this)) ||
      failed(verifySameElementType(*this, input, // (M1)
                                   {getOutput(), "output"})) ||
      failed(verifyBothOrNeither(*this, {getAImag(), "a_imag"}, stateImag)) ||
      failed(verifyNeeds(*this, getBImag(), "b_imag", getAImag(), // (M5)
                         "a_imag")) ||
      failed(verifyNeeds(*this, getCImag(), "c_imag", getAImag(), "a_imag")) ||
      failed(verifyStateType(*this, input, state)) || // (M6)
      failed(verifyElementType(*this, stateImag, elementType(state.value))) ||
      failed(verifyPackedBatch(*this, getCuSeqlens(), getInput()))) // (M7)
    return failure();
  int64_t rankB = rankOf(getB()), rankC = rankOf(getC());
  if (rankB != rankC && rankB != 2 && rankC != 2) // (M4)
    return emitOpError("expected b and c that depend on the token to have the "
                       "same rank, but got ")
           << rankB << " and " << rankC;
  for (auto [imaginary, real] :
       {std::pair(Named{getBImag(), "b_imag"}, getB()),
        std::pair(Named{getCImag(), "c_imag"}, getC())})
    if (imaginary.value && rankOf(imaginary.value) != rankOf(real)) // (M5)
      return emitOpError("expected ")
             << imaginary.name << " to have the rank of its real part, "
             << rankOf(real) << ", but got " << rankOf(imaginary.value);
  return verifyRelations(*this);
}

//===----------------------------------------------------------------------===//
// sweep_selective
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> SweepSelectiveOp::getDimRelations() {
  Relations relations;
  Named input{getInput(), "input"}, a{getA(), "a"}, b{getB(), "b"};
  for (Named other :
       {Named{getDelta(), "delta"}, Named{getCotangent(), "cotangent"},
        Named{getOutput(), "output"}, Named{getDeltaOutput(), "delta_output"}})
    sameTokens("S1", input, other, relations);
  relations.equal("S2", "channel count", a, 0, input, 2);
  relations.equal("S2", "channel count", {getAOutput(), "a_output"}, 0, a, 0);
  relations.equal("S2", "state size", {getAOutput(), "a_output"}, 1, a, 1);
  projectionRelations("S3", b, input, a, relations);
  for (Named other : {Named{getC(), "c"}, Named{getBOutput(), "b_output"},
                      Named{getCOutput(), "c_output"}})
    for (int64_t dim = 0, rank = rankOf(b.value);
         rankOf(other.value) == rank && dim < rank; ++dim)
      relations.equal("S3", "shape", other, dim, b, dim);
  for (Named state : {Named{getStart(), "start"}, Named{getState(), "state"}}) {
    stateCount("S4", "S6", input, state, getCuSeqlens(), relations);
    relations.equal("S4", "channel count", state, 1, input, 2);
    relations.equal("S4", "state size", state, 2, a, 1);
  }
  return relations.list;
}

LogicalResult SweepSelectiveOp::verify() {
  Named input{getInput(), "input"};
  if (failed(verifySemantics(*this)))
    return failure();
  if (Type type = elementType(getInput()); !type.isF32() && !type.isF64())
    return emitOpError("expected input to have element type f32 or f64, but "
                       "got ")
           << type; // (S5)
  for (Named other :
       {Named{getDelta(), "delta"}, Named{getA(), "a"}, Named{getB(), "b"},
        Named{getC(), "c"}, Named{getStart(), "start"},
        Named{getCotangent(), "cotangent"}, Named{getOutput(), "output"},
        Named{getDeltaOutput(), "delta_output"},
        Named{getAOutput(), "a_output"}, Named{getBOutput(), "b_output"},
        Named{getCOutput(), "c_output"}, Named{getState(), "state"}})
    if (failed(verifySameElementType(*this, input, other))) // (S5)
      return failure();
  int64_t rank = rankOf(getB());
  if (rank == 2) // (S3)
    return emitOpError("expected b to be [B, T, N] or [B, G, T, N], but got "
                       "rank 2");
  for (Named other : {Named{getC(), "c"}, Named{getBOutput(), "b_output"},
                      Named{getCOutput(), "c_output"}})
    if (rankOf(other.value) != rank) // (S3)
      return emitOpError("expected ")
             << other.name << " to have the rank of b, " << rank << ", but got "
             << rankOf(other.value);
  if (failed(verifyPackedBatch(*this, getCuSeqlens(), getInput()))) // (S6)
    return failure();
  return verifyRelations(*this);
}

//===----------------------------------------------------------------------===//
// diagonal_scan
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> DiagonalScanOp::getDimRelations() {
  Relations relations;
  Named input{getInput(), "input"}, state{getState(), "state"};
  sameTokens("D1", input, {getImag(), "imag"}, relations);
  sameTokens("D1", input, {getOutput(), "output"}, relations);
  sameTokens("D1", input, {getOutputImag(), "into_imag"}, relations);
  channelsOrTokens("D2", input, {getDecay(), "decay"}, relations);
  channelsOrTokens("D2", input, {getPhase(), "phase"}, relations);
  stateCount("D4", "D5", input, state, getCuSeqlens(), relations);
  relations.equal("D4", "channel count", state, 1, input, 2);
  if (Named imag{getStateImag(), "init_imag"}; imag.value) {
    relations.equal("D4", "batch size", imag, 0, state, 0);
    relations.equal("D4", "channel count", imag, 1, state, 1);
  }
  return relations.list;
}

LogicalResult DiagonalScanOp::verify() {
  Named input{getInput(), "input"}, state{getState(), "state"},
      stateImag{getStateImag(), "init_imag"}, phase{getPhase(), "phase"};
  if (failed(verifySemantics(*this)))
    return failure();
  for (Named other : {Named{getImag(), "imag"}, Named{getOutput(), "output"},
                      Named{getOutputImag(), "into_imag"}}) // (D1)
    if (other.value && failed(verifySameElementType(*this, input, other)))
      return failure();
  if (failed(verifyBothOrNeither(*this, phase, stateImag)) || // (D3)
      failed(verifyNeeds(*this, getImag(), "imag", getPhase(), "phase")) ||
      failed(verifyNeeds(*this, getOutputImag(), "into_imag", getPhase(),
                         "phase")) ||
      failed(verifyStateType(*this, input, state)) || // (D4)
      failed(verifyElementType(*this, stateImag, elementType(state.value))) ||
      failed(verifyPackedBatch(*this, getCuSeqlens(), getInput()))) // (D5)
    return failure();
  return verifyRelations(*this);
}

//===----------------------------------------------------------------------===//
// wkv4
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> Wkv4Op::getDimRelations() {
  Relations relations;
  Named key{getKey(), "key"}, state{getState(), "state"};
  sameTokens("W1", key, {getValue(), "value"}, relations);
  sameTokens("W1", key, {getOutput(), "output"}, relations);
  channelsOrTokens("W2", key, {getDecay(), "decay"}, relations);
  channelsOrTokens("W2", key, {getBonus(), "bonus"}, relations);
  stateCount("W3", "W4", key, state, getCuSeqlens(), relations);
  relations.equal("W3", "channel count", state, 2, key, 2);
  return relations.list;
}

LogicalResult Wkv4Op::verify() {
  Named key{getKey(), "key"}, state{getState(), "state"};
  if (failed(verifySemantics(*this)) ||
      failed(verifySameElementType(*this, key, // (W1)
                                   {getValue(), "value"})) ||
      failed(verifySameElementType(*this, key, {getOutput(), "output"})) ||
      failed(verifyStateType(*this, key, state)) ||               // (W3)
      failed(verifyPackedBatch(*this, getCuSeqlens(), getKey()))) // (W4)
    return failure();
  int64_t parts = cast<ShapedType>(getState().getType()).getDimSize(1);
  if (parts != 3) // (W3)
    return emitOpError("expected the state's second dimension to be 3, but "
                       "got ")
           << (ShapedType::isDynamic(parts) ? "?" : std::to_string(parts));
  return verifyRelations(*this);
}

//===----------------------------------------------------------------------===//
// log_linear
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> LogLinearOp::getDimRelations() {
  Relations relations;
  Named query{getQuery(), "query"}, key{getKey(), "key"},
      value{getValue(), "value"}, output{getOutput(), "output"},
      state{getState(), "state"}, levels{getLevels(), "levels"},
      decay{getDecay(), "decay"};
  relations.equal("L1", "head size", query, 3, key, 3);
  relations.equal("L2", "sequence length", query, 2, key, 2);
  relations.equal("L2", "sequence length", key, 2, value, 2);
  relations.equal("L3", "batch size", query, 0, key, 0);
  relations.equal("L3", "batch size", query, 0, value, 0);
  relations.equal("L3", "batch size", query, 0, output, 0);
  relations.headsDivide("L4", {query, key, value});
  stateCount("L6", "L10", key, state, getCuSeqlens(), relations);
  relations.headsMax("L6", state, {key, value});
  relations.equal("L6", "head size", key, 3, state, 3);
  relations.equal("L6", "head size", value, 3, state, 4);
  relations.headsMax("L7", output, {query, key, value});
  relations.equal("L7", "sequence length", query, 2, output, 2);
  relations.equal("L7", "head size", value, 3, output, 3);
  for (Named gate : {decay, levels}) {
    if (!gate.value)
      continue;
    relations.equal("L8", "batch size", gate, 0, key, 0);
    relations.equal("L8", "head count", gate, 1, state, 1);
    relations.equal("L8", "sequence length", gate, 2, key, 2);
  }
  relations.equal("L8", "level count", levels, 3, state, 2);
  if (getPosition())
    relations.equal("L9", "batch size", {getPosition(), "position"}, 0, state,
                    0);
  return relations.list;
}

LogicalResult LogLinearOp::verify() {
  Named query{getQuery(), "query"}, state{getState(), "state"};
  if (failed(verifySemantics(*this)))
    return failure();
  for (Named other : {Named{getKey(), "key"}, Named{getValue(), "value"},
                      Named{getOutput(), "output"}}) // (L5)
    if (failed(verifySameElementType(*this, query, other)))
      return failure();
  if (failed(verifyStateType(*this, query, state)) ||               // (L6)
      failed(verifyPackedBatch(*this, getCuSeqlens(), getQuery()))) // (L10)
    return failure();
  int64_t levels = cast<ShapedType>(getState().getType()).getDimSize(2);
  if (levels == 0 || ShapedType::isDynamic(levels)) // (L6)
    return emitOpError("expected a fixed number of levels, at least one, but "
                       "got ")
           << (levels == 0 ? "0" : "?");
  Type type = elementType(getState());
  if (failed(verifyScale(*this, type, getScale(), Value()))) // (L11)
    return failure();
  return verifyRelations(*this);
}
