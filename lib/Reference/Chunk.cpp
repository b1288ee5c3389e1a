//===- Chunk.cpp - The steps of a chunk in doubles ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/Chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace linattn::reference {

namespace {

/// The position of a loop over the elements of a result: batch, head, token or
/// row, feature or column.
struct Place {
  int64_t batch, head, heads, token, feature;
};

} // namespace

/// The element of x at a position and this token. Numbers have no features, and
/// groups of heads share a head.
static double get(const Array &x, const Place &at, int64_t token,
                  int64_t feature) {
  int64_t head = at.head * x.dim(1) / at.heads;
  return x.rank() == 3 ? x.at({at.batch, head, token})
                       : x.at({at.batch, head, token, feature});
}

static void
forEachPlace(Array &result,
             const std::function<void(const Place &, double &)> &body) {
  int64_t features = result.rank() == 4 ? result.dim(3) : 1, next = 0;
  for (int64_t b = 0; b < result.dim(0); ++b)
    for (int64_t h = 0; h < result.dim(1); ++h)
      for (int64_t t = 0; t < result.dim(2); ++t)
        for (int64_t d = 0; d < features; ++d)
          body({b, h, result.dim(1), t, d}, result.data[next++]);
}

/// Σ g_t over [from, to).
static double sumOf(const Array &g, const Place &at, int64_t from, int64_t to,
                    int64_t feature) {
  double sum = 0.0;
  for (int64_t t = from; t < to; ++t)
    sum += get(g, at, t, feature);
  return sum;
}

Array packChunk(const Array &x, int64_t heads, const PackOptions &options) {
  std::vector<int64_t> shape = x.rank() == 1 ? options.shift->shape : x.shape;
  shape[1] = heads;
  Array result(shape);
  forEachPlace(result, [&](const Place &at, double &y) {
    int64_t token = options.reverse ? shape[2] - 1 - at.token : at.token;
    y = x.rank() == 1 ? x.at({at.head}) : get(x, at, token, at.feature);
    if (options.shift)
      y -= get(*options.shift, at, at.token, at.feature);
    if (options.gate)
      y *= get(*options.gate, at, at.token, at.feature);
    y *= options.scale;
    if (options.mask && options.mask->at({at.batch, at.token}) == 0.0)
      y = options.fill;
  });
  return result;
}

Array unpackChunk(const Array &rows, const std::optional<Array> &denominator,
                  const Normalize &normalize,
                  const std::optional<Array> &runningMax, bool reverse) {
  Array result(rows.shape);
  forEachPlace(result, [&](const Place &at, double &o) {
    int64_t row = reverse ? rows.dim(2) - 1 - at.token : at.token;
    o = get(rows, at, row, at.feature);
    if (!denominator)
      return;
    double maximum = runningMax ? get(*runningMax, at, row, 0) : 0.0;
    o = normalizeValue(o, get(*denominator, at, row, 0), normalize, maximum);
  });
  return result;
}

Array decayRows(const Array &x, const Array &g, DecaySpan span) {
  Array result(x.shape);
  forEachPlace(result, [&](const Place &at, double &y) {
    int64_t from = span == DecaySpan::ToEnd ? at.token + 1 : 0;
    int64_t to = span == DecaySpan::ToEnd         ? x.dim(2)
                 : span == DecaySpan::BeforeToken ? at.token
                                                  : at.token + 1;
    y = get(x, at, at.token, at.feature) *
        std::exp(sumOf(g, at, from, to, at.feature));
  });
  return result;
}

StabilizedChunk stabilizeChunk(const Array &magnitude,
                               const std::optional<Array> &decay,
                               const Array &runningMax, bool steady) {
  constexpr double lowest = std::numeric_limits<double>::lowest();
  std::vector<int64_t> shape(magnitude.shape.begin(),
                             magnitude.shape.begin() + 3);
  StabilizedChunk result{Array(decay ? decay->shape : shape), Array(shape),
                         runningMax};
  int64_t features = magnitude.rank() == 4 ? magnitude.dim(3) : 1;
  // For each token, the maximum before the first one.
  Array past(shape);
  forEachPlace(result.maxima, [&](const Place &at, double &maximum) {
    double &best = result.runningMax.at({at.batch, at.head});
    past.at({at.batch, at.head, at.token}) = best;
    if (decay && !steady)
      best += get(*decay, at, at.token, 0);
    for (int64_t d = 0; d < features; ++d)
      best = std::max(best, get(magnitude, at, at.token, d));
    maximum = std::max(best, lowest);
  });
  forEachPlace(result.fade, [&](const Place &at, double &fade) {
    fade = std::max(get(past, at, at.token, 0), lowest) -
           get(result.maxima, at, at.token, 0);
    if (decay)
      fade += get(*decay, at, at.token, at.feature);
  });
  return result;
}

Array chunkScores(const Array &x, const Array &keys,
                  const ScoresOptions &options) {
  Array result({x.dim(0), x.dim(1), x.dim(2), x.dim(2)});
  forEachPlace(result, [&](const Place &at, double &score) {
    int64_t t = at.token, j = at.feature;
    bool own = t == j;
    if (j > t || (own && options.strict && !options.bonus))
      return;
    for (int64_t d = 0; d < x.dim(3); ++d) {
      double key = get(keys, at, j, d);
      if (own && options.bonus)
        key *=
            options.bonus->at({at.head * options.bonus->dim(0) / at.heads, d});
      else if (options.decay)
        key *= std::exp(
            sumOf(*options.decay, at, j + 1, options.before ? t : t + 1, d));
      score += get(x, at, t, d) * key;
    }
  });
  return result;
}

Array solveChunk(const Array &scores, const std::optional<Array> &gate,
                 const Array &y, bool transpose) {
  Array x = y;
  int64_t tokens = y.dim(2);
  for (int64_t step = 0; step < tokens; ++step) {
    int64_t row = transpose ? tokens - 1 - step : step;
    forEachPlace(x, [&](const Place &at, double &value) {
      if (at.token != row)
        return;
      for (int64_t j = transpose ? row + 1 : 0; j < (transpose ? tokens : row);
           ++j)
        value +=
            (transpose ? get(scores, at, j, row) : get(scores, at, row, j)) *
            get(x, at, j, at.feature);
      if (gate)
        value *= get(*gate, at, row, at.feature);
    });
  }
  return x;
}

Array readChunk(const Array &x, const Array &state,
                const std::vector<ChunkTerm> &terms, const Array &y,
                const ChunkReadOptions &options) {
  Array result = y;
  bool adjoint = options.adjoint;
  forEachPlace(result, [&](const Place &at, double &sum) {
    int64_t t = at.token, from = 0, to = options.strict ? t : t + 1;
    if (adjoint) {
      from = options.strict ? t + 1 : t;
      to = y.dim(2);
    }
    // The factor of the column over the tokens [begin, end).
    auto factor = [&](int64_t begin, int64_t end) {
      return options.decay
                 ? std::exp(sumOf(*options.decay, at, begin, end, at.feature))
                 : 1.0;
    };
    double fade = adjoint ? factor(t + 1, y.dim(2)) : factor(0, t + 1);
    for (int64_t k = 0; k < x.dim(3); ++k)
      sum += fade * get(x, at, t, k) *
             (options.transpose ? get(state, at, at.feature, k)
                                : get(state, at, k, at.feature));
    for (const ChunkTerm &term : terms)
      for (int64_t j = from; j < to; ++j)
        sum += (adjoint ? get(term.weights, at, j, t)
                        : get(term.weights, at, t, j)) *
               get(term.values, at, j, at.feature) *
               (adjoint ? factor(t + 1, j + 1) : factor(j + 1, t + 1));
  });
  return result;
}

Array updateChunk(const Array &state, const std::vector<ChunkTerm> &writes,
                  const std::optional<Array> &decay,
                  const std::optional<Array> &valueDecay) {
  Array result = state;
  forEachPlace(result, [&](const Place &at, double &s) {
    int64_t k = at.token, v = at.feature;
    if (decay)
      s *= std::exp(sumOf(*decay, at, 0, decay->dim(2), k));
    if (valueDecay)
      s *= std::exp(sumOf(*valueDecay, at, 0, valueDecay->dim(2), v));
    for (const ChunkTerm &write : writes)
      for (int64_t t = 0; t < write.weights.dim(2); ++t)
        s += get(write.weights, at, t, k) * get(write.values, at, t, v);
  });
  return result;
}

} // namespace linattn::reference
