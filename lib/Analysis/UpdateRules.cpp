//===- UpdateRules.cpp - How a token is written into a state --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/UpdateRules.h"

using namespace linattn;

std::string_view linattn::getName(Clause clause) {
  constexpr std::string_view names[numClauses] = {
      "beta",     "a",           "b",     "erase",
      "write",    "value_decay", "bonus", "transition(before)",
      "normalize"};
  return names[size_t(clause)];
}

const std::vector<UpdateRule> &linattn::getUpdateRules() {
  using T = UpdateRule::Transition;
  using C = Clause;
  static const std::vector<UpdateRule> rules = {
      {"add", "Sd + k vᵀ", T::None,
       /*isGiven=*/false,
       /*takes=*/{C::ValueDecay, C::Bonus, C::Normalize}},
      {"delta", "Sd + k δᵀ, δ = beta (write ⊙ v − Sdᵀ(erase ⊙ k))", T::Keys,
       /*isGiven=*/false,
       /*takes=*/{C::Beta, C::Erase, C::Write},
       /*needs=*/{C::Beta, C::Erase},
       /*needsAll=*/false},
      {"dplr", "Sd + k vᵀ + b rᵀ, r = Xᵀ a", T::Keys,
       /*isGiven=*/true,
       /*takes=*/{C::A, C::B, C::Bonus, C::Before},
       /*needs=*/{C::A, C::B}},
      {"oja", "Sd + (k − Sd v)(beta v)ᵀ", T::Values,
       /*isGiven=*/false,
       /*takes=*/{C::Beta, C::ValueDecay},
       /*needs=*/{C::Beta},
       /*needsAll=*/true,
       /*hasScalarBeta=*/true},
  };
  return rules;
}

const UpdateRule *linattn::findUpdateRule(std::string_view name) {
  for (const UpdateRule &rule : getUpdateRules())
    if (rule.name == name)
      return &rule;
  return nullptr;
}

std::vector<const UpdateRule *> linattn::listRulesWith(Clause clause) {
  std::vector<const UpdateRule *> rules;
  for (const UpdateRule &rule : getUpdateRules())
    if (rule.takes.contains(clause))
      rules.push_back(&rule);
  return rules;
}
