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

// 512 tokens of heads of 64 in vectors of 16: a state of 64 rows of 4 vectors
// is 256, keys and values are 4 each, and a chunk of 16 tokens is two blocks of
// 8 rows, whose triangle is 16 · (16 + 8) / 2 = 192 pairs.
TEST(FormCost, CountsOfLinearAttention) {
  ScanProblem problem = sized(512, 64, 64);
  // Two multiply-adds per vector of the state and token, which is loaded and
  // stored; the state comes in and goes out once. Packed are q, k, v and o.
  WorkCounts token{512. * 256 * 2, 512. * 256 * 2 + 512, 0, 0, 512. * 16, 512};
  EXPECT_EQ(countWork(problem, {ScanForm::Token}, wide), token);
  // Blocks of 32 tokens: 16 and one more pass.
  WorkCounts tile{512. * 256 * 2, 2. * 256 * 17 + 512, 0, 0, 512. * 16, 512};
  EXPECT_EQ(countWork(problem, {ScanForm::StateTile}, wide), tile);
  // 32 chunks: the state is read by two blocks of rows, read and written by the
  // update; scores times values, and whole rows of 16 scores of 4 vectors each.
  WorkCounts chunk{32. * (256 * 16 * 2 + 192 * 4 + 16 * 4 * 16),
                   32. * 256 * 4 + 1024,
                   0,
                   0,
                   512. * 16,
                   512};
  EXPECT_EQ(countWork(problem, {ScanForm::Chunk, 16}, wide), chunk);
}

// A decay per channel and a rank-1 update: one more reader, one writer.
TEST(FormCost, CountsOfKDA) {
  ScanProblem problem = sized(512, 64, 64);
  problem.rule = findUpdateRule("delta");
  problem.decay = ScanProblem::Decay::Channel;
  // Read, decayed, transformed and written; q, k, a and four vectors of gates.
  WorkCounts token{512. * 256 * 4, 512. * 256 * 3 + 512, 0, 0, 512. * 36, 512};
  EXPECT_EQ(countWork(problem, {ScanForm::Token}, wide), token);
  // Keys are decayed pair by pair, once to be written and half for each reader.
  WorkCounts chunk{32. * (256 * 16 * 3 + 2 * 192 * 4),
                   32. * 256 * 6 + 1024,
                   0,
                   32. * 192 * 4 * 2,
                   512. * 36,
                   512};
  EXPECT_EQ(countWork(problem, {ScanForm::Chunk, 16}, wide), chunk);
  // 256 x 256 elements do not fit the first cache: 4096 vectors from beyond it.
  problem = sized(512, 256, 256);
  WorkCounts far = countWork(problem, {ScanForm::Token}, wide);
  EXPECT_EQ(far[size_t(Work::Near)], 0);
  EXPECT_EQ(far[size_t(Work::Far)], 512. * 4096 * 2 + 2 * 4096);
}

TEST(FormCost, CountsOfQuadraticAttention) {
  // Two panels of 32 queries, against one and two panels of keys.
  WorkCounts work = countWork(sized(64, 64, 64), {ScanForm::Quadratic}, wide);
  EXPECT_EQ(work[size_t(Work::Products)], 32. * 32 * 3 * (4 + 4));
  EXPECT_EQ(work[size_t(Work::Near)], 0);
}

/// A row of the table of docs/CostModel.md: 512 tokens of heads of `size`, 0
/// where there is no such form.
struct Row {
  std::string_view rule;
  ScanProblem::Decay decay;
  bool normalized;
  int64_t size;
  double token, tile, chunk16, chunk32;
};

/// The constants of docs/CostModel.md, by form.
struct Constants {
  double products, near, far, pairs, rows, tokens;
};

/// The counts of docs/CostModel.md in closed form, times its constants, in
/// vectors of 16 per token. Chunks of a multiple of 8 tokens divide the 512.
struct Formula {
  explicit Formula(const Row &row)
      : row(row), size(double(row.size)), vectors(size / 16),
        state(size * vectors), isFar(4 * size * size > 0.75 * 48 * 1024) {
    bool isDelta = row.rule == "delta";
    bool isDplr = row.rule == "dplr";
    isChannel = row.decay == ScanProblem::Decay::Channel;
    gates = row.decay != ScanProblem::Decay::None;
    transitions = isDelta || isDplr;
    writers = isDplr ? 2 : 1;
  }

  double price(Constants c, double products, double passes,
               double pairs) const {
    // Keys of the readers and writers, gates, the sums of a denominator; values
    // and outputs.
    double rows = vectors * (1 + writers + transitions + 4 * isChannel +
                             2 * row.normalized + 2);
    return products * c.products + passes * state * (isFar ? c.far : c.near) +
           pairs * c.pairs + rows * c.rows + c.tokens;
  }

  double token() const {
    return price({0.99, 0.75, 1.18, 0, 3.93, 0},
                 state * (1 + gates + transitions + writers),
                 2 + transitions + 2. / tokens, 0);
  }
  /// Blocks of 32 tokens, of wider heads of 16, and two passes more for each
  /// sequence.
  double tile() const {
    return price({0.96, 3.41, 4.08, 0, 8.10, 1.45}, state * (2 + gates),
                 2. / (size > 64 ? 16 : 32) + 4. / tokens, 0);
  }
  /// Blocks of 8 rows.
  double chunk(double length) const {
    double readers = 1 + transitions, triangle = (length + 8) / 2;
    double products = state * (readers + writers) +
                      readers * writers * triangle * vectors,
           pairs = 0;
    if (isChannel)
      pairs = triangle * vectors * writers * (1 + readers / 2);
    else
      products += readers * writers * vectors * length;
    return price({0.73, 4.08, 4.29, 2.43, 2.73, 24.5}, products,
                 2 / length + readers / 8 + 4. / tokens, pairs);
  }

  static constexpr double tokens = 512;
  const Row &row;
  double size, vectors, state;
  bool isFar, isChannel = false;
  int gates = 0, transitions = 0, writers = 1;
};

// The code, the formulas and the published table are three ways to one number.
// The table was made with constants of more digits.
TEST(FormCost, CostsAreThoseOfTheTable) {
  using Decay = ScanProblem::Decay;
  for (const Row &row : {
           Row{"add", Decay::None, false, 64, 956, 686, 796, 801},
           Row{"add", Decay::None, false, 128, 4573, 2788, 2914, 2780},
           Row{"add", Decay::Scalar, false, 64, 1210, 932, 796, 801},
           Row{"add", Decay::Channel, false, 64, 1273, 1062, 967, 1042},
           Row{"add", Decay::None, true, 64, 987, 750, 817, 823},
           Row{"delta", Decay::None, false, 64, 1418, 0, 1207, 1283},
           Row{"delta", Decay::Channel, false, 128, 7970, 0, 4767, 4897},
           Row{"dplr", Decay::Channel, false, 64, 2005, 0, 1892, 2232},
       }) {
    ScanProblem problem = sized(512, row.size, row.size);
    problem.rule = findUpdateRule(row.rule);
    problem.decay = row.decay;
    problem.normalized = row.normalized;
    Formula formula(row);
    struct Costs {
      ScanForm form;
      double table, formula;
    };
    for (Costs costs :
         {Costs{{ScanForm::Token}, row.token, formula.token()},
          Costs{{ScanForm::StateTile}, row.tile, formula.tile()},
          Costs{{ScanForm::Chunk, 16}, row.chunk16, formula.chunk(16)},
          Costs{{ScanForm::Chunk, 32}, row.chunk32, formula.chunk(32)}}) {
      SCOPED_TRACE(costs.form.str() + " " + std::to_string(row.size));
      if (costs.table == 0)
        continue;
      EXPECT_NEAR(costs.formula, costs.table, 0.008 * costs.table);
      EXPECT_NEAR(predictCost(problem, costs.form, wide), costs.formula,
                  1e-9 * costs.formula);
    }
  }
}

/// A few tokens whose number is known share a pass over the state.
TEST(FormCost, FewTokensAreOneChunk) {
  for (int64_t tokens = 1; tokens <= 8; ++tokens) {
    SCOPED_TRACE(tokens);
    ScanProblem problem = sized(tokens, 128, 128), delta = problem;
    EXPECT_EQ(chooseScanForm(problem, additive, wide).get().form.kind,
              ScanForm::Token);
    // A rank-1 update reads the state that the token before has left.
    delta.rule = findUpdateRule("delta");
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
    delta.rule = findUpdateRule("delta");
    grouped.group = 4;
    wider.elementBits = 64;
    EXPECT_GT(predictCost(delta, form, wide), plain);
    EXPECT_GT(predictCost(grouped, form, wide), plain);
    EXPECT_GT(predictCost(wider, form, wide), plain);
    ScanProblem dplr = delta;
    dplr.rule = findUpdateRule("dplr");
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
      problem.rule = findUpdateRule("delta");
      ScanChoice choice = chooseScanForm(problem, rankOne, wide);
      for (const ScanChoice::Candidate &other : choice.candidates) {
        EXPECT_NE(other.form.kind, ScanForm::StateTile);
        // Another form replaces chunks only by a margin: a third for many
        // tokens, a tenth for few.
        bool isChunk = choice.get().form.kind == ScanForm::Chunk;
        double margin = tokens == unknownSize ? 1. / 3 : 0.1;
        EXPECT_GE(other.cost, (isChunk ? 1 - margin : 1) * choice.get().cost);
      }
    }
  ScanProblem many = sized(unknownSize, 256, 256);
  many.rule = findUpdateRule("delta");
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
        double margin = tokens == unknownSize ? 1. / 3 : 0.1;
        if (!isChunk)
          EXPECT_LT(choice.get().cost, (1 - margin) * chunk) << size;
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
  delta.rule = findUpdateRule("delta");
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
    problem.rule = findUpdateRule("delta");
    int64_t few = fewTokensOf(problem, rankOne, wide);
    EXPECT_GE(few, 1) << size;
    EXPECT_LE(few, largestFew) << size;
    problem.startsAtZero = true;
    EXPECT_EQ(fewTokensOf(problem, rankOne, wide), 0) << size;
  }
}

} // namespace
