//===- UpdateRulesTest.cpp - The tables of rules and of legality ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/Legality.h"
#include <gtest/gtest.h>

#include <set>

using namespace linattn;

namespace {

TEST(UpdateRules, NamesAreUnique) {
  std::set<std::string_view> names;
  for (const UpdateRule &rule : getUpdateRules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_EQ(findUpdateRule(rule.name), &rule);
  }
  EXPECT_EQ(findUpdateRule("subtract"), nullptr);
}

TEST(UpdateRules, TakeTheirOperands) {
  for (const UpdateRule &rule : getUpdateRules())
    for (Clause clause : rule.needs.list())
      EXPECT_TRUE(rule.takes.contains(clause))
          << rule.name << " " << getName(clause);
}

// a and b are the vectors of a given transition, and of no other.
TEST(UpdateRules, GivenTransitionsHaveVectors) {
  for (const UpdateRule &rule : getUpdateRules()) {
    EXPECT_EQ(rule.takes.contains(Clause::A), rule.isGiven) << rule.name;
    EXPECT_EQ(rule.takes.contains(Clause::B), rule.isGiven) << rule.name;
    EXPECT_TRUE(!rule.isGiven || !rule.isAdditive()) << rule.name;
    EXPECT_EQ(rule.countWrites(), rule.isGiven ? 2 : 1) << rule.name;
  }
}

// One denominator is one more column: it needs a state without transitions.
TEST(UpdateRules, OnlyAdditiveRulesNormalize) {
  for (const UpdateRule *rule : listRulesWith(Clause::Normalize))
    EXPECT_TRUE(rule->isAdditive()) << rule->name;
}

TEST(UpdateRules, PropertiesOfTheRules) {
  const UpdateRule &add = *findUpdateRule("add"),
                   &delta = *findUpdateRule("delta"),
                   &dplr = *findUpdateRule("dplr"),
                   &oja = *findUpdateRule("oja");
  EXPECT_TRUE(add.isAdditive() && !delta.isAdditive() && !oja.isAdditive());
  EXPECT_TRUE(delta.couplesRows() && dplr.couplesRows() && !oja.couplesRows());
  EXPECT_TRUE(oja.couplesColumns() && !delta.couplesColumns());
  EXPECT_TRUE(delta.correctsValues() && !dplr.correctsValues() &&
              !oja.correctsValues() && !add.correctsValues());
}

TEST(Clauses, KeepTheirOrder) {
  Clauses clauses{Clause::Write, Clause::Beta};
  EXPECT_EQ(clauses.list(), (std::vector<Clause>{Clause::Beta, Clause::Write}));
  EXPECT_FALSE(clauses.contains(Clause::Erase));
  EXPECT_TRUE(Clauses().list().empty());
}

TEST(Legality, EveryScheduleRefusesSomething) {
  for (size_t i = 0; i < numSchedules; ++i) {
    bool refuses = false;
    for (const Refusal &refusal : getRefusals())
      refuses |= refusal.schedule == Schedule(i);
    EXPECT_TRUE(refuses) << getName(Schedule(i));
  }
}

TEST(Legality, EveryRowIsReached) {
  for (const Refusal &refusal : getRefusals()) {
    bool isReached = false;
    for (size_t i = 0; i < numScanTraits; ++i)
      if (refusal.traits.contains(ScanTrait(i)))
        isReached |= whyNot(refusal.schedule, ScanTrait(i)) == refusal.reason;
    EXPECT_TRUE(isReached) << refusal.reason;
  }
}

TEST(Legality, TheFirstReasonIsGiven) {
  ScanTraits traits{ScanTrait::ValueTransition, ScanTrait::ValueDecay};
  EXPECT_EQ(whyNot(Schedule::Chunk, traits),
            whyNot(Schedule::Chunk, ScanTrait::ValueTransition));
  EXPECT_NE(whyNot(Schedule::Chunk, traits),
            whyNot(Schedule::Chunk, ScanTrait::ValueDecay));
  EXPECT_TRUE(whyNot(Schedule::Chunk, ScanTraits()).empty());
}

// Every rule has a form beside the loops over scalars, but those along values.
TEST(Legality, FormsOfRules) {
  for (const UpdateRule &rule : getUpdateRules()) {
    ScanTraits traits = getTraits(rule);
    EXPECT_EQ(whyNot(Schedule::StateTile, traits).empty(), rule.isAdditive());
    EXPECT_EQ(whyNot(Schedule::Chunk, traits).empty(), !rule.couplesColumns());
    EXPECT_EQ(whyNot(Schedule::Vectors, traits).empty(),
              !rule.couplesColumns());
    EXPECT_EQ(whyNot(Schedule::ChunkKernel, traits).empty(),
              !rule.couplesColumns());
  }
}

} // namespace
