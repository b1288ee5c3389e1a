//===- LogLinear.cpp - Log-linear attention, in float64 -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Twice: by its definition as a masked matrix, and by the states of a Fenwick
// tree. The two share no code but the checks.
//
//===----------------------------------------------------------------------===//

#include "Detail.h"
#include "linattn/Reference/Recurrences.h"

#include <algorithm>

namespace linattn::reference {

using namespace detail;

static Result<Heads> checkLogLinear(const LogLinearOperands &x,
                                    const LogLinearOptions &options) {
  if (Status error = checkTokens(x.q, "q"))
    return *error;
  if (Status error = checkTokens(x.k, "k"))
    return *error;
  if (Status error = checkTokens(x.v, "v"))
    return *error;
  if (Status error = checkSameBatch(x.q, "q", x.k, "k"))
    return *error;
  if (Status error = checkSameBatch(x.q, "q", x.v, "v"))
    return *error;
  if (Status error = checkSameLength(x.q, "q", x.k, "k"))
    return *error;
  if (Status error = checkSameLength(x.k, "k", x.v, "v"))
    return *error;
  if (Status error = checkSameFeatures(x.q, "q", x.k, "k"))
    return *error;
  Result<Heads> heads = groupHeads(x.q.dim(1), x.k.dim(1), x.v.dim(1));
  if (!heads)
    return heads;
  std::vector<int64_t> perToken{x.k.dim(0), heads->state, x.k.dim(2)};
  if (x.decay)
    if (Status error = checkShape(*x.decay, "decay", {perToken}))
      return *error;
  if (x.levels.rank() != 4 || x.levels.dim(3) < 1)
    return expected("levels [B, H, T, L]", toString(x.levels.shape));
  perToken.push_back(x.levels.dim(3));
  if (Status error = checkShape(x.levels, "levels", {perToken}))
    return *error;
  int64_t positions = static_cast<int64_t>(options.position.size());
  if (positions != 0 && positions != x.k.dim(0))
    return expected(std::to_string(x.k.dim(0)) + " positions",
                    std::to_string(positions));
  return heads;
}

static double getScale(const LogLinearOperands &x,
                       const LogLinearOptions &options) {
  return options.scale.value_or(1.0 / std::sqrt(double(x.k.dim(3))));
}

/// The number of binary digits of n.
static int64_t countBits(int64_t n) {
  int64_t bits = 0;
  for (; n > 0; n /= 2)
    ++bits;
  return bits;
}

//===----------------------------------------------------------------------===//
// The states
//===----------------------------------------------------------------------===//

namespace {

/// The recurrence of one batch element and state head.
struct LevelScan {
  const LogLinearOperands &x;
  const Heads &heads;
  LogLinearResult &result;
  double scale;
  int64_t batch, head;

  double *level(int64_t index) {
    return result.state.row({batch, head, index});
  }

  void step(int64_t t, int64_t position) {
    int64_t K = x.k.dim(3), V = x.v.dim(3), L = x.levels.dim(3);
    if (position > 0) {
      int64_t lowestBit = position & -position;
      int64_t into = std::min(countBits(lowestBit), L - 1);
      for (int64_t below = 0; below < into; ++below)
        for (int64_t i = 0; i < K * V; ++i) {
          level(into)[i] += level(below)[i];
          level(below)[i] = 0.0;
        }
    }
    double factor = x.decay ? std::exp(x.decay->at({batch, head, t})) : 1.0;
    for (int64_t i = 0; i < L * K * V; ++i)
      level(0)[i] *= factor;
    const double *k = x.k.row({batch, heads.keyOfState(head), t});
    const double *v = x.v.row({batch, heads.valueOfState(head), t});
    for (int64_t d = 0; d < K; ++d)
      for (int64_t e = 0; e < V; ++e)
        level(0)[d * V + e] += k[d] * v[e];

    int64_t group = heads.output / heads.state;
    for (int64_t i = head * group; i < (head + 1) * group; ++i) {
      const double *q = x.q.row({batch, heads.queryOfOutput(i), t});
      for (int64_t e = 0; e < V; ++e) {
        double sum = 0.0;
        for (int64_t l = 0; l < L; ++l)
          for (int64_t d = 0; d < K; ++d)
            sum +=
                x.levels.at({batch, head, t, l}) * q[d] * level(l)[d * V + e];
        result.o.at({batch, i, t, e}) = scale * sum;
      }
    }
  }
};

} // namespace

Result<LogLinearResult> logLinear(const LogLinearOperands &x,
                                  const LogLinearOptions &options,
                                  const std::optional<Array> &initial) {
  Result<Heads> heads = checkLogLinear(x, options);
  if (!heads)
    return Error{heads.error()};
  int64_t batch = x.k.dim(0), length = x.k.dim(2);
  LogLinearResult result{
      Array({batch, heads->output, length, x.v.dim(3)}),
      Array({batch, heads->state, x.levels.dim(3), x.k.dim(3), x.v.dim(3)})};
  if (initial) {
    if (Status error =
            checkShape(*initial, "initial state", {result.state.shape}))
      return *error;
    result.state = *initial;
  }
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t head = 0; head < heads->state; ++head) {
      LevelScan scan{x, *heads, result, getScale(x, options), b, head};
      int64_t start = options.position.empty() ? 0 : options.position[b];
      for (int64_t t = 0; t < length; ++t)
        scan.step(t, start + t);
    }
  return result;
}

//===----------------------------------------------------------------------===//
// The definition
//===----------------------------------------------------------------------===//

Result<Array> logLinearQuadratic(const LogLinearOperands &x,
                                 const LogLinearOptions &options) {
  Result<Heads> heads = checkLogLinear(x, options);
  if (!heads)
    return Error{heads.error()};
  int64_t batch = x.k.dim(0), length = x.k.dim(2), L = x.levels.dim(3);
  Array o({batch, heads->output, length, x.v.dim(3)});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < heads->output; ++i) {
      int64_t head = heads->stateOfOutput(i);
      for (int64_t t = 0; t < length; ++t) {
        double log = 0.0;
        for (int64_t j = t; j >= 0; --j) {
          int64_t level = std::min(countBits(t ^ j), L - 1);
          double weight =
              getScale(x, options) * std::exp(log) *
              x.levels.at({b, head, t, level}) *
              dot(x.q.row({b, heads->queryOfOutput(i), t}),
                  x.k.row({b, heads->keyOfState(head), j}), x.k.dim(3));
          for (int64_t e = 0; e < x.v.dim(3); ++e)
            o.at({b, i, t, e}) +=
                weight * x.v.at({b, heads->valueOfState(head), j, e});
          log += x.decay ? x.decay->at({b, head, j}) : 0.0;
        }
      }
    }
  return o;
}

} // namespace linattn::reference
