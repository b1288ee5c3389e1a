//===- FormCost.h - Cost model of a scan's forms ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The forms do different amounts of a few kinds of work: these are counted,
// from the sizes of one head, and weighted by what each kind costs in that
// form. A cost is a time in units of one multiply-add of a vector at the
// machine's peak, so that machines of different speed and width share the
// constants. docs/CostModel.md shows how they were fitted and how well they
// predict.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_FORMCOST_H
#define LINATTN_ANALYSIS_FORMCOST_H

#include "linattn/Analysis/CostModel.h"
#include "linattn/Analysis/UpdateRules.h"

#include <array>
#include <string>
#include <vector>

namespace linattn {

/// A size that is only known at run time.
constexpr int64_t unknownSize = -1;

/// The properties of one head's recurrence that its cost depends on.
struct ScanProblem {
  enum class Decay { None, Scalar, Channel };

  /// The update rule, additive by default; never null.
  const UpdateRule *rule = &getUpdateRules().front();
  Decay decay = Decay::None;
  bool normalized = false;
  /// Costs assume 64 for an unknown head size, and many tokens for an unknown
  /// number.
  int64_t tokens = unknownSize, keySize = 64, valueSize = 64;
  /// Output heads that read one state.
  int64_t group = 1;
  /// Width of a state element.
  int64_t elementBits = 32;
  /// The first chunk has no state to read, or the last one none to write.
  bool startsAtZero = false, endsUnused = false;
};

/// One way to run a scan. The quadratic form is for causal attention alone.
struct ScanForm {
  enum Kind { Token, StateTile, Chunk, Quadratic } kind;
  int64_t chunk = 0; ///< Tokens per chunk.

  /// The spelling that users write: "token", "state_tile", "chunk:16".
  std::string str() const;
};

/// The kinds of work; see countWork.
enum class Work {
  Products, ///< Multiply-adds of vectors, the state's or the scores'.
  Near,     ///< Vectors of the state loaded or stored, in the first cache,
  Far,      ///< or beyond it.
  Pairs,    ///< Vectors of keys decayed and read once per pair of tokens.
  Rows,     ///< Vectors of tokens and gates packed.
  Tokens,   ///< Tokens.
};
constexpr size_t numWorks = 6;
using WorkCounts = std::array<double, numWorks>;

/// The work of all tokens of one head. An unknown number of tokens counts as
/// many.
WorkCounts countWork(const ScanProblem &problem, ScanForm form,
                     const VectorTarget &target);

/// The cost of that work, per token.
double predictCost(const ScanProblem &problem, ScanForm form,
                   const VectorTarget &target);

/// The predicted share of the peak of multiply-adds, where a recurrence counts
/// as 2·K·V multiply-adds per token.
double predictShare(const ScanProblem &problem, ScanForm form,
                    const VectorTarget &target);

/// The candidates, in a fixed order, and the choice among them.
struct ScanChoice {
  struct Candidate {
    ScanForm form;
    double cost;
  };
  std::vector<Candidate> candidates;
  size_t chosen = 0;
  const Candidate &get() const { return candidates[chosen]; }
};

/// Predictions closer than this count as equal.
constexpr double betterBy = 0.10;

/// By how much another form must be cheaper than chunks. Chunks round the state
/// once per chunk, the other forms once per token; over many tokens, or an
/// unknown number, that accuracy is worth more than a tenth of the time.
double chunkMargin(const ScanProblem &problem);

/// The cheapest of the legal kinds, of which there must be one. Chunks yield
/// only by `chunkMargin`. They have `chunkTokens` tokens: longer ones gain too
/// little to be considered.
ScanChoice chooseScanForm(const ScanProblem &problem,
                          const std::vector<ScanForm::Kind> &legal,
                          const VectorTarget &target);

/// The number of tokens up to which a sequence is predicted to be fastest token
/// by token, at most 8, where a state comes in and goes out. Otherwise 0, since
/// one chunk is enough. Each sequence's own length decides, independent of its
/// neighbours.
int64_t fewTokensOf(const ScanProblem &problem,
                    const std::vector<ScanForm::Kind> &legal,
                    const VectorTarget &target);

/// By how much one chunk must be predicted to be cheaper than several. The
/// constants are those of short chunks; a long one takes up to 1.4 times its
/// prediction.
constexpr double wholeMargin = 0.3;

/// The largest number of tokens, a multiple of `chunkTokens`, for which one
/// chunk is predicted to be fastest: its scores replace the passes over the
/// state. 0 if a state comes in and goes out.
int64_t wholeTokensOf(const ScanProblem &problem, const VectorTarget &target);

/// The predicted time of the scan in segments over that of one pass, on that
/// many cores, with `tasks` ≥ 1 tasks otherwise. A segment first computes a
/// summary, which costs half a pass, or two passes for a rank-1 update.
double predictSegments(const ScanProblem &problem, int64_t tasks,
                       int64_t cores);

} // namespace linattn

#endif // LINATTN_ANALYSIS_FORMCOST_H
