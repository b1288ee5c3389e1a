//===- Chunk.cpp - Contracts of the ops of a chunk ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyUtils.h"

#include "linattn/Dialect/LinAttnChunk.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::verify;

#define GET_OP_CLASSES
#include "linattn/Dialect/LinAttnChunk.cpp.inc"

namespace {

/// Relations between operands [B, H, C, N], [B, H, C] and [B, H].
class ChunkRelations : public Relations {
public:
  void batch(StringRef id, Named a, Named b) {
    equal(id, "batch size", a, 0, b, 0);
  }
  void tokens(StringRef id, Named a, Named b) {
    equal(id, "number of tokens", a, 2, b, 2);
  }
  void features(StringRef id, Named a, Named b) {
    equal(id, "head size", a, 3, b, 3);
  }
  void sameHeads(StringRef id, Named a, Named b) {
    equal(id, "head count", a, 1, b, 1);
  }
  /// Rows of `a` and `b` agree in batch, tokens and features; heads may differ.
  void rows(StringRef id, Named a, Named b) {
    if (!a.value)
      return;
    batch(id, a, b);
    tokens(id, a, b);
    if (rankOf(a.value) == 4)
      features(id, a, b);
  }
  /// Scores [B, H, C, C] beside the rows of `b`.
  void scores(StringRef id, Named a, Named b) {
    batch(id, a, b);
    sameHeads(id, a, b);
    tokens(id, a, b);
    equal(id, "number of tokens", a, 3, b, 2);
  }
  /// The number of heads of `a`, if present, divides that of `b`.
  void headsInto(StringRef id, Named a, Named b) {
    if (!a.value)
      return;
    headsDivide(id, {a, b});
    headsMax(id, b, {a, b});
  }
};

} // namespace

static LogicalResult verifySameTypes(Operation *op, Named like,
                                     ArrayRef<Named> others) {
  for (Named other : others)
    if (other.value && failed(verifySameElementType(op, like, other)))
      return failure();
  return success();
}

/// Variadic operands, all under one name.
static SmallVector<Named> named(ValueRange values, StringRef name) {
  return llvm::map_to_vector(
      values, [&](Value value) -> Named { return {value, name}; });
}

/// `summands`, if present, has a number for each matrix.
static LogicalResult verifySummands(Operation *op, Type type,
                                    std::optional<ArrayRef<int64_t>> summands,
                                    ValueRange matrices) {
  if (summands && !type.isF32())
    return op->emitOpError("expected summands only in f32, but got ") << type;
  return verify::verifySummands(op, summands, matrices.size());
}

//===----------------------------------------------------------------------===//
// pack, unpack
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> ChunkPackOp::getDimRelations() {
  ChunkRelations relations;
  Named input{getInput(), "input"}, shift{getShift(), "shift"},
      gate{getGate(), "gate"}, output{getOutput(), "output"};
  if (rankOf(getInput()) == 1) {
    relations.equal("CP3", "head count", input, 0, output, 1);
  } else if (getPadded()) {
    relations.batch("CP2", input, output);
    if (rankOf(getInput()) == 4)
      relations.features("CP2", input, output);
    relations.headsInto("CP3", input, output);
  } else {
    relations.rows("CP2", input, output);
    relations.headsInto("CP3", input, output);
  }
  if (shift.value) {
    relations.rows("CP2", shift, output);
    relations.sameHeads("CP3", shift, output);
  }
  relations.rows("CP2", gate, output);
  relations.headsInto("CP3", gate, output);
  if (getMask()) {
    Named mask{getMask(), "mask"};
    relations.batch("CP2", mask, output);
    relations.equal("CP2", "number of tokens", mask, 1, output, 2);
  }
  return relations.list;
}

LogicalResult ChunkPackOp::verify() {
  if (failed(verifySemantics(*this)))
    return failure();
  int64_t rank = rankOf(getOutput());
  if ((rankOf(getInput()) == 4) != (rank == 4)) // (CP1)
    return emitOpError("expected input and output to be both rows or both "
                       "numbers, but got ")
           << getInput().getType() << " and " << getOutput().getType();
  if (getGate() && rankOf(getGate()) > rank) // (CP4)
    return emitOpError("expected a gate [B, H, C] beside numbers, but got ")
           << getGate().getType();
  if (getFill() && !getMask()) // (CP5)
    return emitOpError("expected fill only with a mask, but got one without");
  if (getPadded()) { // (CP8)
    if (rankOf(getInput()) == 1 || getShift() || getGate() || getMask() ||
        getReverse())
      return emitOpError("expected padded with an input of tokens and without "
                         "shift, gate, mask and reverse, but got ")
             << (rankOf(getInput()) == 1 ? "a number per head"
                 : getShift()            ? "a shift"
                 : getGate()             ? "a gate"
                 : getMask()             ? "a mask"
                                         : "reverse");
    int64_t tokens = cast<ShapedType>(getInput().getType()).getDimSize(2),
            rows = cast<ShapedType>(getOutput().getType()).getDimSize(2);
    if (!ShapedType::isDynamic(tokens) && !ShapedType::isDynamic(rows) &&
        tokens > rows)
      return emitOpError("expected an input of at most ")
             << rows << " tokens, the rows of the output, but got " << tokens;
  }
  Type type = elementType(getOutput());
  if (failed(verifyScale(*this, type, getScale(),
                         getScaleValue()))) // (CP6), (CP7)
    return failure();
  return verifyRelations(*this);
}

SmallVector<DimRelation> ChunkUnpackOp::getDimRelations() {
  ChunkRelations relations;
  Named rows{getRows(), "rows"}, output{getOutput(), "output"},
      denominator{getDenominator(), "denominator"},
      runningMax{getRunningMax(), "running_max"};
  relations.rows("CU1", rows, output);
  relations.sameHeads("CU1", rows, output);
  if (denominator.value) {
    relations.batch("CU2", denominator, rows);
    relations.sameHeads("CU2", denominator, rows);
    relations.tokens("CU2", denominator, rows);
  }
  relations.rows("CU3", runningMax, rows);
  relations.headsInto("CU3", runningMax, rows);
  return relations.list;
}

LogicalResult ChunkUnpackOp::verify() {
  Named rows{getRows(), "rows"};
  if (failed(verifySemantics(*this)) ||
      failed(verifySameTypes(*this, rows, // (CU4)
                             {{getDenominator(), "denominator"},
                              {getRunningMax(), "running_max"}})))
    return failure();
  if (getNormalize().has_value() != bool(getDenominator())) // (CU2)
    return emitOpError(
               "expected a denominator exactly with normalize, but got ")
           << (getDenominator() ? "a denominator without normalize"
                                : "normalize without a denominator");
  if (getDenominator()) { // (CU2)
    int64_t columns =
        cast<ShapedType>(getDenominator().getType()).getDimSize(3);
    if (columns != 1)
      return emitOpError("expected denominator to have one column, but got ")
             << (ShapedType::isDynamic(columns) ? "?"
                                                : std::to_string(columns));
  }
  if (getRunningMax() && // (CU3)
      !(getNormalize() && getNormalize()->getAbsFloor()))
    return emitOpError("expected running_max only with abs_floor, but got ")
           << (getNormalize() ? "another denominator" : "no normalize");
  return verifyRelations(*this);
}

//===----------------------------------------------------------------------===//
// decay, stabilize
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> ChunkDecayOp::getDimRelations() {
  ChunkRelations relations;
  Named rows{getRows(), "rows"}, decay{getDecay(), "decay"},
      output{getOutput(), "output"};
  relations.rows("CD1", rows, output);
  relations.sameHeads("CD1", rows, output);
  relations.rows("CD2", decay, rows);
  relations.headsInto("CD2", decay, rows);
  return relations.list;
}

LogicalResult ChunkDecayOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySameTypes(*this, {getRows(), "rows"}, // (CD4)
                             {{getDecay(), "decay"}, {getOutput(), "output"}})))
    return failure();
  if (getBefore() && getToEnd()) // (CD3)
    return emitOpError("expected either before or to_end, but got both");
  return verifyRelations(*this);
}

SmallVector<DimRelation> ChunkStabilizeOp::getDimRelations() {
  ChunkRelations relations;
  Named maxima{getMaxima(), "maxima"},
      runningMax{getRunningMax(), "running_max"}, fade{getFade(), "fade"},
      decay{getDecay(), "decay"};
  // The features of a magnitude are features of keys. Other operands have none.
  Named magnitude{getMagnitude(), "magnitude"};
  for (Named operand : {magnitude, decay, fade})
    if (operand.value) {
      relations.batch("CM1", operand, maxima);
      relations.sameHeads("CM1", operand, maxima);
      relations.tokens("CM1", operand, maxima);
    }
  relations.batch("CM1", runningMax, maxima);
  relations.sameHeads("CM1", runningMax, maxima);
  if (decay.value && rankOf(decay.value) == 4 && rankOf(fade.value) == 4)
    relations.features("CM2", fade, decay);
  return relations.list;
}

LogicalResult ChunkStabilizeOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySameTypes(*this, {getMagnitude(), "magnitude"}, // (CM4)
                             {{getDecay(), "decay"},
                              {getFade(), "fade"},
                              {getMaxima(), "maxima"},
                              {getRunningMax(), "running_max"}})))
    return failure();
  int64_t rank = getDecay() ? rankOf(getDecay()) : 3;
  if (rankOf(getFade()) != rank) // (CM2)
    return emitOpError("expected fade to have rank ")
           << rank << " as the decay, but got " << getFade().getType();
  if (rank == 4 && !getSteady()) // (CM3)
    return emitOpError("expected a decay [B, H, C] without steady, but got ")
           << getDecay().getType();
  return verifyRelations(*this);
}

//===----------------------------------------------------------------------===//
// scores, solve
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> ChunkScoresOp::getDimRelations() {
  ChunkRelations relations;
  Named rows{getRows(), "rows"}, keys{getKeys(), "keys"},
      decay{getDecay(), "decay"}, output{getOutput(), "output"};
  relations.rows("CS1", keys, rows);
  relations.scores("CS2", output, rows);
  relations.headsInto("CS3", keys, rows);
  relations.rows("CS4", decay, rows);
  relations.headsInto("CS3", decay, rows);
  if (getBonus()) {
    Named bonus{getBonus(), "bonus"};
    relations.list.push_back(
        {DimRelationKind::Divides,
         {{bonus.value, 0, bonus.name}, {rows.value, 1, rows.name}},
         "head count",
         "CS3"});
    relations.equal("CS4", "head size", bonus, 1, rows, 3);
  }
  return relations.list;
}

LogicalResult ChunkScoresOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySameTypes(*this, {getRows(), "rows"}, // (CS6)
                             {{getKeys(), "keys"},
                              {getDecay(), "decay"},
                              {getOutput(), "output"}})))
    return failure();
  if ((getBefore() || getBonus()) && !getStrict()) // (CS5)
    return emitOpError("expected ") << (getBefore() ? "before" : "a bonus")
                                    << " only with strict, but got it without";
  if (failed(verifySummands(*this, elementType(getOutput()), // (CS7)
                            getSummands(), getMatrices())))
    return failure();
  return verifyRelations(*this);
}

SmallVector<Value> ChunkScoresOp::getMatrices() {
  return {getRows(), getKeys()};
}

bool ChunkScoresOp::decaysTerms() {
  return getDecay() && rankOf(getDecay()) == 4;
}

SmallVector<DimRelation> ChunkSolveOp::getDimRelations() {
  ChunkRelations relations;
  Named scores{getScores(), "scores"}, gate{getGate(), "gate"},
      output{getOutput(), "rows"};
  relations.scores("CV1", scores, output);
  relations.rows("CV2", gate, output);
  relations.headsInto("CV2", gate, output);
  return relations.list;
}

LogicalResult ChunkSolveOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySameTypes(*this, {getScores(), "scores"}, // (CV3)
                             {{getGate(), "gate"}, {getOutput(), "rows"}})))
    return failure();
  return verifyRelations(*this);
}

//===----------------------------------------------------------------------===//
// read, update
//===----------------------------------------------------------------------===//

SmallVector<DimRelation> ChunkReadOp::getDimRelations() {
  ChunkRelations relations;
  Named rows{getRows(), "rows"}, state{getState(), "state"},
      output{getOutput(), "output"};
  int64_t key = getTranspose() ? 3 : 2, value = getTranspose() ? 2 : 3;
  relations.batch("CR1", rows, output);
  relations.batch("CR1", state, output);
  relations.sameHeads("CR1", rows, output);
  relations.tokens("CR1", rows, output);
  relations.equal("CR2", "head size", rows, 3, state, key);
  relations.equal("CR2", "head size", output, 3, state, value);
  relations.headsInto("CR4", state, output);
  for (Named scores : named(getScores(), "scores"))
    relations.scores("CR3", scores, output);
  for (Named values : named(getValues(), "values")) {
    relations.rows("CR3", values, output);
    relations.headsInto("CR4", values, output);
  }
  Named decay{getDecay(), "decay"};
  relations.rows("CR7", decay, output);
  relations.headsInto("CR7", decay, output);
  return relations.list;
}

LogicalResult ChunkReadOp::verify() {
  if (failed(verifySemantics(*this)))
    return failure();
  SmallVector<Named> others = named(getScores(), "scores");
  llvm::append_range(others, named(getValues(), "values"));
  others.push_back({getState(), "state"});
  others.push_back({getDecay(), "decay"});
  others.push_back({getOutput(), "output"});
  if (failed(verifySameTypes(*this, {getRows(), "rows"}, others))) // (CR5)
    return failure();
  if (getScores().size() != getValues().size()) // (CR3)
    return emitOpError("expected as many values as scores, but got ")
           << getValues().size() << " and " << getScores().size();
  if (failed(verifySummands(*this, elementType(getOutput()), // (CR6)
                            getSummands(), getMatrices())))
    return failure();
  return verifyRelations(*this);
}

SmallVector<Value> ChunkReadOp::getMatrices() {
  SmallVector<Value> matrices{getRows(), getState()};
  llvm::append_range(matrices, getScores());
  llvm::append_range(matrices, getValues());
  return matrices;
}

bool ChunkReadOp::decaysTerms() { return bool(getDecay()); }

SmallVector<DimRelation> ChunkUpdateOp::getDimRelations() {
  ChunkRelations relations;
  Named state{getOutput(), "state"};
  // A write is a pair of key and value. Every gate has as many tokens as the
  // first write.
  Named first = getKeys().empty() ? Named{getDecay(), "decay"}
                                  : Named{getKeys().front(), "keys"};
  auto write = [&](StringRef id, Named operand, int64_t dim) {
    if (!operand.value)
      return;
    relations.batch(id, operand, state);
    relations.sameHeads(id, operand, state);
    if (first.value)
      relations.tokens(id, operand, first);
    if (rankOf(operand.value) == 4)
      relations.equal(id, "head size", operand, 3, state, dim);
  };
  for (Named keys : named(getKeys(), "keys"))
    write("CW1", keys, 2);
  for (Named values : named(getValues(), "values"))
    write("CW1", values, 3);
  write("CW2", {getDecay(), "decay"}, 2);
  write("CW2", {getValueDecay(), "value_decay"}, 3);
  return relations.list;
}

LogicalResult ChunkUpdateOp::verify() {
  if (failed(verifySemantics(*this)))
    return failure();
  SmallVector<Named> others = named(getKeys(), "keys");
  llvm::append_range(others, named(getValues(), "values"));
  others.push_back({getDecay(), "decay"});
  others.push_back({getValueDecay(), "value_decay"});
  if (failed(verifySameTypes(*this, {getOutput(), "state"}, others))) // (CW3)
    return failure();
  if (getKeys().size() != getValues().size()) // (CW1)
    return emitOpError("expected as many values as keys, but got ")
           << getValues().size() << " and " << getKeys().size();
  if (failed(verifySummands(*this, elementType(getOutput()), // (CW4)
                            getSummands(), getMatrices())))
    return failure();
  return verifyRelations(*this);
}

SmallVector<Value> ChunkUpdateOp::getMatrices() {
  SmallVector<Value> matrices(getKeys());
  llvm::append_range(matrices, getValues());
  return matrices;
}

bool ChunkUpdateOp::decaysTerms() { return false; }
