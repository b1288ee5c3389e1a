//===- ReferenceTestUtils.h - Data and matchers of the oracle's tests -----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_REFERENCE_REFERENCETESTUTILS_H
#define LINATTN_TEST_UNIT_REFERENCE_REFERENCETESTUTILS_H

#include "linattn/Reference/Reference.h"

#include "gtest/gtest.h"

#include <limits>

namespace linattn::reference::test {

/// Two computations of the same numbers in float64.
inline constexpr double roundoff = 1e-13;
/// Half a unit of the fourth decimal, with room for the binary form of it.
inline constexpr double printed = 0.5e-4 + 1e-12;

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

/// One batch element and head from rows of tokens (or of a state).
inline Array oneHead(const std::vector<std::vector<double>> &rows) {
  Array result;
  for (const std::vector<double> &row : rows)
    result.data.insert(result.data.end(), row.begin(), row.end());
  int64_t columns = rows.empty() ? 0 : static_cast<int64_t>(rows[0].size());
  result.shape = {1, 1, static_cast<int64_t>(rows.size()), columns};
  return result;
}

/// The five tokens of the worked examples.
inline Array exampleQ() {
  return oneHead(
      {{1, 0, 1, 0}, {0, 2, 0, 1}, {1, 1, 1, 0}, {0, 0, 1, 1}, {1, 0, 0, 1}});
}
inline Array exampleK() {
  return oneHead(
      {{0, 1, 0, 1}, {1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 1, 1}, {1, 0, .5, .5}});
}
inline Array exampleV() {
  return oneHead({{1, 0, 0, 0},
                  {0, 1, 0, 0},
                  {0, 0, 1, 0},
                  {0, 0, 0, 1},
                  {.5, .5, .5, .5}});
}

/// Reproducible numbers, uniform in [low, high).
inline Array randomArray(std::vector<int64_t> shape, uint64_t seed,
                         double low = -1.0, double high = 1.0) {
  Array result(std::move(shape));
  uint64_t bits = seed * 0x9e3779b97f4a7c15ull + 1;
  for (double &x : result.data) {
    bits = bits * 6364136223846793005ull + 1442695040888963407ull;
    x = low + (high - low) * static_cast<double>(bits >> 11) * 0x1p-53;
  }
  return result;
}

/// Two batch elements, two state heads, five tokens, K = 3, V = 2.
inline ScanOperands randomTokens(uint64_t seed) {
  return {randomArray({2, 2, 5, 3}, seed), randomArray({2, 2, 5, 3}, seed + 1),
          randomArray({2, 2, 5, 2}, seed + 2)};
}

inline Array randomDecay(std::vector<int64_t> shape, uint64_t seed) {
  return randomArray(std::move(shape), seed, -1.5, 0.0);
}

inline FeatureMap makeMap(FeatureMapKind kind) { return FeatureMap{kind}; }

inline const FeatureMapKind allNamedMaps[] = {
    FeatureMapKind::Identity,      FeatureMapKind::Relu,
    FeatureMapKind::Relu2,         FeatureMapKind::Elu1,
    FeatureMapKind::SoftmaxKernel, FeatureMapKind::Exp};

inline AttentionOptions linear(FeatureMapKind kind, bool causal = false,
                               bool normalized = true) {
  AttentionOptions options;
  options.causal = causal;
  options.featureMap = makeMap(kind);
  if (normalized)
    options.normalize = Normalize();
  return options;
}

inline AttentionOptions softmax(bool causal = false) {
  AttentionOptions options;
  options.causal = causal;
  options.weights = AttentionWeights::Softmax;
  return options;
}

/// Each element agrees within `tolerance` and the number of elements is right.
inline void expectNear(const Array &got, const std::vector<double> &expected,
                       double tolerance) {
  ASSERT_EQ(got.data.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got.data[i], expected[i], tolerance) << "at element " << i;
}

/// The value of a result that must not have failed.
template <typename T>
T take(Result<T> result) {
  EXPECT_TRUE(static_cast<bool>(result)) << result.error();
  return result ? *result : T();
}

/// The call was refused with exactly this message.
template <typename T>
void expectError(const Result<T> &result, const std::string &message) {
  EXPECT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(result.error(), message);
}

} // namespace linattn::reference::test

#endif // LINATTN_TEST_UNIT_REFERENCE_REFERENCETESTUTILS_H
