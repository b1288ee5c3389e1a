//===- ChunkTile.h - The chunk schedule of a scan ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chunk of C tokens at a time, as products of matrices. With operands decayed
// from the start of the chunk (Qd, Ad), keys decayed to its end (Ke, Be), the
// product Γ of its decays and the scores P^xy_tj = Σ_d x_td y_jd e^(c_t − c_j):
//
//   R   = (I − P^ab)⁻¹ (Ad S + P^ak V)     forward substitution
//   O   = Qd S + P^qk V + P^qb R
//   S  ← Γ S + Keᵀ V + Beᵀ R               Γ as a rounded factor and a rest
//
// The delta rule writes b ∥ k: there δ = β (w v + R) takes the place of V and
// the terms with b vanish; a number β is multiplied into the rows of v and a as
// they are packed. An additive update has no R. Where the query is a itself,
// and sees the same state, O is R, and queries take no products.
//
// Every decay factor is the exponential of a sum of logarithms ≤ 0, or per
// channel a running product of factors ≤ 1, never a quotient and never the
// exponential of a difference: nothing overflows, and a decay of e^0 or e^-300
// per token is as exact as its neighbours. Above the diagonal scores
// are not multiplied by 0 but left out, so that a token's NaN stays behind it.
//
// Tokens go in rows of MR, columns of S in panels; what is multiplied per
// vector lies in scratch, padded to whole vectors, S panel by panel. Per chunk:
//
//   pack    φ(q), φ(k), v, a, b and the gates
//   scores  all P, and Ke, before any panel is read
//   sweep   for each panel: solve, read out, update S, of which the first chunk
//           after a state of zeros reads nothing and the last one before a
//           state that is not used writes nothing; all the while the rows of
//           the next chunk are prefetched, a few tokens at a time and as many
//           operands in each step: only so many lines can be under way
//
// A state is one task; one state alone is two, each with half of the panels.
// A sequence of few tokens may be one chunk, whatever the others are: without
// a state on either side that is the quadratic form.
// Columns of S see the same operations whatever the tasks. Where the rows of
// one token's heads are neighbours, a few chunks of all heads come before the
// next ones of any.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHUNKTILE_H
#define LINATTN_CONVERSION_CHUNKTILE_H

#include "OutputNorm.h"
#include "ScanTile.h"

#include <optional>

namespace mlir::linattn {

class ChunkTile : public ScanTile {
public:
  ChunkTile(OpBuilder &b, ScanOp scan, TileShape shape, ChunkSizes sizes,
            ValueRead valueRead);

  void emit();

private:
  /// A factor of the keys: a query of the GQA group, or a.
  struct Reader {
    Value rows, scores, member;
    /// Reads the state before the token's own decay.
    bool shifted;
    /// Does not read the token's own write.
    bool strict;
  };

  void emitTask();
  void emitEpilogue();
  /// Where outputs go in the end.
  Value destination() {
    return epilogue ? epilogue->norm.getOutput() : scan.getOutput();
  }
  Value chooseLength();
  void emitChunk(Value first);
  void allocateScratch();
  void loadState();
  void readPanels();
  void clearPanels();
  void storeState();
  void writePanels();
  void ifTrue(Value condition, function_ref<void()> body);

  // ChunkTilePack.cpp
  void findShifts();
  Value carryMaximum(Value t, Value keyMaxima);
  Value rowMaxima(Value operand, Value rowHead, Value t, bool written);
  void packTokens();
  void packKeysOf(Value t);
  void packValuesOf(Value t);
  void packChannelGate(Value t);
  void decayWrites();
  void clearToken(Value t);

  // ChunkTileScores.cpp
  void emitScores();
  void productScores(const Reader &reader, ArrayRef<Value> linesT, Value size);
  void runningScores();
  void runningPairs(Value t, ArrayRef<Reader> readers, bool decays);
  void scoreKeys(Value t, ArrayRef<Reader> readers, int64_t writer, Value j,
                 int64_t numKeys, bool decays);
  void ownScores(Value t, const Reader &reader);
  void decayRow(Value t);
  void emitDecays();
  void fillDecays();
  void fillCumulated();
  void decayKeys(Value keyRows);
  void fillReadFactors();
  void transpose(Value source, Value target, Value size);
  void updateNormalizer();
  void divideTokens(Value first, Value member);
  void forEachReader(function_ref<void(const Reader &)> body);
  Reader queryReader(Value member) {
    return {queries, queryScores, member, exclusive, exclusive};
  }
  Reader transitionReader() {
    return {transitionRows(), transitionScores, index(0), before, true};
  }
  /// Where the element of a token's row lies; only queries have members.
  Rows rowAt(const Reader &reader, Value t, Value d) {
    return reader.rows == queries ? Rows{reader.member, t, d} : Rows{t, d};
  }

  // ChunkTileSweep.cpp
  void sweepPanel(Value panel);
  void solve(Value panel);
  void readOut(Value panel, Value member);
  void decayWritten();
  void updateState(Value panel);
  Rows accumulateState(Value panel, function_ref<Value(int64_t, Value)> left,
                       function_ref<void(Value)> between);
  bool prefetches();
  void findNext();
  void prefetchNext(Value operand, Value member, Value row,
                    bool isWritten = false);
  /// Token `row` of the next chunk; past the last token that one again.
  Value nextToken(Value row) {
    return tokenAt(min(add(nextFirst, row), sub(end, index(1))));
  }
  void prefetchNextOf(Value operand, Value rowHead, Value row, bool isWritten);
  void prefetchNumbers(Value row);
  void prefetchKeys(Value row);
  void prefetchValues(Value row);
  void prefetchWhileUpdating(Value d);
  void prefetchInsteadOfUpdating();
  void writeRows(Rows o, Value member, Value row, Value column);
  Rows addScores(Rows sums, Value scores, Value member, int64_t writer,
                 Value row, function_ref<Value(Value)> written, bool diagonal,
                 bool strict);
  void substitute(Rows &sums, int64_t writer, Value row);
  Rows zeroRows(int64_t width) { return Rows(rowsAtOnce, zeros(width)); }
  /// Row j of what is written under the keys, and under b.
  Value writtenRow(int64_t writer, Value j);

  // ChunkTileValues.cpp
  void allocateValueRead();
  void packValueQuery(Value t);
  void scoreValues();
  void addKeys(int64_t writer);
  void addOwnKey(int64_t writer, Value rows, Value t);
  void addDecayingKeys();
  void scoreSolved();
  void addQueryProducts(Value sums, Value size, int64_t height,
                        function_ref<Value(Value, Value)> left);
  void readValues(Value panel);
  Rows rowsOfTokens(Value products, Value t, Value from);
  void writeValueReads();

  bool hasTransition() const { return getRule(update).couplesRows(); }
  bool hasScalarGate() {
    return !hasChannelDecay() && (hasScalarDecay() || scan.getRunningMax());
  }
  /// a = −β k, and what multiplies it is a number per token: the rows of keys
  /// are all there is to read.
  bool readsKeys() {
    return getRule(update).correctsValues() && !scan.getErase() &&
           !hasChannelDecay();
  }
  Value transitionRows() { return readsKeys() ? keys : transition; }
  /// A transition that writes the key: V + R is written as one.
  bool writesKeys() {
    return getRule(update).isGiven && scan.getB() == scan.getKey() &&
           op.getFeatureMapKind() == FeatureMapKind::Identity &&
           !scan.getMask() && !scan.getInputGate();
  }
  /// Whether the solved values are decayed to the end of the chunk instead of
  /// the rows they are written under, which are still needed as they are.
  bool decaysSolved() {
    return hasScalarGate() && (readsKeys() || solvedProducts);
  }
  /// Whether the values written under the keys are solved for: δ or V + R.
  bool solvesWritten() {
    return getRule(update).correctsValues() || writesKeys();
  }
  /// The query is a, and sees what a sees: the outputs are R.
  bool readsTransition() {
    return getRule(update).isGiven && before && exclusive &&
           scan.getQuery() == scan.getA() && !scan.getMask() &&
           !scan.getBonus() && Scale::of(scan).isOne() &&
           op.getFeatureMapKind() == FeatureMapKind::Identity;
  }
  /// The writer whose scores along the values follow from the solution.
  int64_t solvedWriter() { return writers() - 1; }
  int64_t writers() { return writesKeys() ? 1 : getRule(update).countWrites(); }
  Value keyRows(int64_t writer) { return writer ? bRows : keys; }

  /// Tokens per chunk; of a sequence that is one chunk, at most; of any chunk
  /// at most, padded to whole vectors and rows.
  int64_t chunk, whole, padded;
  bool startsAtZero, endsUnused;
  /// MR: accumulators of one product.
  int64_t rowsAtOnce;

  // Tokens per chunk of the current task.
  Value length;
  // The current chunk: its first position, its tokens, and these in whole rows.
  Value first, count, rows;
  // Whether it reads the state, and whether it writes it; null where that is
  // always so.
  Value reads, writes;
  // The chunk after it: its first position, and its head.
  Value nextFirst, nextHead;
  // The current panel: its first column.
  Value column;
  // Scratch, rows of tokens: [member, C, K], [C, K], [C, V]. A number β is a
  // factor of values and, if there is one, of the transition.
  Value queries, keys, bRows, transition, channelGates, values, writeGates,
      columnBetas;
  // Scratch, a number per token: logarithms of decays, e^(m_(t−1) − m_t), both
  // as factors from the start on, …
  Value gates, rescales, cumulated, betas, own, inverses, maxima;
  // Scratch, a number per token: what the product of its key with the state is
  // multiplied by, −β and decays.
  Value readFactors;
  // Scratch, a number per token: what is subtracted from a key, and for each
  // member from a query.
  Value keyShifts, queryShifts;
  // Scratch, a number or one per channel: ρ, what the rounding of Γ left over.
  // Channels add up their logarithms in it before.
  Value residual;
  // Scratch: Kᵀ and bᵀ, decays between tokens, scores, Γ, S, δ, R or V + R,
  // output rows, z.
  Value keysT, bT, decays, queryScores, transitionScores, total, tile, solved,
      outputRows, z;
  // The norm behind the scan, if it is applied here, and scratch of whole rows
  // of outputs for it: [member, C, V].
  std::optional<NormRow> epilogue;
  Value normRows;
  // The read along the values, if there is one, and its scratch: rows of
  // queries [C, V], queries and values as vectors of tokens, scores, S Xᵀ and
  // R Xᵀ as vectors of tokens, decays of channels and rows of outputs [C, K].
  ValueRead valueRead;
  Value valueQueries, valueQueriesT, valuesT, valueScores, valueProducts,
      solvedProducts, valueFactors, valueRows;
  // Scratch, a number per token: what its key is multiplied with.
  Value writeFactors;
  // Keys that are still to be decayed token by token, under the solution.
  Value laterKeys;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKTILE_H
