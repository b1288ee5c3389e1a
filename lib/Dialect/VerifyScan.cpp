//===- VerifyScan.cpp - Verifier of scans ---------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyUtils.h"
#include "linattn/Dialect/ScanTraits.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::verify;
using ::linattn::Clause;

static void scanGateRelations(ScanOp op, Relations &relations) {
  Named key{op.getKey(), "key"}, value{op.getValue(), "value"},
      state{op.getState(), "state"};
  for (Named gate : {Named{op.getDecay(), "decay"}, Named{op.getA(), "a"},
                     Named{op.getB(), "b"}, Named{op.getErase(), "erase"}})
    gateRelations(gate, key, state, 3, "head size", key, relations);
  for (Named gate :
       {Named{op.getValueDecay(), "value_decay"}, Named{op.getWrite(), "write"},
        Named{op.getBeta(), "beta"}, Named{op.getInputGate(), "input_gate"}})
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

static constexpr StringRef snapshotNames[] = {
    "snapshots", "snapshots of the normalizer",
    "snapshots of the running maximum"};

/// (S30): the states that snapshots are taken of.
static SmallVector<Named, 3> snapshotSources(ScanOp op) {
  SmallVector<Named, 3> sources{{op.getState(), "state"}};
  if (op.getNormalizer())
    sources.push_back({op.getNormalizer(), "normalizer"});
  if (op.getRunningMax())
    sources.push_back({op.getRunningMax(), "running_max"});
  return sources;
}

static void snapshotRelations(ScanOp op, Named query, Relations &relations) {
  static constexpr StringRef what[] = {"batch size", "head count", "head size",
                                       "value size"};
  for (auto [snapshots, name, source] :
       llvm::zip(op.getSnapshots(), snapshotNames, snapshotSources(op))) {
    Named kept{snapshots, name};
    relations.quotient("S30", "sequence length", kept, 1, query, 2,
                       *op.getEvery());
    for (int64_t dim = 0, e = rankOf(source.value); dim < e; ++dim)
      relations.equal("S30", what[dim], kept, dim ? dim + 1 : 0, source, dim);
  }
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
  // A pool may have any number of states.
  Named owners =
      getStateIndices() ? Named{getStateIndices(), "state_indices"} : state;
  if (getCuSeqlens())
    relations.oneLess(getStateIndices() ? "S28" : "S17", "batch size", owners,
                      0, {getCuSeqlens(), "cu_seqlens"}, 0);
  else
    relations.equal(getStateIndices() ? "S28" : "S6", "batch size", query, 0,
                    owners, 0);
  stateRelations("S6", key, value, state, getNormalizer(), getRunningMax(),
                 relations);
  relations.equal("S7", "batch size", query, 0, output, 0);
  relations.headsMax("S7", output, {query, key, value});
  relations.equal("S7", "sequence length", query, 2, output, 2);
  relations.equal("S7", "head size", value, 3, output, 3);
  scanGateRelations(*this, relations);
  snapshotRelations(*this, query, relations);
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
      succeeded(
          verifyRank(op, {op.getWrite(), "write"}, {4}, "[B, H, T, V]")) &&
      succeeded(
          verifyRank(op, {op.getInputGate(), "input_gate"}, {3}, "[B, H, T]")));
}

static std::string spell(const ::linattn::UpdateRule &rule) {
  return ("update(" + StringRef(rule.name) + ")").str();
}

/// "update(delta) or update(oja)": the rules that take a clause.
static std::string spellRulesWith(Clause clause) {
  return llvm::join(
      llvm::map_range(::linattn::listRulesWith(clause),
                      [](const auto *rule) { return spell(*rule); }),
      " or ");
}

namespace {

/// Verifies which operands and enums go together.
class Family {
public:
  explicit Family(ScanOp op)
      : op(op), rule(getRule(op)),
        exclusive(op.getReadout() == Readout::Exclusive),
        updateClause(spell(rule)),
        readoutClause(
            ("readout(" + stringifyReadout(op.getReadout()) + ")").str()) {}

  LogicalResult verify() {
    return success(succeeded(verifyUpdate()) && succeeded(verifyReadout()) &&
                   succeeded(verifyInputGate()) &&
                   succeeded(verifyNormalized()) &&
                   succeeded(verifyPackedBatch( // (S17)
                       op, op.getCuSeqlens(), op.getQuery())));
  }

private:
  LogicalResult only(bool present, StringRef name, bool allowed, StringRef with,
                     const Twine &got) {
    if (!present || allowed)
      return success();
    return op.emitOpError("expected ")
           << name << " only with " << with << ", but got " << got;
  }
  bool isPresent(Clause clause);
  /// The clause requires a rule that takes it.
  LogicalResult onlyWithRule(Clause clause);
  /// Two clauses exclude one another, for the given reason.
  LogicalResult exclude(bool first, StringRef name, bool second,
                        StringRef without, StringRef reason) {
    if (!first || !second)
      return success();
    return op.emitOpError("expected ")
           << name << " without " << without << ", but got both: " << reason;
  }

  LogicalResult verifyUpdate();     // (S12), (S13), (S15), (S18), (S25)
  LogicalResult verifyNeeds();      // (S12), (S13)
  LogicalResult verifyReadout();    // (S14), (S16)
  LogicalResult verifyInputGate();  // (S20), (S21), (S22)
  LogicalResult verifyNormalized(); // (S23), (S24)

  ScanOp op;
  const ::linattn::UpdateRule &rule;
  bool exclusive;
  std::string updateClause, readoutClause;
};

} // namespace

bool Family::isPresent(Clause clause) {
  switch (clause) {
  case Clause::Beta:
    return bool(op.getBeta());
  case Clause::A:
    return bool(op.getA());
  case Clause::B:
    return bool(op.getB());
  case Clause::Erase:
    return bool(op.getErase());
  case Clause::Write:
    return bool(op.getWrite());
  case Clause::ValueDecay:
    return bool(op.getValueDecay());
  case Clause::Bonus:
    return bool(op.getBonus());
  case Clause::Before:
    return op.getTransition() == Transition::Before;
  case Clause::Normalize:
    return op.getNormalize().has_value();
  }
  llvm_unreachable("unknown clause");
}

LogicalResult Family::onlyWithRule(Clause clause) {
  return only(isPresent(clause), ::linattn::getName(clause),
              rule.takes.contains(clause), spellRulesWith(clause),
              updateClause);
}

LogicalResult Family::verifyNeeds() {
  SmallVector<StringRef> needed, given;
  for (Clause clause : rule.needs.list()) {
    needed.push_back(::linattn::getName(clause));
    if (isPresent(clause))
      given.push_back(needed.back());
  }
  if (given.size() >= (rule.needsAll ? needed.size() : 1) || needed.empty())
    return success();
  bool areSeveral = needed.size() > 1;
  InFlightDiagnostic error =
      op.emitOpError("expected ")
      << updateClause << " with "
      << (areSeveral && rule.needsAll ? "both " : "")
      << llvm::join(needed, rule.needsAll ? " and " : " or ") << ", but got ";
  if (!given.empty())
    return error << "only " << llvm::join(given, " and ");
  return error << (areSeveral ? "neither" : "none");
}

LogicalResult Family::verifyUpdate() {
  for (Clause clause : {Clause::Beta, Clause::Erase, Clause::Write, Clause::A,
                        Clause::B, Clause::ValueDecay, Clause::Before})
    if (failed(onlyWithRule(clause)))
      return failure();
  if (failed(verifyNeeds()))
    return failure();
  if (rule.hasScalarBeta && op.getBeta() && rankOf(op.getBeta()) != 3)
    return op.emitOpError("expected beta to be [B, H, T] with ")
           << updateClause << ", but got " << op.getBeta().getType();
  return success();
}

LogicalResult Family::verifyReadout() {
  if (failed(only(isPresent(Clause::Bonus), "bonus", exclusive,
                  "readout(exclusive)", readoutClause)) ||
      failed(onlyWithRule(Clause::Bonus)))
    return failure();
  return only(isPresent(Clause::Normalize), "normalize",
              rule.takes.contains(Clause::Normalize) && !exclusive,
              spellRulesWith(Clause::Normalize) + " and readout(inclusive)",
              updateClause + " and " + readoutClause);
}

LogicalResult Family::verifyInputGate() {
  if (!op.getInputGate())
    return success();
  if (!op.getNormalize())
    return op.emitOpError("expected input_gate only with normalize, but got "
                          "none: the state is stored times e^-running_max, "
                          "which only a quotient cancels");
  if (op.getDecay() && rankOf(op.getDecay()) == 4)
    return op.emitOpError("expected decay to be [H] or [B, H, T] with "
                          "input_gate, whose running maximum follows one decay "
                          "per head, but got ")
           << op.getDecay().getType();
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  return exclude(
      true, "input_gate", mapped.getFeatureMapKind() == FeatureMapKind::Exp,
      "the feature map exp", "one running maximum cannot follow both");
}

LogicalResult Family::verifyNormalized() {
  if (failed(exclude(op.getNormalize().has_value(), "normalize",
                     bool(op.getValueDecay()), "value_decay",
                     "one denominator cannot follow factors that differ "
                     "between value columns")))
    return failure();
  return verifyAbsFloor(op, op.getNormalize());
}

static LogicalResult verifySnapshots(ScanOp op) {
  SmallVector<Named, 3> sources = snapshotSources(op);
  size_t count = op.getSnapshots().size();
  if (bool(op.getEvery()) != (count > 0)) // (S31)
    return op.emitOpError("expected every exactly with snapshots, but got ")
           << (count ? "none" : "it without");
  if (count == 0)
    return success();
  if (*op.getEvery() < 1) // (S31)
    return op.emitOpError("expected every to be at least 1, but got ")
           << *op.getEvery();
  if (count != sources.size()) // (S29)
    return op.emitOpError("expected ")
           << sources.size() << " snapshots, one for each part of the state, "
           << "but got " << count;
  if (op.getCuSeqlens() || op.getStateIndices()) // (S32)
    return op.emitOpError("expected snapshots without ")
           << (op.getCuSeqlens() ? "cu_seqlens" : "state_indices")
           << ", but got both";
  for (auto [snapshots, name, source] : llvm::zip_equal(
           op.getSnapshots(), ArrayRef(snapshotNames).take_front(count),
           sources)) { // (S30)
    Named kept{snapshots, name};
    static constexpr StringRef shapes[] = {"[B, P, H]", "[B, P, H, K]",
                                           "[B, P, H, K, V]"};
    int64_t rank = rankOf(source.value) + 1;
    if (failed(verifyRank(op, kept, {rank}, shapes[rank - 3])) ||
        failed(verifySameElementType(op, source, kept)))
      return failure();
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
  if (failed(verifyStateTypes(*this, elementType(getQuery()), // (S6)
                              {getState(), "state"}, getNormalizer(),
                              getRunningMax())) ||
      failed(verifyNormalizer(*this, getNormalize(), getNormalizer()))) // (S8)
    return failure();
  if (failed(verifyFeatureMap(*this)) || // (S10)
      failed(verifyScale(*this)) ||      // (S19), (S33)
      failed(verifyScanRanks(*this)) || failed(Family(*this).verify()) ||
      failed(verifySnapshots(*this)))
    return failure();
  auto kind =
      cast<FeatureMappedOpInterface>(getOperation()).getFeatureMapKind();
  bool carriesMax =
      needsRunningMax(kind, getNormalize().has_value()) || getInputGate();
  if (carriesMax != bool(getRunningMax())) // (S9)
    return emitOpError("expected running_max exactly with feature map exp "
                       "under normalize or with input_gate, but got ")
           << (getRunningMax() ? "one without them" : "none");
  for (Named decay : {Named{getDecay(), "decay"},
                      Named{getValueDecay(), "value_decay"}}) // (S26)
    if (failed(verifyConstantDecay(*this, decay)))
      return failure();
  return verifyRelations(*this);
}
