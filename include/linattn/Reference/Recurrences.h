//===- Recurrences.h - Float64 oracle of the small recurrences --*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recurrences beyond `scan`, in double precision and as directly as their
// formulas. Tokens are [B, T, C], states [B, C, …]; complex numbers are pairs
// of arrays.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_REFERENCE_RECURRENCES_H
#define LINATTN_REFERENCE_RECURRENCES_H

#include "linattn/Reference/Reference.h"

namespace linattn::reference {

//===----------------------------------------------------------------------===//
// Selective scan
//===----------------------------------------------------------------------===//

struct SelectiveScanOperands {
  Array u;     ///< [B, T, C]
  Array delta; ///< [B, T, C] or [C]
  Array a;     ///< [C, N]
  Array b;     ///< [C, N], [B, T, N] or [B, G, T, N]
  Array c;     ///< as b
  std::optional<Array> aImag = std::nullopt;     ///< [C, N]
  std::optional<Array> bImag = std::nullopt;     ///< as b
  std::optional<Array> cImag = std::nullopt;     ///< as c
  std::optional<Array> skip = std::nullopt;      ///< [C]
  std::optional<Array> gate = std::nullopt;      ///< [B, T, C]
  std::optional<Array> deltaBias = std::nullopt; ///< [C]
};

struct SelectiveScanOptions {
  /// Δ = log(1 + e^(delta + deltaBias)).
  bool deltaSoftplus = false;
  /// Visits the tokens from the last to the first.
  bool reverse = false;
};

/// A state of complex numbers; the imaginary part is there when it is complex.
struct ComplexState {
  Array real;
  std::optional<Array> imaginary = std::nullopt;
};

struct SelectiveScanResult {
  Array o;            ///< [B, T, C]
  ComplexState state; ///< [B, C, N]
};

/// h <- e^(Δ a) h + Δ b u and o = (Re Σ c h + skip u) silu(gate), per channel.
/// The state starts at 0 unless given.
Result<SelectiveScanResult>
selectiveScan(const SelectiveScanOperands &operands,
              const SelectiveScanOptions &options,
              const std::optional<ComplexState> &initial = std::nullopt);

//===----------------------------------------------------------------------===//
// Diagonal scan
//===----------------------------------------------------------------------===//

struct DiagonalScanOperands {
  Array x;                                   ///< [B, T, C]
  Array decay;                               ///< log|λ|, [C] or [B, T, C]
  std::optional<Array> xImag = std::nullopt; ///< [B, T, C]
  /// The angle of λ, [C] or [B, T, C]; complex exactly when given.
  std::optional<Array> phase = std::nullopt;
};

struct DiagonalScanResult {
  ComplexState h;     ///< [B, T, C]
  ComplexState state; ///< [B, C]
};

/// h_t = e^(decay + i phase) h_{t-1} + x_t.
Result<DiagonalScanResult>
diagonalScan(const DiagonalScanOperands &operands, bool reverse = false,
             const std::optional<ComplexState> &initial = std::nullopt);

//===----------------------------------------------------------------------===//
// WKV of RWKV-4
//===----------------------------------------------------------------------===//

struct Wkv4Operands {
  Array k;     ///< [B, T, C]
  Array v;     ///< [B, T, C]
  Array decay; ///< [C]
  Array bonus; ///< [C]
};

struct Wkv4Result {
  Array o;     ///< [B, T, C]
  Array state; ///< [B, 3, C]: A e^-m, B e^-m, m
};

/// o = (A + e^(bonus + k) v) / (B + e^(bonus + k)) with the A and B before the
/// token, then A <- e^decay A + e^k v and B <- e^decay B + e^k.
Result<Wkv4Result> wkv4(const Wkv4Operands &operands, bool reverse = false,
                        const std::optional<Array> &initial = std::nullopt);

//===----------------------------------------------------------------------===//
// Log-linear attention
//===----------------------------------------------------------------------===//

struct LogLinearOperands {
  Array q;                                   ///< [B, Hq, T, K]
  Array k;                                   ///< [B, Hk, T, K]
  Array v;                                   ///< [B, Hv, T, V]
  Array levels;                              ///< [B, H, T, L]
  std::optional<Array> decay = std::nullopt; ///< [B, H, T]
};

struct LogLinearOptions {
  /// K^-1/2 unless given.
  std::optional<double> scale = std::nullopt;
  /// Tokens that each sequence has had before, [B]; 0 unless given.
  std::vector<int64_t> position = {};
};

struct LogLinearResult {
  Array o;     ///< [B, Ho, T, V]
  Array state; ///< [B, H, L, K, V]
};

/// The recurrence over levels.
Result<LogLinearResult>
logLinear(const LogLinearOperands &operands, const LogLinearOptions &options,
          const std::optional<Array> &initial = std::nullopt);

/// The same from an empty state by the definition: o_t = scale Σ_j≤t
/// levels[t, ℓ(t, j)] e^(g_{j+1} + … + g_t) (q_t.k_j) v_j, where ℓ counts the
/// bits of t xor j, but at most L - 1.
Result<Array> logLinearQuadratic(const LogLinearOperands &operands,
                                 const LogLinearOptions &options);

//===----------------------------------------------------------------------===//
// Causal convolution
//===----------------------------------------------------------------------===//

struct CausalConvOperands {
  Array x;                                  ///< [B, T, C]
  Array weight;                             ///< [C, W]
  std::optional<Array> bias = std::nullopt; ///< [C]
};

struct CausalConvOptions {
  std::optional<Activation> activation = std::nullopt;
  int64_t dilation = 1;
  /// Visits the tokens from the last to the first.
  bool reverse = false;
};

struct CausalConvResult {
  Array y;     ///< [B, T, C]
  Array state; ///< [B, C, S], the last inputs, oldest first
};

/// y_t = act(bias + Σ_k weight[k] x_{t - (W-1-k) dilation}) per channel. Inputs
/// before the first token come from the state, which holds at least (W-1)
/// dilation of them; without a state they are 0.
Result<CausalConvResult>
causalConv(const CausalConvOperands &operands, const CausalConvOptions &options,
           const std::optional<Array> &initial = std::nullopt);

} // namespace linattn::reference

#endif // LINATTN_REFERENCE_RECURRENCES_H
