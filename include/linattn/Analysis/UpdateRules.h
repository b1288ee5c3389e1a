//===- UpdateRules.h - How a token is written into a state ------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The table of update rules, whose rows stand in UpdateRules.td. The verifier,
// the lowerings, the cost model and Python look up the properties they depend
// on; they compare no names. Only the oracles state each rule independently.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_UPDATERULES_H
#define LINATTN_ANALYSIS_UPDATERULES_H

#include "linattn/Analysis/EnumSet.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace linattn {

/// The operands and clauses of a scan that only some rules have a meaning for.
enum class Clause : uint8_t {
  Beta,       ///< [B, H, T] or [B, H, T, V], the step size.
  A,          ///< [B, H, T, K], the vector that a transition reads along.
  B,          ///< [B, H, T, K], the vector that it writes along.
  Erase,      ///< [B, H, T, K], a gate of the key that is read.
  Write,      ///< [B, H, T, V], a gate of the value.
  ValueDecay, ///< [B, H, T, V].
  Bonus,      ///< [H, K], the weight of a token's own value.
  Before,     ///< transition(before): it reads the state before the decay.
  Normalize,  ///< A denominator, which is one more column of the state.
};
constexpr size_t numClauses = 9;

/// As the dialect and Python spell the clause.
std::string_view getName(Clause clause);

using Clauses = EnumSet<Clause>;

/// One rule. With Sd = Diag(e^decay) S Diag(e^value_decay) and X = Sd, or S
/// with transition(before), a token makes of the state S [K, V]
///
///   no transition       S ← Sd + k vᵀ
///   along keys, made    S ← Sd + k δᵀ,            δ = β (w ⊙ v − Xᵀ(e ⊙ k))
///   along keys, given   S ← Sd + k vᵀ + b rᵀ,     r = Xᵀ a
///   along values        S ← Sd + (k − Sd v)(β v)ᵀ
struct UpdateRule {
  /// The side of the state along which a token reads it before it writes.
  enum class Transition : uint8_t { None, Keys, Values };

  /// The spelling of the dialect and of Python.
  std::string_view name;
  /// S_t, for readers.
  std::string_view formula;
  Transition transition = Transition::None;
  /// The vectors of the transition are the operands a and b. Otherwise they
  /// are made of the key or the value.
  bool isGiven = false;
  /// The clauses that this rule takes. Every rule takes decay, mask and packed
  /// sequences.
  Clauses takes = {};
  /// The clauses that the rule requires: all of them, or any one.
  Clauses needs = {};
  bool needsAll = true;
  /// Beta is one number per token.
  bool hasScalarBeta = false;

  /// The update does not read the state.
  constexpr bool isAdditive() const { return transition == Transition::None; }
  /// A rank-1 transition along keys: the rows of a state column depend on one
  /// another, its columns do not.
  constexpr bool couplesRows() const { return transition == Transition::Keys; }
  /// The same with rows and columns exchanged.
  constexpr bool couplesColumns() const {
    return transition == Transition::Values;
  }
  /// The value is corrected by the state's value under its key: a chunk solves
  /// for δ in place of its values.
  constexpr bool correctsValues() const { return couplesRows() && !isGiven; }
  /// Rank-1 terms per token: k vᵀ, and b rᵀ.
  constexpr int64_t countWrites() const { return isGiven ? 2 : 1; }
};

/// Every rule, in the order of the dialect's enumeration `Update`.
const std::vector<UpdateRule> &getUpdateRules();

/// The rule of that name; null for an unknown one.
const UpdateRule *findUpdateRule(std::string_view name);

/// The rules that take a clause, in order.
std::vector<const UpdateRule *> listRulesWith(Clause clause);

} // namespace linattn

#endif // LINATTN_ANALYSIS_UPDATERULES_H
