//===- FormCostTest.cpp - Costs of the forms of a scan --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FormCost.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace linattn;

namespace {

constexpr VectorTarget wide{512, 32}, narrow{256, 16};
const ScanForm forms[] = {{ScanForm::Token},
                          {ScanForm::StateTile},
                          {ScanForm::Chunk, 16},
                          {ScanForm::Chunk, 32},
                          {ScanForm::Quadratic}};
const std::vector<ScanForm::Kind> additive = {
    ScanForm::Token, ScanForm::StateTile, ScanForm::Chunk};
const std::vector<ScanForm::Kind> rankOne = {ScanForm::Token, ScanForm::Chunk};

ScanProblem sized(int64_t tokens, int64_t keySize, int64_t valueSize) {
  ScanProblem problem;
  problem.tokens = tokens;
  problem.keySize = keySize;
  problem.valueSize = valueSize;
  return problem;
}

double totalCost(const ScanProblem &problem, ScanForm form,
                 VectorTarget target) {
  return predictCost(problem, form, target) * double(problem.tokens);
}

TEST(FormCost, GrowsWithTokensAndSizes) {
  for (VectorTarget target : {wide, narrow})
    for (ScanForm form : forms) {
      SCOPED_TRACE(form.str());
      double before = 0;
      for (int64_t tokens = 1; tokens <= 4096; tokens *= 2) {
        double cost = totalCost(sized(tokens, 64, 64), form, target);
        EXPECT_GE(cost, before) << tokens << " tokens";
        before = cost;
      }
      double beforeKey = 0, beforeValue = 0;
      for (int64_t size = 8; size <= 1024; size *= 2) {
        double key = totalCost(sized(256, size, 64), form, target);
        double value = totalCost(sized(256, 64, size), form, target);
        EXPECT_GE(key, beforeKey) << size;
        EXPECT_GE(value, beforeValue) << size;
        beforeKey = key;
        beforeValue = value;
      }
    }
}

/// A few tokens whose number is known share a pass over the state.
TEST(FormCost, FewTokensGoTogether) {
  for (int64_t tokens = 1; tokens <= 8; ++tokens) {
    SCOPED_TRACE(tokens);
    ScanProblem problem = sized(tokens, 128, 128), delta = problem;
    EXPECT_EQ(chooseScanForm(problem, additive, wide).get().form.kind,
              ScanForm::Token);
    // A rank-1 update reads the state that the token before has left.
    delta.update = ScanProblem::Update::Delta;
    auto passes = [](const ScanProblem &problem, VectorTarget target) {
      WorkCounts work = countWork(problem, {ScanForm::Token}, target);
      return work[size_t(Work::Far)];
    };
    double once = passes(sized(1, 128, 128), wide);
    EXPECT_EQ(passes(problem, wide), once);
    EXPECT_EQ(passes(problem, narrow) > 2 * once, tokens > 4);
    if (tokens > 1)
      EXPECT_GT(passes(delta, wide), once * 1.5);
  }
}

TEST(FormCost, DecaysTransitionsAndReadersAreNotFree) {
  for (ScanForm form : {ScanForm{ScanForm::Token}, {ScanForm::Chunk, 16}}) {
    SCOPED_TRACE(form.str());
    ScanProblem problem = sized(1024, 128, 128);
    double plain = predictCost(problem, form, wide);
    ScanProblem delta = problem, grouped = problem, wider = problem;
    delta.update = ScanProblem::Update::Delta;
    grouped.group = 4;
    wider.elementBits = 64;
    EXPECT_GT(predictCost(delta, form, wide), plain);
    EXPECT_GT(predictCost(grouped, form, wide), plain);
    EXPECT_GT(predictCost(wider, form, wide), plain);
    ScanProblem dplr = delta;
    dplr.update = ScanProblem::Update::Dplr;
    EXPECT_GT(predictCost(dplr, form, wide), predictCost(delta, form, wide));
  }
}

TEST(FormCost, LargeSizesDoNotOverflow) {
  constexpr int64_t large = int64_t(1) << 31;
  for (ScanForm form : forms)
    for (auto [tokens, key, value] :
         {std::array{large, large, large},
          std::array{large, int64_t(64), large},
          std::array{large, int64_t(1), int64_t(1)}}) {
      ScanProblem problem = sized(tokens, key, value);
      problem.group = large;
      double cost = predictCost(problem, form, wide);
      EXPECT_TRUE(std::isfinite(cost)) << form.str();
      EXPECT_GT(cost, 0) << form.str();
    }
  ScanProblem alone = sized(large, large, large);
  alone.startsAtZero = alone.endsUnused = true;
  EXPECT_EQ(wholeTokensOf(alone, wide), 0);
  EXPECT_GT(predictSegments(sized(large, 64, 64), large, large), 0);
}

TEST(FormCost, UnknownAndEmptySizesHaveACost) {
  for (ScanForm form : forms) {
    EXPECT_GT(
        predictCost(sized(unknownSize, unknownSize, unknownSize), form, wide),
        0);
    EXPECT_GT(predictCost(sized(0, 0, 0), form, wide), 0);
  }
}

TEST(FormCost, TheCheapestLegalFormIsChosen) {
  for (int64_t tokens : {int64_t(1), int64_t(7), int64_t(300), unknownSize})
    for (int64_t size : {8, 32, 64, 100, 256}) {
      ScanProblem problem = sized(tokens, size, size);
      problem.update = ScanProblem::Update::Delta;
      ScanChoice choice = chooseScanForm(problem, rankOne, wide);
      for (const ScanChoice::Candidate &other : choice.candidates) {
        EXPECT_NE(other.form.kind, ScanForm::StateTile);
        // What chunks yield to must be better by a margin.
        bool isChunk = choice.get().form.kind == ScanForm::Chunk;
        EXPECT_GE(other.cost,
                  (isChunk ? 1 - chunkMargin(problem) : 1) * choice.get().cost);
        EXPECT_EQ(other.cost, predictCost(problem, other.form, wide));
      }
    }
  ScanProblem many = sized(unknownSize, 256, 256);
  many.update = ScanProblem::Update::Delta;
  EXPECT_EQ(chooseScanForm(many, rankOne, wide).get().form.kind,
            ScanForm::Chunk);
  many.tokens = 1;
  EXPECT_EQ(chooseScanForm(many, rankOne, wide).get().form.kind,
            ScanForm::Token);
}

TEST(FormCost, ChunksYieldOnlyToMuchCheaperForms) {
  size_t chunks = 0, others = 0;
  for (bool normalized : {false, true})
    for (int64_t tokens : {int64_t(2), int64_t(16), unknownSize})
      for (int64_t size : {4, 16, 32, 64, 96, 128, 256, 512}) {
        ScanProblem problem = sized(tokens, size, size);
        problem.normalized = normalized;
        ScanChoice choice = chooseScanForm(problem, additive, wide);
        bool isChunk = choice.get().form.kind == ScanForm::Chunk;
        (isChunk ? chunks : others) += 1;
        double chunk =
            predictCost(problem, {ScanForm::Chunk, chunkTokens}, wide);
        if (!isChunk)
          EXPECT_LT(choice.get().cost, (1 - chunkMargin(problem)) * chunk)
              << size;
      }
  EXPECT_GT(chunks, 0u);
  EXPECT_GT(others, 0u);
}

TEST(FormCost, TiesAreDeterministic) {
  ScanProblem problem = sized(40, 64, 64);
  ScanChoice first = chooseScanForm(problem, additive, wide);
  // Whatever the order in which forms are said to be legal.
  const std::vector<ScanForm::Kind> reversed = {
      ScanForm::Chunk, ScanForm::StateTile, ScanForm::Token};
  ScanChoice second = chooseScanForm(problem, reversed, wide);
  EXPECT_EQ(first.get().form.str(), second.get().form.str());
  ASSERT_EQ(first.candidates.size(), second.candidates.size());
  for (size_t i = 0; i < first.candidates.size(); ++i)
    EXPECT_EQ(first.candidates[i].form.str(), second.candidates[i].form.str());
}

TEST(FormCost, CoresAndTasksDecideNothing) {
  for (int64_t size : {32, 64, 256}) {
    ScanProblem problem = sized(unknownSize, size, size);
    VectorTarget many = wide;
    many.cores = 128;
    EXPECT_EQ(chooseScanForm(problem, additive, wide).get().form.str(),
              chooseScanForm(problem, additive, many).get().form.str());
  }
}

TEST(FormCost, SegmentsPayWhereTasksAreFewerThanCores) {
  ScanProblem problem = sized(1 << 14, 64, 64);
  EXPECT_GT(predictSegments(problem, 8, 8), 1);
  EXPECT_LT(predictSegments(problem, 1, 8), 1);
  ScanProblem delta = problem;
  delta.update = ScanProblem::Update::Delta;
  EXPECT_GT(predictSegments(delta, 1, 8), predictSegments(problem, 1, 8));
}

TEST(FormCost, ShortSequencesAreOneChunkWithoutAState) {
  int64_t before = 0;
  for (int64_t size : {8, 32, 64, 128}) {
    ScanProblem problem = sized(unknownSize, size, size);
    EXPECT_EQ(wholeTokensOf(problem, wide), 0) << size;
    problem.startsAtZero = problem.endsUnused = true;
    int64_t whole = wholeTokensOf(problem, wide);
    EXPECT_EQ(whole % chunkTokens, 0) << size;
    EXPECT_GE(whole, before) << size;
    before = whole;
    // How many tokens there are decides nothing.
    problem.tokens = 7;
    EXPECT_EQ(wholeTokensOf(problem, wide), whole) << size;
    // Half of the state's work is left.
    problem.endsUnused = false;
    EXPECT_LE(wholeTokensOf(problem, wide), whole) << size;
  }
  EXPECT_GT(before, 64);
  EXPECT_LE(before, largestWhole);
  // Rows of wider heads leave the stack sooner.
  ScanProblem wider = sized(unknownSize, 256, 256);
  wider.startsAtZero = wider.endsUnused = true;
  EXPECT_LT(wholeTokensOf(wider, wide), before);
}

TEST(FormCost, AStateThatIsNotTouchedCostsNothing) {
  for (int64_t size : {32, 64, 128, 256})
    for (int64_t tokens : {1, 5, 16, 17, 40, 512}) {
      ScanProblem problem = sized(tokens, size, size);
      ScanForm chunks{ScanForm::Chunk, chunkTokens};
      double both = predictCost(problem, chunks, wide);
      problem.startsAtZero = true;
      double one = predictCost(problem, chunks, wide);
      problem.endsUnused = true;
      double none = predictCost(problem, chunks, wide);
      EXPECT_LT(one, both) << size << " " << tokens;
      EXPECT_LT(none, one) << size << " " << tokens;
      EXPECT_GT(none, 0) << size << " " << tokens;
      for (double count : countWork(problem, {ScanForm::Chunk, tokens}, wide))
        EXPECT_GE(count, 0) << size << " " << tokens;
    }
}

TEST(FormCost, FewTokensGoOneByOneWhereAStateGoesInAndOut) {
  for (int64_t size : {64, 128, 256}) {
    ScanProblem problem = sized(unknownSize, size, size);
    problem.update = ScanProblem::Update::Delta;
    int64_t few = fewTokensOf(problem, rankOne, wide);
    EXPECT_GE(few, 1) << size;
    EXPECT_LE(few, largestFew) << size;
    problem.startsAtZero = true;
    EXPECT_EQ(fewTokensOf(problem, rankOne, wide), 0) << size;
  }
}

} // namespace
