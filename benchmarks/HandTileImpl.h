//===- HandTileImpl.h - The state tile over any vector ----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `Isa` names a vector type and its operations. Included once per instruction
// set, in a file compiled for it.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_BENCHMARKS_HANDTILEIMPL_H
#define LINATTN_BENCHMARKS_HANDTILEIMPL_H

#include "HandTile.h"
#include <algorithm>
#include <immintrin.h>
#include <initializer_list>
#include <vector>

namespace {

using linattn::bench::HandTask;
using linattn::bench::Rule;

/// e^x for x ≤ 0: 2^n times a polynomial on |r| ≤ ln(2)/2.
template <typename Isa>
inline typename Isa::Vector exponential(typename Isa::Vector x) {
  using Vector = typename Isa::Vector;
  Vector bounded = Isa::max(x, Isa::splat(-87.0f));
  Vector n = Isa::round(Isa::mul(bounded, Isa::splat(1.44269504f)));
  Vector r = Isa::fma(n, Isa::splat(-0.693145752f), bounded);
  r = Isa::fma(n, Isa::splat(-1.42860677e-6f), r);
  Vector p = Isa::splat(1.0f / 720);
  for (float c : {1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    p = Isa::fma(p, r, Isa::splat(c));
  return Isa::scale(p, n);
}

/// `Block` tokens of one head at a time.
template <typename Isa, Rule rule, int64_t Size, int64_t Block>
class HandTile {
  using Vector = typename Isa::Vector;
  static constexpr int64_t lanes = Isa::lanes, rows = Isa::rows;
  static constexpr int64_t cols = 2 * lanes;
  static constexpr int64_t panels = Size / cols;
  /// A cache line holds 16 floats.
  static constexpr int64_t line = 16;

public:
  explicit HandTile(const HandTask &task) : task(task) {}

  void run() {
    // Where the heads of a token are adjacent, all heads advance together.
    int64_t span = task.tokenStride > 2 * Size
                       ? std::min<int64_t>(256, task.tokens)
                       : task.tokens;
    std::vector<float> states(task.heads * Size * Size);
    for (int64_t from = 0; from < task.tokens; from += span)
      for (int64_t head = 0; head < task.heads; ++head) {
        state = states.data() + head * Size * Size;
        for (int64_t t = from; t < std::min(from + span, task.tokens);
             t += Block)
          block(head, t);
      }
  }

private:
  void block(int64_t head, int64_t t) {
    base = head * task.headStride + t * task.tokenStride;
    ahead = t + Block < task.tokens ? base + Block * task.tokenStride : base;
    prefetched = 0;
    pack(head, t);
    for (int64_t panel = 0; panel < panels; ++panel)
      sweepPanel(panel);
  }

  void pack(int64_t head, int64_t token) {
    for (int64_t t = 0; t < Block; ++t)
      for (int64_t d = 0; d < Size; d += lanes) {
        int64_t from = base + t * task.tokenStride + d, to = t * Size + d;
        Isa::store(queries + to, Isa::load(task.query + from));
        Isa::store(keys + to, Isa::load(task.key + from));
        Isa::store(values + to, Isa::load(task.value + from));
        if (rule == Rule::Gate)
          Isa::store(gates + to,
                     exponential<Isa>(Isa::load(task.decay + from)));
      }
    if (rule == Rule::Scalar)
      for (int64_t t = 0; t < Block; t += lanes)
        Isa::store(gates + t,
                   exponential<Isa>(
                       Isa::load(task.decay + head * task.tokens + token + t)));
  }

  /// Prefetches one line of each of the next block's rows.
  void prefetch() {
    if (prefetched == Block * (Size / line))
      return;
    int64_t at = ahead + prefetched / (Size / line) * task.tokenStride +
                 prefetched % (Size / line) * line;
    ++prefetched;
    __builtin_prefetch(task.query + at);
    __builtin_prefetch(task.key + at);
    __builtin_prefetch(task.value + at);
    __builtin_prefetch(task.output + at, 1);
    if (rule == Rule::Gate)
      __builtin_prefetch(task.decay + at);
  }

  void sweepPanel(int64_t panel) {
    sweepTile<true, false>(panel, 0);
    for (int64_t row = rows; row + rows < Size; row += rows)
      sweepTile<false, false>(panel, row);
    sweepTile<false, true>(panel, Size - rows);
  }

  template <bool first, bool last>
  void sweepTile(int64_t panel, int64_t row) {
    // Enough lines per tile to prefetch the block over all tiles.
    constexpr int64_t tiles = panels * (Size / rows);
    constexpr int64_t lines = Block * (Size / line);
    for (int64_t i = 0; i < (lines + tiles - 1) / tiles; ++i)
      prefetch();
    float *tile = state + (panel * Size + row) * cols;
    Vector s[rows][2];
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < 2; ++j)
        s[i][j] = Isa::load(tile + i * cols + j * lanes);
#pragma GCC unroll 1
    for (int64_t t = 0; t < Block; t += 2) {
      token<first, last>(s, panel, row, t);
      token<first, last>(s, panel, row, t + 1);
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < 2; ++j)
        Isa::store(tile + i * cols + j * lanes, s[i][j]);
  }

  template <bool first, bool last>
  __attribute__((always_inline)) void token(Vector (&s)[rows][2], int64_t panel,
                                            int64_t row, int64_t t) {
    const float *q = queries + t * Size + row, *k = keys + t * Size + row;
    const float *g = gates + t * (rule == Rule::Gate ? Size : 1);
    const float *v = values + t * Size + panel * cols;
    float *sums = outputs + t * cols;
    float *result =
        last ? task.output + base + t * task.tokenStride + panel * cols : sums;
    Vector o[2], value[2];
    for (int64_t j = 0; j < 2; ++j) {
      value[j] = Isa::load(v + j * lanes);
      o[j] = first ? Isa::splat(0) : Isa::load(sums + j * lanes);
    }
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < 2; ++j) {
        Vector &x = s[i][j];
        if (rule != Rule::Linear)
          x = Isa::mul(
              x, Isa::splat(g[rule == Rule::Gate ? row + i : int64_t(0)]));
        x = Isa::fma(Isa::splat(k[i]), value[j], x);
        o[j] = Isa::fma(Isa::splat(q[i]), x, o[j]);
      }
    for (int64_t j = 0; j < 2; ++j)
      Isa::store(result + j * lanes, o[j]);
  }

  const HandTask &task;
  int64_t base = 0, ahead = 0, prefetched = 0;
  float *state = nullptr;
  alignas(64) float queries[Block * Size], keys[Block * Size];
  alignas(64) float values[Block * Size], gates[Block * Size];
  alignas(64) float outputs[Block * cols];
};

template <typename Isa, Rule rule>
void runSize(const HandTask &task) {
  // A block's rows stay in L1 while the state streams.
  if (task.size == 64)
    HandTile<Isa, rule, 64, 2 * Isa::lanes>(task).run();
  else
    HandTile<Isa, rule, 128, 16>(task).run();
}

template <typename Isa>
void runRule(Rule rule, const HandTask &task) {
  switch (rule) {
  case Rule::Linear:
    return runSize<Isa, Rule::Linear>(task);
  case Rule::Scalar:
    return runSize<Isa, Rule::Scalar>(task);
  case Rule::Gate:
    return runSize<Isa, Rule::Gate>(task);
  }
}

template <typename Isa>
double runPeak(int64_t rounds) {
  // Enough chains to hide the latency, and few enough for 16 registers.
  constexpr int chains = 12;
  typename Isa::Vector sums[chains], a = Isa::splat(0.5f), b = Isa::splat(1);
  for (int i = 0; i < chains; ++i)
    sums[i] = Isa::splat(float(i));
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i)
      sums[i] = Isa::fma(sums[i], a, b);
    // Hides from the optimiser that the operands are constant.
    __asm__ volatile("" : "+v"(a), "+v"(b));
  }
  for (int i = 1; i < chains; ++i)
    sums[0] = Isa::add(sums[0], sums[i]);
  alignas(64) float out[Isa::lanes];
  Isa::store(out, sums[0]);
  volatile float sink = out[0];
  (void)sink;
  return 2.0 * Isa::lanes * chains * double(rounds);
}

} // namespace

#endif // LINATTN_BENCHMARKS_HANDTILEIMPL_H
