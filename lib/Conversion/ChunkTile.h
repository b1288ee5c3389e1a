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
// A sequence of few tokens may be one chunk, for any others: without
// a state on either side that is the quadratic form.
// Columns of S see the same operations in any task. Where the rows of
// one token's heads are neighbours, a few chunks of all heads come before the
// next ones of any.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CONVERSION_CHUNKTILE_H
#define LINATTN_CONVERSION_CHUNKTILE_H

#include "ScanTile.h"

#include <optional>

namespace mlir::linattn {

/// The tokens of chunks, and the registers of their products.
struct ChunkPlan {
  ChunkPlan(ScanOp scan, TileShape shape, ChunkSizes sizes,
            ValueRead valueRead);

  /// Tokens per chunk; of a sequence that is one chunk, at most; of any chunk
  /// at most, padded to whole vectors and rows.
  int64_t chunk, whole, padded;
  /// MR: accumulators of one product.
  int64_t rowsAtOnce;
  bool startsAtZero, endsUnused;
  /// The read along the values, if there is one.
  ValueRead valueRead;
  /// The norm behind the scan, if it is applied here.
  OutputNormOp norm;
};

/// Scratch rows of tokens: [member, C, K], [C, K], [C, V]. A number β is a
/// factor of values and, if there is one, of the transition.
struct ChunkRows {
  Value queries, keys, b, transition, channelGates, values, writeGates,
      columnBetas;
};

/// Scratch numbers per token.
struct ChunkNumbers {
  Value gates;            ///< Logarithms of decays.
  Value rescales;         ///< e^(m_(t−1) − m_t).
  Value cumulated;        ///< Both as factors from the start on.
  Value betas;            ///< β.
  Value own;              ///< Weights of a token's own value, by member.
  Value inverses, maxima; ///< 1/den, by member, and running maxima.
  /// Factors of the product of a key with the state: −β and decays.
  Value readFactors;
  /// Shifts of exponentials of keys, and for each member of queries.
  Value keyShifts, queryShifts;
};

/// Scratch of the scores.
struct ScoreBuffers {
  Value keysT, bT;           ///< Vectors of tokens.
  Value decays;              ///< Between tokens.
  Value queries, transition; ///< Scores of both.
  /// Γ by channels, and ρ, the rounding residual of Γ: a number, or one per
  /// channel, which adds up its logarithms in it before.
  Value total, residual;
};

/// Scratch of the sweep over panels.
struct PanelBuffers {
  Value state;      ///< The task's panels, with their rows.
  Value z;          ///< The normalizer.
  Value solved;     ///< δ, R or V + R.
  Value outputRows; ///< MR rows.
  Value normRows;   ///< Whole rows of outputs for a norm: [member, C, V].
};

/// Scratch of the read along the values.
struct ValueReadBuffers {
  Value queries;           ///< Rows [C, V].
  Value queriesT, valuesT; ///< Vectors of tokens.
  Value scores;
  Value products, solved; ///< S Xᵀ and R Xᵀ as vectors of tokens.
  Value factors, rows;    ///< Decays of channels and outputs, [C, K].
  Value writeFactors;     ///< A factor of the key of each token.
  /// Keys that are still to be decayed token by token, under the solution.
  Value laterKeys;
};

/// The scope of a task: its scratch memory, and its panels of the state there.
class ChunkTask : public ScanTask {
public:
  ChunkTask(const ScanTile &tile, const Task &task, const ChunkPlan &plan);

  void emit();

  const ChunkPlan &plan;
  /// Tokens per chunk.
  const Value length;
  ChunkRows packed;
  ChunkNumbers numbers;
  ScoreBuffers scores;
  PanelBuffers panel;
  ValueReadBuffers along;
  std::optional<NormRow> epilogue;

  /// Tokens of the chunk that begins at a position.
  Value countTokens(Value first) { return min(sub(task.to, first), length); }

private:
  Value chooseLength();
  void allocate();
  void allocateNumbers();
  void allocateValueRead();
  void emitChunk(Value first);
  void loadState();
  void readPanels();
  void clearPanels();
  void storeState();
};

/// The scope of a chunk, and what its phases share: products of matrices.
class ChunkBlock : public ScanBlock {
public:
  ChunkBlock(ChunkTask &task, Value first);

  /// A factor of the keys: a query of the GQA group, or a.
  struct Reader {
    Value rows, scores, member;
    /// Reads the state before the token's own decay.
    bool shifted;
    /// Does not read the token's own write.
    bool strict;
  };
  /// Where the element of a token's row lies; only queries have members.
  Rows rowAt(const Reader &reader, Value t, Value d) {
    return reader.rows == packed.queries ? Rows{reader.member, t, d}
                                         : Rows{t, d};
  }

  /// Rows of tokens as vectors of tokens.
  void transpose(Value source, Value target, Value size);
  /// All scores of a square of tokens with the rows that are given as vectors
  /// of tokens: those above the diagonal are not read.
  void productScores(const Reader &reader, ArrayRef<Value> linesT, Value size);
  /// sums_t += Σ_j P_tj · written_j for the MR tokens from `row` on. The square
  /// on the diagonal, under `diagonal`, stops at j = t, or before it
  /// if `strict`: what a later token wrote is not even multiplied by 0.
  Rows addScores(Rows sums, Value scores, Value member, int64_t writer,
                 Value row, function_ref<Value(Value)> written, bool diagonal,
                 bool strict);

  Value transitionRows() {
    return readsKeys() ? packed.keys : packed.transition;
  }
  Value keyRows(int64_t writer) { return writer ? packed.b : packed.keys; }
  /// The factor of row t of what is read from the state before the chunk,
  /// `before` its own decay or behind it.
  Value cumulatedAt(Value t, bool before) {
    return load(numbers.cumulated, {before ? t : add(t, index(1))});
  }
  /// Whether the solved values are decayed to the end of the chunk instead of
  /// the rows they are written under, which are still needed as they are.
  bool decaysSolved() {
    return hasScalarGate() && (readsKeys() || along.solved);
  }

  const ChunkPlan &plan;
  const ChunkRows &packed;
  const ChunkNumbers &numbers;
  const ScoreBuffers &scores;
  const PanelBuffers &panel;
  const ValueReadBuffers &along;
  /// Tokens of a whole chunk, and of this one in whole rows.
  const Value length, rows;
  /// Whether it reads the state, and whether it writes it; null where that is
  /// always so.
  const Value reads, writes;
};

/// Packs the tokens of a chunk.
class ChunkPack : public ChunkBlock {
public:
  explicit ChunkPack(const ChunkBlock &chunk) : ChunkBlock(chunk) {}

  void emit();

private:
  void findShifts();
  Value carryMaximum(Value t, Value keyMaxima);
  Value rowMaxima(Value operand, Value rowHead, Value t, bool written);
  void packTokens();
  void packKeysOf(Value t);
  void packValuesOf(Value t);
  void packValueQuery(Value t);
  void packChannelGate(Value t);
  void decayWrites();
  void clearToken(Value t);
};

/// The read of a chunk along the values.
class ChunkValueRead : public ChunkBlock {
public:
  explicit ChunkValueRead(const ChunkBlock &chunk) : ChunkBlock(chunk) {}

  /// Emits the scores with the values, and the sums of keys by these: neither
  /// needs the solution. Keys with channel decays are summed while they decay.
  void score();
  /// A token that reads its own write, among keys that decay in memory.
  void addOwnKey(int64_t writer, Value rows, Value t);
  /// The share of a panel, before it is updated.
  void readPanel(Value number, Value column);
  /// Adds up the shares of all panels, and writes the rows.
  void write();

private:
  void addKeys(int64_t writer);
  void addDecayingKeys();
  void scoreSolved();
  void addQueryProducts(Value sums, Value size, int64_t height, Value column,
                        function_ref<Value(Value, Value)> left);
  Rows rowsOfTokens(Value products, Value t, Value from);
};

/// Scores and decays inside a chunk, and its normaliser.
class ChunkScores : public ChunkBlock {
public:
  explicit ChunkScores(const ChunkBlock &chunk)
      : ChunkBlock(chunk), valueRead(chunk) {}

  void emit();

private:
  void emitScores();
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
  void updateNormalizer();
  void divideTokens(Value first, Value member);
  void forEachReader(function_ref<void(const Reader &)> body);
  Reader queryReader(Value member) {
    return {packed.queries, scores.queries, member, exclusive, exclusive};
  }
  Reader transitionReader() {
    return {transitionRows(), scores.transition, index(0), before, true};
  }

  ChunkValueRead valueRead;
};

/// Prefetches the next chunk while a panel is swept.
class ChunkPrefetch : public ChunkBlock {
public:
  /// The next chunk: its first position, and its head.
  struct Next {
    Value first, head;
  };
  ChunkPrefetch(const ChunkBlock &chunk, const Next &next, Value column)
      : ChunkBlock(chunk), next(next), column(column) {}

  /// The chunk that comes next: of the same head, or where the span of tokens
  /// ends, of the next one.
  static Next findNext(ChunkBlock &chunk);

  /// The next chunk is prefetched where there may be one and sizes are known.
  bool prefetches();
  /// The panel's share of an operand's row of token `row`, which may begin
  /// anywhere in a line. Past the last token it is that one again.
  void prefetchRowOf(Value operand, Value member, Value row,
                     bool isWritten = false);
  /// A token's operands of the size of keys, except its query, and its scalars.
  void prefetchKeys(Value row);
  void prefetchWhileUpdating(Value d);
  /// Prefetches at once what the update would prefetch step by step.
  void prefetchInsteadOfUpdating();

private:
  /// Token `row` of the next chunk; past the last token that one again.
  Value nextToken(Value row) {
    return tokenAt(min(add(next.first, row), sub(task.end, index(1))));
  }
  void prefetchSource(Value source, Value rowHead, Value row, bool isWritten);
  void prefetchNumbers(Value row);
  void prefetchValues(Value row);

  const Next next;
  const Value column;
};

/// One panel of the state: solve, read, write.
class ChunkSweep : public ChunkBlock {
public:
  ChunkSweep(const ChunkBlock &chunk, const ChunkPrefetch::Next &next,
             Value number)
      : ChunkBlock(chunk), number(number), column(columnOf(number)),
        ahead(chunk, next, column) {}

  void emit();

private:
  void solve();
  void substitute(Rows &sums, int64_t writer, Value row);
  void readOut(Value member);
  void decayWritten();
  void updateState();
  Rows accumulateState(function_ref<Value(int64_t, Value)> left,
                       function_ref<void(Value)> between);
  void writeRows(Rows o, Value member, Value row);
  Rows zeroRows() { return Rows(plan.rowsAtOnce, zeros(shape.cols)); }
  /// Row j of what is written under the keys, and under b.
  Value writtenRow(int64_t writer, Value j);

  /// The panel, and its first column.
  const Value number, column;
  ChunkPrefetch ahead;
};

} // namespace mlir::linattn

#endif // LINATTN_CONVERSION_CHUNKTILE_H
