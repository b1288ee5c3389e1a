//===- UpdateRules.cpp - How a token is written into a state --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/UpdateRules.h"

using namespace linattn;

namespace {

/// Rows, the fields in the order of UpdateRules.td.
struct ClauseRow {
  unsigned number;
  const char *name;
};
struct UpdateRuleRow {
  unsigned number;
  const char *name, *formula;
  UpdateRule::Transition transition;
  bool isGiven;
  Clauses takes, needs;
  bool needsAll, hasScalarBeta;
};
using T = UpdateRule::Transition;

#define GET_ClauseTable_IMPL
#define GET_UpdateRuleTable_IMPL
#include "linattn/Analysis/UpdateRules.inc"

} // namespace

std::string_view linattn::getName(Clause clause) {
  static_assert(std::size(ClauseTable) == numClauses);
  return ClauseTable[size_t(clause)].name;
}

const std::vector<UpdateRule> &linattn::getUpdateRules() {
  static const std::vector<UpdateRule> rules = [] {
    std::vector<UpdateRule> rules;
    for (const UpdateRuleRow &row : UpdateRuleTable)
      rules.push_back({row.name, row.formula, row.transition, row.isGiven,
                       row.takes, row.needs, row.needsAll, row.hasScalarBeta});
    return rules;
  }();
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
