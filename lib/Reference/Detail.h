//===- Detail.h - Checks shared by the oracle's functions -------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_REFERENCE_DETAIL_H
#define LINATTN_LIB_REFERENCE_DETAIL_H

#include "linattn/Reference/Reference.h"

#include <cmath>
#include <limits>

namespace linattn::reference::detail {

/// Empty, or the reason of a failed check.
using Status = std::optional<Error>;

/// "[2, 8, 5, 64]"
std::string toString(const std::vector<int64_t> &shape);

/// "expected <expected>, but got <got>"
Error expected(const std::string &what, const std::string &got);

/// "expected <first> and <second> to have the same <what>, but got x and y"
Error expectedSame(const std::string &first, const std::string &second,
                   const std::string &what, int64_t x, int64_t y);

/// Checks that the data fits the shape.
Status checkData(const Array &array, const std::string &name);

/// Checks for one of the given shapes, and the data.
Status checkShape(const Array &array, const std::string &name,
                  const std::vector<std::vector<int64_t>> &allowed);

/// The same of an operand that may be absent.
inline Status checkOptional(const std::optional<Array> &operand,
                            const std::string &name,
                            const std::vector<std::vector<int64_t>> &allowed) {
  return operand ? checkShape(*operand, name, allowed) : std::nullopt;
}

/// Checks a [B, H, T, D] operand: rank, data, at least one head and feature.
Status checkTokens(const Array &array, const std::string &name);

/// Checks that two token operands agree in batch, in the number of tokens, or
/// in the number of features.
Status checkSameBatch(const Array &x, const std::string &xName, const Array &y,
                      const std::string &yName);
Status checkSameLength(const Array &x, const std::string &xName, const Array &y,
                       const std::string &yName);
Status checkSameFeatures(const Array &x, const std::string &xName,
                         const Array &y, const std::string &yName);

/// Checks that a custom map has a function.
Status checkFeatureMap(const FeatureMap &map);

/// Checks the normalizer's numbers. An absolute floor needs the true
/// denominator, which the stabilized Exp map does not compute.
Status checkNormalize(const std::optional<Normalize> &normalize,
                      const FeatureMap &map);

/// Checks that a state carries z and m exactly when they are needed, with the
/// shapes that follow from zShape = [B, H, K].
Status checkStateParts(const State &state, const std::string &name,
                       const std::vector<int64_t> &zShape, bool normalized,
                       bool stabilized);

/// The head of each operand for a state head or an output head.
struct Heads {
  int64_t query = 1, key = 1, value = 1, state = 1, output = 1;

  int64_t queryOfOutput(int64_t i) const { return i * query / output; }
  int64_t stateOfOutput(int64_t i) const { return i * state / output; }
  int64_t keyOfState(int64_t j) const { return j * key / state; }
  int64_t valueOfState(int64_t j) const { return j * value / state; }
};

/// The grouping of the given head counts, if they divide each other.
Result<Heads> groupHeads(int64_t query, int64_t key, int64_t value);

/// The map on one token of n features; Exp is the plain e^x.
void mapToken(const FeatureMap &map, const double *in, double *out, int64_t n);

/// e^(x - max x) of one token; returns the maximum. Features that are all
/// -infinity give zeros.
double mapTokenStabilized(const double *in, double *out, int64_t n);

/// Whether maxima stabilize the Exp map, which is exact only for a quotient.
inline bool isStabilized(const FeatureMap &map, bool normalized) {
  return map.kind == FeatureMapKind::Exp && normalized;
}

inline constexpr double lowest = -std::numeric_limits<double>::infinity();

/// e^(x - m) of a key element for x <= m. A key of -infinity has weight zero.
inline double expBelow(double x, double m) {
  return m == lowest ? 0.0 : std::exp(x - m);
}

/// e^(from - to) for from <= to, also where both are -infinity.
inline double rescale(double from, double to) {
  return from == to ? 1.0 : std::exp(from - to);
}

inline double dot(const double *x, const double *y, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i)
    sum += x[i] * y[i];
  return sum;
}

} // namespace linattn::reference::detail

#endif // LINATTN_LIB_REFERENCE_DETAIL_H
