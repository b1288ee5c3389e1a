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

#include "linattn/Dialect/LinAttn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// Building relations
//===----------------------------------------------------------------------===//

namespace {

/// An operand with the name its messages use.
struct Named {
  Value value;
  StringRef name;
};

class Relations {
public:
  void equal(StringRef id, StringRef what, Named a, int64_t dimA, Named b,
             int64_t dimB) {
    list.push_back({DimRelationKind::Equal,
                    {{a.value, dimA, a.name}, {b.value, dimB, b.name}},
                    what,
                    id});
  }

  /// Head counts of the given operands divide one another, pair by pair.
  void headsDivide(StringRef id, ArrayRef<Named> operands) {
    for (size_t i = 0; i < operands.size(); ++i)
      for (size_t j = i + 1; j < operands.size(); ++j)
        list.push_back({DimRelationKind::Divides,
                        {{operands[i].value, 1, operands[i].name},
                         {operands[j].value, 1, operands[j].name}},
                        "head count",
                        id});
  }

  /// The head count of `result` is the largest of the others'.
  void headsMax(StringRef id, Named result, ArrayRef<Named> others) {
    DimRelation relation{DimRelationKind::Max,
                         {{result.value, 1, result.name}},
                         "head count",
                         id};
    for (const Named &other : others)
      relation.dims.push_back({other.value, 1, other.name});
    list.push_back(std::move(relation));
  }

  void oneLess(StringRef id, StringRef what, Named a, int64_t dimA, Named b,
               int64_t dimB) {
    list.push_back({DimRelationKind::OneLess,
                    {{a.value, dimA, a.name}, {b.value, dimB, b.name}},
                    what,
                    id});
  }

  SmallVector<DimRelation> list;
};

} // namespace

static Type elementType(Value value) { return getElementTypeOrSelf(value); }
static int64_t rankOf(Value value) {
  return cast<ShapedType>(value.getType()).getRank();
}

/// Checks the relations whose sizes are all static.
static LogicalResult verifyRelations(ShapeContractOpInterface op) {
  for (const DimRelation &relation : op.getDimRelations()) {
    SmallVector<int64_t> sizes;
    SmallVector<std::string> spelled;
    for (const DimRef &ref : relation.dims) {
      int64_t size = cast<ShapedType>(ref.value.getType()).getDimSize(ref.dim);
      sizes.push_back(size);
      spelled.push_back(std::to_string(size));
    }
    if (llvm::any_of(sizes, ShapedType::isDynamic) || relation.holds(sizes))
      continue;
    return op->emitOpError(relation.message(spelled));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Checks shared by several ops
//===----------------------------------------------------------------------===//

static LogicalResult verifySameElementType(Operation *op, Named a, Named b) {
  if (elementType(a.value) == elementType(b.value))
    return success();
  return op->emitOpError("expected ")
         << a.name << " and " << b.name
         << " to have the same element type, but got " << elementType(a.value)
         << " and " << elementType(b.value);
}

static LogicalResult verifyElementType(Operation *op, Named operand,
                                       Type expected) {
  if (!operand.value || elementType(operand.value) == expected)
    return success();
  return op->emitOpError("expected ")
         << operand.name << " to have element type " << expected << ", but got "
         << elementType(operand.value);
}

static LogicalResult verifyRank(Operation *op, Named operand,
                                ArrayRef<int64_t> ranks, StringRef shapes) {
  if (!operand.value || llvm::is_contained(ranks, rankOf(operand.value)))
    return success();
  return op->emitOpError("expected ")
         << operand.name << " to be " << shapes << ", but got "
         << operand.value.getType();
}

/// φ maps one scalar to another by scalar arithmetic, so that it can be emitted
/// on vectors too. It may use scalars from outside: a parameter, or a constant
/// that a pass has hoisted.
static LogicalResult verifyScalarFunction(Operation *op, Region &region,
                                          Type scalar) {
  Block &block = region.front();
  if (block.getNumArguments() != 1 || block.getArgument(0).getType() != scalar)
    return op->emitOpError("expected phi to take one argument of type ")
           << scalar << ", but got (" << block.getArgumentTypes() << ")";
  auto yield = dyn_cast<YieldOp>(block.back());
  Value result = yield ? yield.getResult() : Value();
  if (!result || result.getType() != scalar) {
    InFlightDiagnostic error =
        op->emitOpError("expected phi to yield one value of type ") << scalar;
    return result ? error << ", but got " << result.getType()
                  : error << ", but got none";
  }
  for (Operation &inner : block) {
    bool isScalarArithmetic =
        llvm::all_of(inner.getResultTypes(),
                     [](Type type) { return type.isIntOrIndexOrFloat(); }) &&
        (isa<arith::ConstantOp>(inner) ||
         (isPure(&inner) && OpTrait::hasElementwiseMappableTraits(&inner)));
    if (!isScalarArithmetic && &inner != yield)
      return op->emitOpError("expected phi to hold scalar arithmetic only, "
                             "but got '")
             << inner.getName() << "'";
    for (Value operand : inner.getOperands())
      if (!operand.getType().isIntOrIndexOrFloat())
        return op->emitOpError("expected phi to use scalars only, but got ")
               << operand.getType();
  }
  return success();
}

/// (A8) and its twins.
static LogicalResult verifyFeatureMap(FeatureMappedOpInterface op,
                                      Type tokenType) {
  Region &region = op.getFeatureMapRegion();
  bool isRegion = op.getFeatureMapKind() == FeatureMapKind::Region;
  if (isRegion != !region.empty())
    return op->emitOpError(isRegion
                               ? "expected a phi region with feature map "
                                 "region, but got none"
                               : "expected a phi region only with feature map "
                                 "region, but got feature map ")
           << (isRegion ? StringRef()
                        : stringifyFeatureMapKind(op.getFeatureMapKind()));
  return isRegion
             ? verifyScalarFunction(op, region, getAccumulationType(tokenType))
             : success();
}

static LogicalResult verifyScale(Operation *op, std::optional<APFloat> scale) {
  Type type = getAccumulationType(elementType(op->getOperand(0)));
  if (!scale || isUsableScale(scale->convertToDouble(), type))
    return success();
  return op->emitOpError("expected scale to be 0 or a normal number of ")
         << type << ", but got " << scale->convertToDouble();
}

/// Structured ops return their tensors, or nothing on buffers.
static LogicalResult verifySemantics(DestinationStyleOpInterface op) {
  if (op.hasPureTensorSemantics() || op.hasPureBufferSemantics())
    return success();
  return op->emitOpError("expected all operands to be tensors or all to be "
                         "buffers, but got a mixture");
}

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
  relations.equal("A10", "batch size", query, 0, result, 0);
  relations.headsMax("A10", result, {query, key, value});
  relations.equal("A10", "sequence length", query, 2, result, 2);
  relations.equal("A10", "head size", value, 3, result, 3);
}

template <typename OpTy>
static LogicalResult verifyAttention(OpTy op, Value output) {
  Named query{op.getQuery(), "query"};
  for (Named other : {Named{op.getKey(), "key"}, Named{op.getValue(), "value"},
                      Named{output, "output"}})
    if (failed(verifySameElementType(op, query, other))) // (A6)
      return failure();
  if (failed(verifyFeatureMap(op, elementType(op.getQuery()))) ||
      failed(verifyScale(op, op.getScale()))) // (A11)
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
  if (getCausal())
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
  if (failed(verifySemantics(*this)))
    return failure();
  return verifyAttention(*this, getOutput());
}

//===----------------------------------------------------------------------===//
// scan
//===----------------------------------------------------------------------===//

/// (S11): where each dimension of a gate comes from, by the gate's rank.
/// Heads of a gate are state heads.
static void gateRelations(Named gate, Named tokens, Named state,
                          int64_t lastDim, StringRef last, Named lastOf,
                          Relations &relations) {
  if (!gate.value)
    return;
  if (rankOf(gate.value) == 1) {
    relations.equal("S11", "head count", gate, 0, state, 1);
    return;
  }
  relations.equal("S11", "batch size", gate, 0, tokens, 0);
  relations.equal("S11", "head count", gate, 1, state, 1);
  relations.equal("S11", "sequence length", gate, 2, tokens, 2);
  if (rankOf(gate.value) == 4)
    relations.equal("S11", last, gate, 3, lastOf, lastDim);
}

static void scanGateRelations(ScanOp op, Relations &relations) {
  Named key{op.getKey(), "key"}, value{op.getValue(), "value"},
      state{op.getState(), "state"};
  for (Named gate : {Named{op.getDecay(), "decay"}, Named{op.getA(), "a"},
                     Named{op.getB(), "b"}, Named{op.getErase(), "erase"}})
    gateRelations(gate, key, state, 3, "head size", key, relations);
  for (Named gate :
       {Named{op.getValueDecay(), "value_decay"}, Named{op.getWrite(), "write"},
        Named{op.getBeta(), "beta"}})
    gateRelations(gate, key, state, 3, "head size", value, relations);
  if (op.getBonus()) {
    Named bonus{op.getBonus(), "bonus"};
    relations.equal("S11", "head count", bonus, 0, state, 1);
    relations.equal("S11", "head size", bonus, 1, key, 3);
  }
  if (op.getMask()) {
    Named mask{op.getMask(), "mask"};
    relations.equal("S11", "batch size", mask, 0, key, 0);
    relations.equal("S11", "sequence length", mask, 1, key, 2);
  }
}

/// The state beside its tokens: [N, H, K, V], [N, H, K] and [N, H].
static void stateRelations(StringRef id, Named key, Named value, Named state,
                           Value normalizer, Value runningMax,
                           Relations &relations) {
  relations.headsMax(id, state, {key, value});
  relations.equal(id, "head size", key, 3, state, 2);
  relations.equal(id, "head size", value, 3, state, 3);
  if (normalizer)
    for (int64_t dim = 0; dim < 3; ++dim)
      relations.equal(id,
                      dim == 0   ? "batch size"
                      : dim == 1 ? "head count"
                                 : "head size",
                      {normalizer, "normalizer"}, dim, state, dim);
  if (runningMax)
    for (int64_t dim = 0; dim < 2; ++dim)
      relations.equal(id, dim == 0 ? "batch size" : "head count",
                      {runningMax, "running_max"}, dim, state, dim);
}

SmallVector<DimRelation> ScanOp::getDimRelations() {
  Relations relations;
  Named query{getQuery(), "query"}, key{getKey(), "key"},
      value{getValue(), "value"}, output{getOutput(), "output"},
      state{getState(), "state"};
  relations.equal("S1", "head size", query, 3, key, 3);
  relations.equal("S2", "sequence length", query, 2, key, 2);
  relations.equal("S2", "sequence length", key, 2, value, 2);
  relations.equal("S3", "batch size", query, 0, key, 0);
  relations.equal("S3", "batch size", query, 0, value, 0);
  relations.headsDivide("S4", {query, key, value});
  if (getCuSeqlens())
    relations.oneLess("S17", "batch size", state, 0,
                      {getCuSeqlens(), "cu_seqlens"}, 0);
  else
    relations.equal("S6", "batch size", query, 0, state, 0);
  stateRelations("S6", key, value, state, getNormalizer(), getRunningMax(),
                 relations);
  relations.equal("S7", "batch size", query, 0, output, 0);
  relations.headsMax("S7", output, {query, key, value});
  relations.equal("S7", "sequence length", query, 2, output, 2);
  relations.equal("S7", "head size", value, 3, output, 3);
  scanGateRelations(*this, relations);
  return relations.list;
}

/// (S11), the ranks.
static LogicalResult verifyScanRanks(ScanOp op) {
  return success(
      succeeded(verifyRank(op, {op.getDecay(), "decay"}, {1, 3, 4},
                           "[H], [B, H, T] or [B, H, T, K]")) &&
      succeeded(verifyRank(op, {op.getValueDecay(), "value_decay"}, {4},
                           "[B, H, T, V]")) &&
      succeeded(verifyRank(op, {op.getBeta(), "beta"}, {3, 4},
                           "[B, H, T] or [B, H, T, V]")) &&
      succeeded(verifyRank(op, {op.getA(), "a"}, {4}, "[B, H, T, K]")) &&
      succeeded(verifyRank(op, {op.getB(), "b"}, {4}, "[B, H, T, K]")) &&
      succeeded(
          verifyRank(op, {op.getErase(), "erase"}, {4}, "[B, H, T, K]")) &&
      succeeded(verifyRank(op, {op.getWrite(), "write"}, {4}, "[B, H, T, V]")));
}

/// (S12) to (S18): which operands and enums mean something together.
static LogicalResult verifyScanFamily(ScanOp op) {
  Update update = op.getUpdate();
  bool add = update == Update::Add, delta = update == Update::Delta,
       dplr = update == Update::Dplr;
  bool exclusive = op.getReadout() == Readout::Exclusive;
  std::string updateClause = ("update(" + stringifyUpdate(update) + ")").str();
  std::string readoutClause =
      ("readout(" + stringifyReadout(op.getReadout()) + ")").str();
  auto only = [&](bool present, StringRef name, bool allowed, StringRef with,
                  const Twine &got) -> LogicalResult {
    if (!present || allowed)
      return success();
    return op.emitOpError("expected ")
           << name << " only with " << with << ", but got " << got;
  };
  auto onlyWith = [&](Value operand, StringRef name, Update needed,
                      StringRef with) {
    return only(bool(operand), name, update == needed, with, updateClause);
  };
  if (failed(onlyWith(op.getBeta(), "beta", Update::Delta, "update(delta)")) ||
      failed(
          onlyWith(op.getErase(), "erase", Update::Delta, "update(delta)")) ||
      failed(
          onlyWith(op.getWrite(), "write", Update::Delta, "update(delta)")) ||
      failed(onlyWith(op.getA(), "a", Update::Dplr, "update(dplr)")) ||
      failed(onlyWith(op.getB(), "b", Update::Dplr, "update(dplr)")) ||
      failed(onlyWith(op.getValueDecay(), "value_decay", Update::Add,
                      "update(add)")) ||
      failed(only(bool(op.getBonus()), "bonus", exclusive, "readout(exclusive)",
                  readoutClause)) ||
      failed(only(op.getNormalize().has_value(), "normalize", add && !exclusive,
                  "update(add) and readout(inclusive)",
                  updateClause + " and " + readoutClause)) ||
      failed(only(op.getTransition() == Transition::Before,
                  "transition(before)", dplr, "update(dplr)", updateClause)))
    return failure();
  if (delta && !op.getBeta() && !op.getErase())
    return op.emitOpError(
        "expected update(delta) with beta or erase, but got neither");
  if (dplr && (!op.getA() || !op.getB()))
    return op.emitOpError("expected update(dplr) with both a and b, but got ")
           << (op.getA()   ? "only a"
               : op.getB() ? "only b"
                           : "neither");
  if (op.getCuSeqlens()) {
    int64_t batch = cast<ShapedType>(op.getQuery().getType()).getDimSize(0);
    if (!ShapedType::isDynamic(batch) && batch != 1)
      return op.emitOpError("expected batch size 1 with cu_seqlens, but got ")
             << batch;
  }
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verifySemantics(*this)))
    return failure();
  Named query{getQuery(), "query"};
  for (Named other : {Named{getKey(), "key"}, Named{getValue(), "value"},
                      Named{getOutput(), "output"}}) // (S5)
    if (failed(verifySameElementType(*this, query, other)))
      return failure();
  Type accumulation = getAccumulationType(elementType(getQuery()));
  for (Named operand : {Named{getState(), "state"}, // (S6)
                        Named{getNormalizer(), "normalizer"},
                        Named{getRunningMax(), "running_max"}})
    if (failed(verifyElementType(*this, operand, accumulation)))
      return failure();
  if (getNormalize().has_value() != bool(getNormalizer())) // (S8)
    return emitOpError("expected a normalizer exactly with normalize, but got ")
           << (getNormalizer() ? "a normalizer without normalize"
                               : "normalize without a normalizer");
  auto kind =
      cast<FeatureMappedOpInterface>(getOperation()).getFeatureMapKind();
  if (needsRunningMax(kind, getNormalize().has_value()) !=
      bool(getRunningMax())) // (S9)
    return emitOpError("expected running_max exactly with feature map exp "
                       "under normalize, but got ")
           << (getRunningMax() ? "one without them" : "none");
  if (failed(verifyFeatureMap(*this, elementType(getQuery()))) ||
      failed(verifyScale(*this, getScale())) || // (S19)
      failed(verifyScanRanks(*this)) || failed(verifyScanFamily(*this)))
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
  relations.equal("T2", "batch size", key, 0, state, 0);
  relations.headsDivide("T3", {key, value});
  stateRelations("T5", key, value, state, getNormalizer(), getRunningMax(),
                 relations);
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
  Type accumulation = getAccumulationType(elementType(getKey()));
  for (Named operand : {Named{getState(), "state"}, // (T5)
                        Named{getNormalizer(), "normalizer"},
                        Named{getRunningMax(), "running_max"}})
    if (failed(verifyElementType(*this, operand, accumulation)))
      return failure();
  auto kind =
      cast<FeatureMappedOpInterface>(getOperation()).getFeatureMapKind();
  if (needsRunningMax(kind, bool(getNormalizer())) != bool(getRunningMax()))
    return emitOpError("expected running_max exactly with feature map exp and "
                       "a normalizer, but got ") // (T7)
           << (getRunningMax() ? "one without them" : "none");
  if (failed(verifyFeatureMap(*this, elementType(getKey()))))
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
  return relations.list;
}

LogicalResult ReadOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySameElementType(*this, {getQuery(), "query"},
                                   {getOutput(), "output"}))) // (R3)
    return failure();
  Type accumulation = getAccumulationType(elementType(getQuery()));
  if (failed(verifyElementType(*this, {getState(), "state"}, accumulation)) ||
      failed(verifyElementType(*this, {getNormalizer(), "normalizer"},
                               accumulation))) // (R5)
    return failure();
  if (getNormalize().has_value() != bool(getNormalizer())) // (R4)
    return emitOpError("expected a normalizer exactly with normalize, but got ")
           << (getNormalizer() ? "a normalizer without normalize"
                               : "normalize without a normalizer");
  if (failed(verifyFeatureMap(*this, elementType(getQuery()))) ||
      failed(verifyScale(*this, getScale()))) // (R7)
    return failure();
  return verifyRelations(*this);
}

SmallVector<DimRelation> FeatureMapOp::getDimRelations() {
  Relations relations;
  static constexpr StringRef what[] = {"batch size", "head count",
                                       "sequence length", "head size"};
  for (int64_t dim = 0; dim < 4; ++dim)
    relations.equal("F1", what[dim], {getInput(), "input"}, dim,
                    {getOutput(), "output"}, dim);
  return relations.list;
}

LogicalResult FeatureMapOp::verify() {
  if (failed(verifySemantics(*this)) ||
      failed(verifySameElementType(*this, {getInput(), "input"},
                                   {getOutput(), "output"})) ||
      failed(verifyFeatureMap(*this, elementType(getInput()))))
    return failure();
  return verifyRelations(*this);
}
