//===- FormCost.cpp - Cost model of a scan's forms ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/FormCost.h"

#include <algorithm>
#include <cmath>

using namespace linattn;

/// The cost of a unit of each kind of work, per form. From the sweep of
/// `linattn-bench --calibrate` whose table is in docs/CostModel.md; fit again
/// with that command after a change to a form's code.
///
///                      products  near   far  pairs   rows  tokens
static constexpr WorkCounts weights[] = {
    /* Token     */ {0.99, 0.75, 1.18, 0.00, 3.93, 0.0},
    /* StateTile */ {0.96, 3.41, 4.08, 0.00, 8.10, 1.45},
    /* Chunk     */ {0.73, 4.08, 4.29, 2.43, 2.73, 24.5},
    /* Quadratic */ {1.04, 0.00, 0.00, 0.00, 13.5, 21.7},
};

/// The number of tokens that stands for many.
static constexpr double manyTokens = 1024;
static constexpr int64_t unknownHead = 64;

namespace {

/// Sizes in vectors, in double: products of large sizes must not overflow.
struct Extents {
  Extents(const ScanProblem &problem, const VectorTarget &target) {
    auto known = [](int64_t size) {
      return size < 0 ? unknownHead : std::max<int64_t>(size, 1);
    };
    auto up = [](double size, double multiple) {
      return std::ceil(size / multiple) * multiple;
    };
    int64_t keySize = known(problem.keySize),
            valueSize = known(problem.valueSize);
    StateTileShape tile =
        chooseStateTile(target, problem.elementBits, keySize, valueSize);
    lanes = double(target.vectorBits) / double(problem.elementBits);
    block = double(tile.block);
    rowsAtOnce = double(std::clamp<int64_t>(tile.rows, 4, 16));
    rows = up(double(keySize), std::max(lanes, rowsAtOnce));
    key = rows / lanes;
    value = up(double(valueSize), double(tile.cols)) / lanes;
    state = rows * value;
    // The tokens of a block share the cache with the state.
    double bytes =
        double(keySize) * double(valueSize) * double(problem.elementBits) / 8;
    fits = bytes <= 0.75 * double(target.firstCache());
    tokens =
        problem.tokens < 0 ? manyTokens : std::max(double(problem.tokens), 1.0);
    group = double(std::max<int64_t>(problem.group, 1));
    gates = problem.decay == ScanProblem::Decay::None ? 0 : 1;
    transitions = problem.rule->isAdditive() ? 0 : 1;
    writers = double(problem.rule->countWrites());
    isChannel = problem.decay == ScanProblem::Decay::Channel;
    isNormalized = problem.normalized;
  }

  /// q, k, v, a, b; a channel's decay is an exponential too.
  double packedRows() const {
    return key * (group + writers + transitions + (isChannel ? 4 : 0) +
                  (isNormalized ? 2 : 0)) +
           value * (1 + group);
  }

  double lanes, block, rowsAtOnce, rows, key, value, state, tokens, group,
      gates, transitions, writers;
  bool fits, isChannel, isNormalized;
};

double &at(WorkCounts &work, Work kind) { return work[size_t(kind)]; }

} // namespace

/// Passes over the state: one for every token. In a block of known size, the
/// additive update takes as many tokens at once as registers can accumulate.
static double countPasses(const ScanProblem &problem,
                          const VectorTarget &target, const Extents &e) {
  if (!problem.rule->isAdditive() || problem.tokens < 0 || e.tokens > e.block)
    return e.tokens;
  double tokensPerPass = std::floor(double(target.registers) / 4 / e.group);
  return std::ceil(e.tokens / std::max(tokensPerPass, 1.0));
}

static void countToken(const Extents &e, double passes, WorkCounts &work) {
  at(work, Work::Products) =
      e.tokens * e.state * (e.group + e.gates + e.transitions + e.writers);
  // Update and a read by each, a single reader along with the update.
  at(work, Work::Near) =
      passes * e.state * (2 + e.transitions + (e.group > 1 ? e.group : 0));
}

/// The state passes through registers once per block.
static void countStateTile(const Extents &e, WorkCounts &work) {
  at(work, Work::Products) = e.tokens * e.state * (e.group + e.gates + 1);
  at(work, Work::Near) = 2 * e.state * (std::ceil(e.tokens / e.block) + 1);
}

/// Whole rows of tokens of one chunk.
static double chunkRows(const Extents &e, double tokens) {
  return std::ceil(tokens / e.rowsAtOnce) * e.rowsAtOnce;
}

/// The first chunk does not read a state of zeros, and the last one does not
/// write an unused state. A single chunk does neither.
static void removeUnusedState(const ScanProblem &problem, const Extents &e,
                              double chunk, WorkCounts &work) {
  double chunks = std::ceil(e.tokens / chunk);
  double readers = e.group + e.transitions;
  if (problem.startsAtZero) {
    double rows = chunkRows(e, std::min(chunk, e.tokens));
    at(work, Work::Products) -= e.state * rows * readers;
    at(work, Work::Near) -= e.state * readers * rows / e.rowsAtOnce;
    at(work, Work::Near) -= 2 * e.state;
  }
  if (problem.endsUnused) {
    double rows = chunkRows(e, e.tokens - (chunks - 1) * chunk);
    at(work, Work::Products) -= e.state * rows * e.writers;
    at(work, Work::Near) -= 3 * e.state;
  }
  if (problem.startsAtZero && problem.endsUnused && chunks == 1)
    at(work, Work::Near) -= e.state;
}

/// Adds a number of chunks of some tokens each.
static void addChunks(const Extents &e, double chunks, double tokens,
                      WorkCounts &work) {
  if (chunks <= 0 || tokens <= 0)
    return;
  double rows = chunkRows(e, tokens);
  double readers = e.group + e.transitions;
  // Scores up to the diagonal, then their products with values or solutions.
  double triangle = rows * (rows + e.rowsAtOnce) / 2;
  double scores = readers * e.writers * triangle;
  double products = e.state * rows * (readers + e.writers) + scores * e.value;
  if (e.isChannel)
    at(work, Work::Pairs) +=
        chunks * triangle * e.key * e.writers * (1 + 0.5 * readers);
  else
    products += readers * e.writers * rows * e.key * std::ceil(rows / e.lanes) *
                e.lanes;
  at(work, Work::Products) += chunks * products;
  // Every block of rows reads the state anew; the update reads and writes it.
  at(work, Work::Near) +=
      chunks * e.state * (2 + readers * rows / e.rowsAtOnce);
}

/// Panels of two vectors of queries, each against the keys up to its end.
static void countQuadratic(const Extents &e, WorkCounts &work) {
  double panel = 2 * e.lanes, panels = std::ceil(e.tokens / panel);
  double pairs = panel * panel * panels * (panels + 1) / 2;
  at(work, Work::Products) = e.group * pairs * (e.key + e.value);
}

WorkCounts linattn::countWork(const ScanProblem &problem, ScanForm form,
                              const VectorTarget &target) {
  Extents e(problem, target);
  WorkCounts work{};
  switch (form.kind) {
  case ScanForm::Token:
    countToken(e, countPasses(problem, target, e), work);
    break;
  case ScanForm::StateTile:
    countStateTile(e, work);
    break;
  case ScanForm::Chunk: {
    double chunk = double(std::max<int64_t>(form.chunk, 1));
    double whole = std::floor(e.tokens / chunk);
    addChunks(e, whole, chunk, work);
    addChunks(e, 1, e.tokens - whole * chunk, work);
    at(work, Work::Near) += 2 * e.state;
    removeUnusedState(problem, e, chunk, work);
    break;
  }
  case ScanForm::Quadratic:
    countQuadratic(e, work);
    break;
  }
  // The initial state is copied to the final one.
  if (form.kind != ScanForm::Quadratic)
    at(work, Work::Near) += 2 * e.state;
  if (!e.fits)
    std::swap(at(work, Work::Near), at(work, Work::Far));
  at(work, Work::Rows) = e.tokens * e.packedRows();
  at(work, Work::Tokens) = e.tokens;
  return work;
}

double linattn::predictCost(const ScanProblem &problem, ScanForm form,
                            const VectorTarget &target) {
  WorkCounts work = countWork(problem, form, target);
  double cost = 0;
  for (size_t i = 0; i < numWorks; ++i)
    cost += work[i] * weights[form.kind][i];
  return cost / work[size_t(Work::Tokens)];
}

double linattn::predictShare(const ScanProblem &problem, ScanForm form,
                             const VectorTarget &target) {
  auto known = [](int64_t size) {
    return double(size < 0 ? unknownHead : size);
  };
  double lanes = double(target.vectorBits) / double(problem.elementBits);
  return 2 * known(problem.keySize) * known(problem.valueSize) / lanes /
         predictCost(problem, form, target);
}

double linattn::chunkMargin(const ScanProblem &problem) {
  bool isLong = problem.tokens < 0 || double(problem.tokens) >= manyTokens;
  return isLong ? 1.0 / 3 : betterBy;
}

ScanChoice linattn::chooseScanForm(const ScanProblem &problem,
                                   const std::vector<ScanForm::Kind> &legal,
                                   const VectorTarget &target) {
  ScanChoice choice;
  for (ScanForm form : {ScanForm{ScanForm::Chunk, chunkTokens},
                        {ScanForm::StateTile},
                        {ScanForm::Token}})
    if (std::find(legal.begin(), legal.end(), form.kind) != legal.end())
      choice.candidates.push_back({form, predictCost(problem, form, target)});
  for (size_t i = 1; i < choice.candidates.size(); ++i) {
    const ScanChoice::Candidate &best = choice.get(),
                                &next = choice.candidates[i];
    bool isChunk = best.form.kind == ScanForm::Chunk;
    if (next.cost < (isChunk ? 1 - chunkMargin(problem) : 1) * best.cost)
      choice.chosen = i;
  }
  return choice;
}

int64_t linattn::fewTokensOf(const ScanProblem &problem,
                             const std::vector<ScanForm::Kind> &legal,
                             const VectorTarget &target) {
  constexpr int64_t most = 8;
  if (problem.startsAtZero || problem.endsUnused)
    return 0;
  ScanProblem some = problem;
  int64_t few = 0;
  for (some.tokens = 1; some.tokens <= most; few = some.tokens++)
    if (chooseScanForm(some, legal, target).get().form.kind != ScanForm::Token)
      break;
  return few;
}

int64_t linattn::wholeTokensOf(const ScanProblem &problem,
                               const VectorTarget &target) {
  if (!problem.startsAtZero && !problem.endsUnused)
    return 0;
  // More tokens would not fit the second cache, which also holds the state.
  constexpr int64_t mostBytes = 384 << 10;
  bool isChannel = problem.decay == ScanProblem::Decay::Channel;
  // Queries, keys, their transpose or their decays, values; a and b.
  int64_t rows = 4;
  if (!problem.rule->isAdditive() && isChannel)
    ++rows;
  if (problem.rule->isGiven)
    ++rows;
  int64_t widest = std::max({problem.keySize, problem.valueSize, unknownHead});
  int64_t most = std::min(mostBytes / (rows * widest * problem.elementBits / 8),
                          int64_t(160));
  ScanProblem some = problem;
  int64_t whole = 0;
  for (some.tokens = 2 * chunkTokens; some.tokens <= most;
       some.tokens += chunkTokens) {
    if (predictCost(some, {ScanForm::Chunk, some.tokens}, target) >
        (1 - wholeMargin) *
            predictCost(some, {ScanForm::Chunk, chunkTokens}, target))
      break;
    whole = some.tokens;
  }
  return whole;
}

double linattn::predictSegments(const ScanProblem &problem, int64_t tasks,
                                int64_t cores) {
  double passes = problem.rule->isAdditive() ? 1.5 : 3;
  double before = double(std::max<int64_t>(1, std::min(tasks, cores)));
  return passes * before / double(std::max<int64_t>(cores, 1));
}

std::string ScanForm::str() const {
  switch (kind) {
  case Token:
    return "token";
  case StateTile:
    return "state_tile";
  case Chunk:
    return "chunk:" + std::to_string(chunk);
  case Quadratic:
    return "quadratic";
  }
  return "";
}
