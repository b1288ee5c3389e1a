//===- RandomFeaturesTest.cpp - Random projections ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/RandomFeatures.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace linattn;

static std::vector<double> draw(const ProjectionOptions &options) {
  std::string error;
  auto w = randomProjection(options, &error);
  EXPECT_TRUE(w) << error;
  return w.value_or(std::vector<double>());
}

static double dot(const std::vector<double> &w, int64_t i, int64_t j,
                  int64_t d) {
  return std::inner_product(w.begin() + i * d, w.begin() + (i + 1) * d,
                            w.begin() + j * d, 0.0);
}

/// A hash of the bits (FNV-1a).
static uint64_t hashBits(const std::vector<double> &w) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (double x : w) {
    uint64_t bits;
    std::memcpy(&bits, &x, sizeof(bits));
    for (int byte = 0; byte < 8; ++byte)
      hash = (hash ^ (bits >> (8 * byte) & 255)) * 0x100000001b3u;
  }
  return hash;
}

// The known answers of the generator's authors.
TEST(Philox, KnownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The same bits on every platform and in every later version.
TEST(RandomProjection, Bits) {
  ProjectionOptions options{40, 24};
  options.seed = 7;
  EXPECT_EQ(hashBits(draw(options)), 6738219594516361669u);
  options.kind = ProjectionKind::Independent;
  std::vector<double> w = draw(options);
  EXPECT_EQ(hashBits(w), 10201861636812370986u);
}

TEST(RandomProjection, BlocksAreOrthogonalAndTheLastOneIsCutShort) {
  constexpr int64_t d = 16, m = 2 * d + 5;
  std::vector<double> w = draw({m, d});
  ASSERT_EQ(int64_t(w.size()), m * d);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < i; ++j)
      if (i / d == j / d)
        EXPECT_NEAR(dot(w, i, j, d), 0.0, 1e-12) << i << " " << j;
}

TEST(RandomProjection, ElementsAreStandardNormal) {
  for (ProjectionKind kind :
       {ProjectionKind::Independent, ProjectionKind::Orthogonal}) {
    ProjectionOptions options{4096, 32};
    options.kind = kind;
    std::vector<double> w = draw(options);
    double n = w.size(), mean = 0, square = 0, fourth = 0;
    for (double x : w) {
      mean += x / n;
      square += x * x / n;
      fourth += x * x * x * x / n;
    }
    // Standard errors of 131072 numbers: 0.003, 0.004, 0.03.
    EXPECT_NEAR(mean, 0.0, 0.012);
    EXPECT_NEAR(square, 1.0, 0.016);
    EXPECT_NEAR(fourth, 3.0, 0.12);
    // Kolmogorov and Smirnov's distance; 1.63/√n is the 1 % limit.
    std::sort(w.begin(), w.end());
    double distance = 0;
    for (size_t i = 0; i < w.size(); ++i) {
      double cdf = 0.5 * std::erfc(-w[i] / std::sqrt(2.0));
      distance = std::max(
          {distance, std::abs(cdf - i / n), std::abs(cdf - (i + 1) / n)});
    }
    EXPECT_LT(distance, 1.63 / std::sqrt(n));
  }
}

TEST(RandomProjection, NormsAreThoseOfNormalRows) {
  constexpr int64_t d = 32, m = 4096;
  auto moments = [&](const ProjectionOptions &options) {
    std::vector<double> w = draw(options);
    double mean = 0, square = 0;
    for (int64_t i = 0; i < m; ++i) {
      double norm2 = dot(w, i, i, d);
      mean += norm2 / m;
      square += norm2 * norm2 / m;
    }
    return std::pair(mean, square - mean * mean);
  };
  // The square of a χ_d norm: mean d, variance 2d.
  auto [mean, variance] = moments({m, d});
  EXPECT_NEAR(mean, d, 0.5);
  EXPECT_NEAR(variance, 2 * d, 6);
  ProjectionOptions fixed{m, d};
  fixed.norms = RowNorms::SqrtD;
  std::tie(mean, variance) = moments(fixed);
  EXPECT_NEAR(mean, d, 1e-9);
  EXPECT_NEAR(variance, 0.0, 1e-9);
}

TEST(RandomProjection, SeedsDrawsAndHeadsDiffer) {
  ProjectionOptions options{8, 8};
  std::vector<double> first = draw(options);
  EXPECT_EQ(first, draw(options));
  options.draw = 1;
  EXPECT_NE(first, draw(options));
  options.draw = 0;
  options.seed = 1;
  EXPECT_NE(first, draw(options));
  options.seed = 0;
  options.heads = 2;
  std::vector<double> both = draw(options);
  EXPECT_EQ(first, std::vector<double>(both.begin(), both.begin() + 64));
  EXPECT_NE(first, std::vector<double>(both.begin() + 64, both.end()));
}

TEST(RandomProjection, RefusesSizes) {
  std::string error;
  EXPECT_FALSE(randomProjection({0, 8}, &error));
  EXPECT_EQ(error, "expected features from 1 to 1048576, but got 0");
  EXPECT_FALSE(randomProjection({8, 0}, &error));
  EXPECT_EQ(error, "expected head size from 1 to 1048576, but got 0");
  EXPECT_FALSE(randomProjection({1 << 20, 1 << 12}, &error));
  EXPECT_EQ(error, "expected at most 2147483648 elements, but got 4294967296");
}
