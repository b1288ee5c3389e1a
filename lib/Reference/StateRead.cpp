//===- StateRead.cpp - The halves of non-causal linear attention ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Detail.h"

#include <algorithm>

namespace linattn::reference {

using namespace detail;

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

static Status checkStateOperands(const Array &k, const Array &v,
                                 const StateOptions &options) {
  if (Status error = checkTokens(k, "key"))
    return error;
  if (Status error = checkTokens(v, "value"))
    return error;
  if (Status error = checkSameBatch(k, "key", v, "value"))
    return error;
  if (Status error = checkSameLength(k, "key", v, "value"))
    return error;
  if (options.mask)
    if (Status error =
            checkShape(*options.mask, "mask", {{k.dim(0), k.dim(2)}}))
      return error;
  return checkFeatureMap(options.featureMap);
}

static bool isWritten(const StateOptions &options, int64_t b, int64_t t) {
  return !options.mask || options.mask->at({b, t}) != 0.0;
}

/// The largest element among a head's unmasked keys.
static double largestKeyElement(const Array &k, int64_t b, int64_t keyHead,
                                const StateOptions &options) {
  double largest = lowest;
  for (int64_t t = 0; t < k.dim(2); ++t)
    if (isWritten(options, b, t))
      for (int64_t d = 0; d < k.dim(3); ++d)
        largest = std::max(largest, k.at({b, keyHead, t, d}));
  return largest;
}

Result<State> state(const Array &k, const Array &v,
                    const StateOptions &options) {
  if (Status error = checkStateOperands(k, v, options))
    return *error;
  Result<Heads> heads = groupHeads(1, k.dim(1), v.dim(1));
  if (!heads)
    return Error{heads.error()};

  int64_t batch = k.dim(0), features = k.dim(3), columns = v.dim(3);
  bool stabilized = isStabilized(options.featureMap, options.normalize);
  State result{Array({batch, heads->state, features, columns})};
  if (options.normalize)
    result.z = Array({batch, heads->state, features});
  if (stabilized)
    result.m = Array({batch, heads->state});

  std::vector<double> phi(features);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t head = 0; head < heads->state; ++head) {
      int64_t keyHead = heads->keyOfState(head);
      double m = 0.0;
      if (stabilized)
        m = result.m->at({b, head}) = largestKeyElement(k, b, keyHead, options);
      for (int64_t t = 0; t < k.dim(2); ++t) {
        if (!isWritten(options, b, t))
          continue;
        const double *key = k.row({b, keyHead, t});
        if (stabilized)
          for (int64_t d = 0; d < features; ++d)
            phi[d] = expBelow(key[d], m);
        else
          mapToken(options.featureMap, key, phi.data(), features);
        const double *value = v.row({b, heads->valueOfState(head), t});
        for (int64_t d = 0; d < features; ++d) {
          for (int64_t e = 0; e < columns; ++e)
            result.S.at({b, head, d, e}) += phi[d] * value[e];
          if (result.z)
            result.z->at({b, head, d}) += phi[d];
        }
      }
    }
  return result;
}

//===----------------------------------------------------------------------===//
// Read
//===----------------------------------------------------------------------===//

static Status checkReadOperands(const Array &q, const State &state,
                                const ReadOptions &options) {
  if (Status error = checkTokens(q, "query"))
    return error;
  if (Status error = checkTokens(state.S, "state"))
    return error;
  if (Status error = checkSameBatch(q, "query", state.S, "state"))
    return error;
  if (q.dim(3) != state.S.dim(2))
    return expectedSame("query", "state", "number of features", q.dim(3),
                        state.S.dim(2));
  if (Status error = checkFeatureMap(options.featureMap))
    return error;
  if (Status error = checkNormalize(options.normalize, options.featureMap))
    return error;
  bool normalized = options.normalize.has_value();
  bool stabilized = isStabilized(options.featureMap, normalized);
  // With an absolute floor, m may be that of an input gate.
  bool isGated = normalized && options.normalize->absFloor && state.m;
  return checkStateParts(state, "state",
                         {state.S.dim(0), state.S.dim(1), q.dim(3)}, normalized,
                         stabilized || isGated);
}

Result<Array> read(const Array &q, const State &state,
                   const ReadOptions &options) {
  if (Status error = checkReadOperands(q, state, options))
    return *error;
  Result<Heads> heads = groupHeads(q.dim(1), state.S.dim(1), state.S.dim(1));
  if (!heads)
    return Error{heads.error()};

  int64_t features = q.dim(3), columns = state.S.dim(3);
  double scale = options.scale.value_or(1.0);
  bool stabilized =
      isStabilized(options.featureMap, options.normalize.has_value());
  Array o({q.dim(0), heads->output, q.dim(2), columns});
  std::vector<double> phi(features);
  for (int64_t b = 0; b < q.dim(0); ++b)
    for (int64_t head = 0; head < heads->output; ++head)
      for (int64_t t = 0; t < q.dim(2); ++t) {
        const double *query = q.row({b, heads->queryOfOutput(head), t});
        // The query's own factor cancels in the quotient.
        if (stabilized)
          mapTokenStabilized(query, phi.data(), features);
        else
          mapToken(options.featureMap, query, phi.data(), features);
        int64_t stateHead = heads->stateOfOutput(head);
        double den = 0.0;
        if (options.normalize)
          den = scale * dot(phi.data(), state.z->row({b, stateHead}), features);
        double m = state.m && !stabilized ? state.m->at({b, stateHead}) : 0.0;
        double *out = o.row({b, head, t});
        for (int64_t e = 0; e < columns; ++e) {
          double num = 0.0;
          for (int64_t d = 0; d < features; ++d)
            num += scale * phi[d] * state.S.at({b, stateHead, d, e});
          out[e] = options.normalize
                       ? normalizeValue(num, den, *options.normalize, m)
                       : num;
        }
      }
  return o;
}

} // namespace linattn::reference
