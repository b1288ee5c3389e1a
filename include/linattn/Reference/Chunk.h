//===- Chunk.h - The steps of a chunk in doubles ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle of the `linattn.chunk` ops. Rows are [B, H, C, N], numbers
// [B, H, C], scores [B, H, C, C], states [B, H, K, V]. An operand with fewer
// heads than the result is shared by groups of heads. Shapes have to fit: this
// is what the verifier of the ops checks.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_REFERENCE_CHUNK_H
#define LINATTN_REFERENCE_CHUNK_H

#include "linattn/Reference/Reference.h"

namespace linattn::reference {

struct PackOptions {
  std::optional<Array> shift = std::nullopt; ///< [B, H, C]
  std::optional<Array> gate = std::nullopt;  ///< [B, Hg, C] or [B, Hg, C, N]
  std::optional<Array> mask = std::nullopt;  ///< [B, C], 0 is false
  double scale = 1.0;
  double fill = 0.0;
  bool reverse = false;
};

/// scale · gate ⊙ (x − shift), `heads` of them; x is [H], numbers or rows. An
/// [H] becomes numbers [B, H, C] of the shape of the shift.
Array packChunk(const Array &x, int64_t heads, const PackOptions &options);

/// The rows by their denominators [B, H, C, 1], where there are some.
Array unpackChunk(const Array &rows, const std::optional<Array> &denominator,
                  const Normalize &normalize,
                  const std::optional<Array> &runningMax, bool reverse);

enum class DecaySpan { FromStart, BeforeToken, ToEnd };

/// x_t e^{Σ g} over the tokens of the span; g is numbers or rows.
Array decayRows(const Array &x, const Array &g, DecaySpan span);

struct StabilizedChunk {
  Array fade, maxima, runningMax;
};

/// The running maximum of magnitudes, numbers or rows.
StabilizedChunk stabilizeChunk(const Array &magnitude,
                               const std::optional<Array> &decay,
                               const Array &runningMax, bool steady);

struct ScoresOptions {
  std::optional<Array> decay = std::nullopt;
  std::optional<Array> bonus = std::nullopt; ///< [H, N]
  bool strict = false;
  bool before = false;
};

/// Σ_d x_td e^{Σ g} k_jd below the diagonal.
Array chunkScores(const Array &x, const Array &keys,
                  const ScoresOptions &options);

/// The rows x of (I − Diag(gate) A) x = gate ⊙ y.
Array solveChunk(const Array &scores, const std::optional<Array> &gate,
                 const Array &y, bool transpose);

/// Scores and values of a read, or keys and values of an update.
struct ChunkTerm {
  Array weights, values;
};

struct ChunkReadOptions {
  std::optional<Array> decay = std::nullopt; ///< Of the columns, rows.
  bool strict = false;
  bool transpose = false;
  bool adjoint = false;
};

/// y + x S + Σ P v; Σ Pᵀ v with `adjoint`.
Array readChunk(const Array &x, const Array &state,
                const std::vector<ChunkTerm> &terms, const Array &y,
                const ChunkReadOptions &options);

/// e^{Σ g} S e^{Σ h} + Σ kᵀ v.
Array updateChunk(const Array &state, const std::vector<ChunkTerm> &writes,
                  const std::optional<Array> &decay,
                  const std::optional<Array> &valueDecay);

} // namespace linattn::reference

#endif // LINATTN_REFERENCE_CHUNK_H
