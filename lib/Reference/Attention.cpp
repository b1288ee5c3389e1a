//===- Attention.cpp - Attention by its quadratic definition --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every output row is computed on its own from the weights of its query, so
// that one row of weights is all that is ever held.
//
//===----------------------------------------------------------------------===//

#include "Detail.h"

#include <algorithm>

namespace linattn::reference {

using namespace detail;

namespace {

/// Checked operands with the feature map applied.
struct Problem {
  const AttentionOptions &options;
  Heads heads;
  Array q, k;
  /// For each key token [B, Hk, Tk], the logarithm of the factor taken out of
  /// its features; empty unless stabilized.
  std::vector<double> keyLog;
  double scale = 1.0;

  int64_t batch() const { return q.dim(0); }
  int64_t queries() const { return q.dim(2); }
  int64_t keys() const { return k.dim(2); }

  bool isInPattern(int64_t position, int64_t j) const {
    auto [window, dilation, globals] = options.pattern;
    int64_t distance = std::abs(position - j);
    bool isNear = window == 0 || distance < window * dilation;
    // Queries before the first key have negative positions.
    bool isGlobal = globals > 0 && (j < globals || position < globals);
    return (isNear && distance % dilation == 0) || isGlobal;
  }

  /// A score of softmax attention after softcap and slopes.
  double adjust(double score, int64_t head, int64_t i, int64_t j) const {
    if (options.softcap)
      score = *options.softcap * std::tanh(score / *options.softcap);
    if (options.slopes)
      score -=
          options.slopes->at({head}) * std::abs(i + keys() - queries() - j);
    return score;
  }

  /// Whether query i may attend to key j.
  bool attends(int64_t b, int64_t i, int64_t j) const {
    bool inPrefix = options.prefix && j < options.prefix->at({b});
    int64_t position = i + keys() - queries();
    if (options.causal && j > position && !inPrefix)
      return false;
    if (!isInPattern(position, j))
      return false;
    return !options.mask || options.mask->at({b, j}) != 0.0;
  }
};

} // namespace

static Status checkOperands(const Array &q, const Array &k, const Array *v,
                            const AttentionOptions &options) {
  if (Status error = checkTokens(q, "query"))
    return error;
  if (Status error = checkTokens(k, "key"))
    return error;
  if (Status error = checkSameBatch(q, "query", k, "key"))
    return error;
  if (Status error = checkSameFeatures(q, "query", k, "key"))
    return error;
  if (v) {
    if (Status error = checkTokens(*v, "value"))
      return error;
    if (Status error = checkSameBatch(k, "key", *v, "value"))
      return error;
    if (Status error = checkSameLength(k, "key", *v, "value"))
      return error;
  }
  bool hasState =
      options.weights == AttentionWeights::Linear && options.pattern.isAll();
  if (options.causal && hasState)
    if (Status error = checkSameLength(q, "query", k, "key"))
      return error;
  if (options.prefix && !options.causal)
    return expected("prefix only with causal", "one without");
  if (options.prefix)
    if (Status error = checkShape(*options.prefix, "prefix", {{k.dim(0)}}))
      return error;
  if (options.mask)
    return checkShape(*options.mask, "mask", {{k.dim(0), k.dim(2)}});
  return std::nullopt;
}

static Status checkOptions(const AttentionOptions &options) {
  if (Status error = checkFeatureMap(options.featureMap))
    return error;
  if (options.weights != AttentionWeights::Softmax &&
      (options.softcap || options.slopes || options.sinks))
    return expected("softcap, slopes and sinks only with softmax weights",
                    "linear ones");
  if (options.weights == AttentionWeights::Softmax) {
    if (options.featureMap.kind != FeatureMapKind::Identity)
      return expected("feature map identity with softmax weights",
                      featureMapName(options.featureMap.kind));
    if (options.normalize)
      return Error{"expected no normalize with softmax weights, which sum to "
                   "one already, but got one"};
  }
  return checkNormalize(options.normalize, options.featureMap);
}

static Array mapTokens(const Array &x, const FeatureMap &map, bool stabilized,
                       std::vector<double> *logs) {
  Array result(x.shape);
  int64_t features = x.dim(3);
  int64_t count = static_cast<int64_t>(x.data.size());
  for (int64_t start = 0; start < count; start += features) {
    const double *in = x.data.data() + start;
    double *out = result.data.data() + start;
    if (!stabilized) {
      mapToken(map, in, out, features);
      continue;
    }
    double log = mapTokenStabilized(in, out, features);
    if (logs)
      logs->push_back(log);
  }
  return result;
}

static Result<Problem> makeProblem(const Array &q, const Array &k,
                                   const Array *v,
                                   const AttentionOptions &options) {
  if (Status error = checkOptions(options))
    return *error;
  if (Status error = checkOperands(q, k, v, options))
    return *error;
  Result<Heads> heads = groupHeads(q.dim(1), k.dim(1), v ? v->dim(1) : 1);
  if (!heads)
    return Error{heads.error()};

  bool softmax = options.weights == AttentionWeights::Softmax;
  bool stabilized =
      isStabilized(options.featureMap, options.normalize.has_value());
  for (auto [numbers, name] :
       {std::pair(&options.slopes, "slopes"), {&options.sinks, "sinks"}})
    if (*numbers)
      if (Status error = checkShape(**numbers, name, {{heads->output}}))
        return *error;
  Problem problem{options, *heads, {}, {}, {}};
  // A query's own factor cancels in the quotient and is dropped. The factors of
  // a row's keys differ, so that they are kept.
  problem.q = mapTokens(q, options.featureMap, stabilized, nullptr);
  problem.k = mapTokens(k, options.featureMap, stabilized, &problem.keyLog);
  double textbook = softmax ? 1.0 / std::sqrt(double(q.dim(3))) : 1.0;
  problem.scale = options.scale.value_or(textbook);
  return problem;
}

/// Turns scores into softmax weights. Keys that are not attended to have score
/// -infinity.
static double exponentiateRow(std::vector<double> &row, double sink) {
  double largest = sink;
  for (double score : row)
    largest = std::max(largest, score);
  double sum = sink == lowest ? 0.0 : std::exp(sink - largest);
  for (double &score : row) {
    score = score == lowest ? 0.0 : std::exp(score - largest);
    sum += score;
  }
  return sum;
}

/// Multiplies each weight by the factor taken out of its key, relative to the
/// largest one that the query attends.
static void restoreKeyFactors(const Problem &problem, int64_t b, int64_t head,
                              int64_t i, std::vector<double> &row) {
  const double *logs =
      problem.keyLog.data() + (b * problem.heads.key + head) * problem.keys();
  double largest = lowest;
  for (int64_t j = 0; j < problem.keys(); ++j)
    if (problem.attends(b, i, j))
      largest = std::max(largest, logs[j]);
  for (int64_t j = 0; j < problem.keys(); ++j)
    if (problem.attends(b, i, j))
      row[j] *= rescale(logs[j], largest);
}

/// Fills `row` with the undivided weights of query i of an output head, and
/// returns their sum.
static double computeRow(const Problem &problem, int64_t b, int64_t outputHead,
                         int64_t i, std::vector<double> &row) {
  const Heads &heads = problem.heads;
  bool softmax = problem.options.weights == AttentionWeights::Softmax;
  int64_t keyHead = heads.keyOfState(heads.stateOfOutput(outputHead));
  const double *q = problem.q.row({b, heads.queryOfOutput(outputHead), i});
  row.assign(problem.keys(), softmax ? lowest : 0.0);
  for (int64_t j = 0; j < problem.keys(); ++j)
    if (problem.attends(b, i, j))
      row[j] =
          problem.adjust(problem.scale * dot(q, problem.k.row({b, keyHead, j}),
                                             problem.k.dim(3)),
                         outputHead, i, j);
  if (softmax)
    return exponentiateRow(row, problem.options.sinks
                                    ? problem.options.sinks->at({outputHead})
                                    : lowest);
  if (!problem.keyLog.empty())
    restoreKeyFactors(problem, b, keyHead, i, row);
  double sum = 0.0;
  for (double weight : row)
    sum += weight;
  return sum;
}

/// The divisor of the row; 0 if it attends to no key.
static double rowDivisor(const Problem &problem, double sum) {
  if (problem.options.weights == AttentionWeights::Softmax)
    return sum;
  if (problem.options.normalize)
    return normalizerDivisor(sum, *problem.options.normalize);
  return 1.0;
}

Result<Array> attention(const Array &q, const Array &k, const Array &v,
                        const AttentionOptions &options) {
  Result<Problem> problem = makeProblem(q, k, &v, options);
  if (!problem)
    return Error{problem.error()};
  const Heads &heads = problem->heads;
  int64_t columns = v.dim(3);
  Array o({q.dim(0), heads.output, q.dim(2), columns});
  std::vector<double> row;
  for (int64_t b = 0; b < problem->batch(); ++b)
    for (int64_t head = 0; head < heads.output; ++head)
      for (int64_t i = 0; i < problem->queries(); ++i) {
        double sum = computeRow(*problem, b, head, i, row);
        double divisor = rowDivisor(*problem, sum);
        int64_t valueHead = heads.valueOfState(heads.stateOfOutput(head));
        double *out = o.row({b, head, i});
        // Values that are not attended to are skipped instead of multiplied by
        // 0, since padding may hold NaNs.
        for (int64_t j = 0; j < problem->keys(); ++j)
          if (problem->attends(b, i, j))
            for (int64_t d = 0; d < columns; ++d)
              out[d] += row[j] * v.at({b, valueHead, j, d});
        for (int64_t d = 0; d < columns; ++d)
          out[d] = options.normalize
                       ? normalizeValue(out[d], sum, *options.normalize)
                   : divisor == 0.0 ? 0.0
                                    : out[d] / divisor;
      }
  return o;
}

Result<Array> weights(const Array &q, const Array &k,
                      const AttentionOptions &options) {
  Result<Problem> problem = makeProblem(q, k, nullptr, options);
  if (!problem)
    return Error{problem.error()};
  Array result({q.dim(0), problem->heads.output, q.dim(2), k.dim(2)});
  std::vector<double> row;
  for (int64_t b = 0; b < problem->batch(); ++b)
    for (int64_t head = 0; head < problem->heads.output; ++head)
      for (int64_t i = 0; i < problem->queries(); ++i) {
        double divisor =
            rowDivisor(*problem, computeRow(*problem, b, head, i, row));
        double *out = result.row({b, head, i});
        for (int64_t j = 0; j < problem->keys(); ++j)
          out[j] = divisor == 0.0 ? 0.0 : row[j] / divisor;
      }
  return result;
}

} // namespace linattn::reference
