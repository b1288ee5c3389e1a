//===- Cases.h - Attentions and scans as text and as numbers ----*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A case is one line of a table: it gives the MLIR function, the inputs and
// what the oracle says of them.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_INTEGRATION_CASES_H
#define LINATTN_TEST_UNIT_INTEGRATION_CASES_H

#include "Buffers.h"

namespace linattn::test {

using reference::FeatureMapKind;
using reference::Normalize;

/// Whether a table's line is compiled: the first one of a test is, and a third
/// of the others, drawn by LINATTN_TEST_SEED. Under LINATTN_MATRIX=all they all
/// are.
bool isDrawn();

/// Which extents the function's types leave open.
enum class Extents { Static, DynamicTokens, Dynamic };

/// The user's φ in a region.
enum class Region {
  None,
  /// x² / 2 + 1/4
  Constants,
  /// c x² + 1/4, c being an argument of the function.
  Captured,
};

/// The base of attentions and scans. Setters return the case itself, so
/// that a table's line reads as a sentence.
template <typename Derived>
struct Case {
  std::string name;
  DType dtype = DType::F32;
  int64_t batch = 1, queryHeads = 2, keyHeads = 2, valueHeads = 2;
  int64_t keySize = 16, valueSize = 16;
  FeatureMapKind map = FeatureMapKind::Identity;
  Region region = Region::None;
  std::optional<Normalize> normalize;
  std::optional<double> scale;
  bool hasMask = false, hasWideState = false;
  Extents extents = Extents::DynamicTokens;
  Layout layout = Layout::Contiguous;
  CompilerOptions compiler;
  /// The range of the tokens.
  double low = -1.0, high = 1.0;
  double tolerance = -1;

  explicit Case(std::string name) : name(std::move(name)) {}

  Derived &type(DType value) { return set(dtype, value); }
  Derived &heads(int64_t q, int64_t k, int64_t v) {
    queryHeads = q;
    keyHeads = k;
    return set(valueHeads, v);
  }
  Derived &batches(int64_t value) { return set(batch, value); }
  Derived &sizes(int64_t k, int64_t v) {
    keySize = k;
    return set(valueSize, v);
  }
  Derived &features(FeatureMapKind value) { return set(map, value); }
  Derived &features(Region value) {
    map = FeatureMapKind::Custom;
    return set(region, value);
  }
  /// Tokens whose denominators do not vanish.
  Derived &positive() {
    low = 0.1;
    return self();
  }
  Derived &normalized(Normalize value = {1e-6}) {
    return set(normalize, value);
  }
  Derived &scaled(double value) { return set(scale, value); }
  /// An f64 state beside narrower tokens.
  Derived &wide() { return set(hasWideState, true); }
  Derived &masked() { return set(hasMask, true); }
  Derived &open(Extents value) { return set(extents, value); }
  Derived &laidOut(Layout value) { return set(layout, value); }
  Derived &form(std::string value) { return set(compiler.form, value); }
  Derived &within(double value) { return set(tolerance, value); }

  int64_t stateHeads() const { return std::max(keyHeads, valueHeads); }
  int64_t outputHeads() const { return std::max(queryHeads, stateHeads()); }
  bool isStabilised() const {
    return map == FeatureMapKind::Exp && normalize.has_value();
  }
  DType accumulation() const {
    return dtype == DType::F64 || hasWideState ? DType::F64 : DType::F32;
  }
  reference::FeatureMap getMap() const;
  /// "{causal, feature_map = …}" and, where there is one, the region.
  std::string getAttributes(llvm::StringRef more = "") const;

protected:
  Derived &self() { return static_cast<Derived &>(*this); }
  template <typename T, typename U>
  Derived &set(T &member, U &&value) {
    member = std::forward<U>(value);
    return self();
  }
};

/// One linattn.attention.
struct AttentionCase : Case<AttentionCase> {
  int64_t queryCount = 33, keyCount = 33;
  bool isCausal = false, isSoftmax = false;
  /// The number of queries is in their type, whatever the keys' type leaves
  /// open.
  bool hasFixedQueries = false;
  std::string config;
  /// A part of what the compiler must explain; empty: anything.
  std::string remark;

  using Case::Case;
  AttentionCase &tokens(int64_t count) { return tokens(count, count); }
  AttentionCase &tokens(int64_t queries, int64_t keys) {
    queryCount = queries;
    return set(keyCount, keys);
  }
  AttentionCase &fixedQueries(int64_t count) {
    queryCount = count;
    return set(hasFixedQueries, true);
  }
  AttentionCase &causal() { return set(isCausal, true); }
  AttentionCase &softmax() { return set(isSoftmax, true); }
  AttentionCase &configured(std::string value) { return set(config, value); }
  AttentionCase &reassociated(std::string mode) {
    return set(compiler.reassociate, mode);
  }
  AttentionCase &explained(std::string value) { return set(remark, value); }

  std::string getText() const;
  /// q, k, v and, where they are used, mask and the captured scalar.
  std::vector<Buffer> getInputs(uint64_t seed = 1) const;
  /// The oracle's outputs for these inputs.
  Array getExpected(const std::vector<Buffer> &inputs) const;
};

/// max(|den|, floor) + eps
inline Normalize absFloor(double floor,
                          std::optional<double> eps = std::nullopt) {
  return {eps, std::nullopt, std::nullopt, floor};
}

enum class Decay { None, Head, Token, Channel };

/// One linattn.scan from a given state.
struct ScanCase : Case<ScanCase> {
  int64_t tokenCount = 33;
  Decay decay = Decay::None;
  bool hasValueDecay = false, isExclusive = false, hasBonus = false,
       isReverse = false, hasInputGate = false;
  reference::UpdateRule update = reference::UpdateRule::Add;
  reference::Transition transition = reference::Transition::After;
  /// 0: none, 3: [B, H, T], 4: [B, H, T, V].
  int64_t betaRank = 0;
  bool hasErase = false, hasWrite = false;
  /// Begin and end of each packed sequence.
  std::vector<int64_t> offsets;
  /// Start from nothing rather than from a random state.
  bool startsEmpty = false;

  using Case::Case;
  ScanCase &tokens(int64_t count) { return set(tokenCount, count); }
  ScanCase &decayed(Decay value) { return set(decay, value); }
  ScanCase &valueDecayed() { return set(hasValueDecay, true); }
  ScanCase &exclusive() { return set(isExclusive, true); }
  ScanCase &bonus() {
    isExclusive = true;
    return set(hasBonus, true);
  }
  ScanCase &reversed() { return set(isReverse, true); }
  ScanCase &delta(int64_t rank = 3) {
    update = reference::UpdateRule::Delta;
    return set(betaRank, rank);
  }
  ScanCase &erased() { return set(hasErase, true); }
  ScanCase &written() { return set(hasWrite, true); }
  ScanCase &dplr(reference::Transition value) {
    update = reference::UpdateRule::Dplr;
    return set(transition, value);
  }
  ScanCase &oja() {
    update = reference::UpdateRule::Oja;
    return set(betaRank, 3);
  }
  /// mLSTM's gates and denominator.
  ScanCase &gated(Normalize value = absFloor(1.0)) {
    normalize = value;
    return set(hasInputGate, true);
  }
  bool carriesMax() const { return isStabilised() || hasInputGate; }
  ScanCase &sequences(std::vector<int64_t> value) {
    tokenCount = value.back();
    return set(offsets, std::move(value));
  }
  ScanCase &empty() { return set(startsEmpty, true); }

  std::string getText() const;
  /// The inputs in the order of the function's arguments; see getNames.
  std::vector<Buffer> getInputs(uint64_t seed = 1) const;
  /// "q", "k", "v", "decay", …, "S", "z", "m".
  std::vector<std::string> getNames() const;
  /// The position of the input of that name.
  size_t find(llvm::StringRef name) const;
  /// o, S and, where present, z and m.
  std::vector<Array> getExpected(const std::vector<Buffer> &inputs) const;

  int64_t stateBatch() const {
    return offsets.empty() ? batch : static_cast<int64_t>(offsets.size()) - 1;
  }

private:
  struct Operand {
    std::string name;
    DType dtype;
    Array array;
    /// The dimension that counts tokens, or -1.
    int64_t tokenDim;
  };
  std::vector<Operand> makeOperands(uint64_t seed) const;
  static void poison(std::vector<Operand> &operands, const Array &mask);
  void addGates(std::vector<Operand> &operands, uint64_t seed) const;
};

/// Compiles the case once and checks the output and the final state for these
/// sequence lengths (the case's own, if none is given).
void checkScan(ScanCase c, llvm::ArrayRef<int64_t> lengths = {});
void checkScans(llvm::ArrayRef<ScanCase> cases,
                llvm::ArrayRef<int64_t> lengths = {});

/// "tensor<2x?x16xf32>"; `tokenDim` is open unless everything is static.
std::string getTensorType(DType dtype, llvm::ArrayRef<int64_t> shape,
                          Extents extents, int64_t tokenDim);

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_INTEGRATION_CASES_H
