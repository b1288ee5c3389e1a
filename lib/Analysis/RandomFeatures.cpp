//===- RandomFeatures.cpp - Random projections ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled without contraction of a·b + c (see CMakeLists.txt): a fused
// multiply-add rounds once where the formula rounds twice, and would change
// bits from machine to machine.
//
//===----------------------------------------------------------------------===//

#include "linattn/Analysis/RandomFeatures.h"

#include <cmath>

using namespace linattn;

//===----------------------------------------------------------------------===//
// Generator
//===----------------------------------------------------------------------===//

std::array<uint32_t, 4> linattn::philox4x32(std::array<uint32_t, 4> counter,
                                            std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t first = uint64_t(0xD2511F53u) * counter[0];
    uint64_t second = uint64_t(0xCD9E8D57u) * counter[2];
    counter = {uint32_t(second >> 32) ^ counter[1] ^ key[0], uint32_t(second),
               uint32_t(first >> 32) ^ counter[3] ^ key[1], uint32_t(first)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

//===----------------------------------------------------------------------===//
// Functions from exactly rounded operations
//===----------------------------------------------------------------------===//

/// ln x for x in (0, 1], within 2 ulp: ln(m 2^e) = 2 atanh((m − 1)/(m + 1)) +
/// e ln 2 with m from √½ to √2.
static double logarithm(double x) {
  int exponent;
  double m = std::frexp(x, &exponent); // Exact.
  if (m < 0.70710678118654752) {
    m = m * 2.0;
    exponent -= 1;
  }
  double s = (m - 1.0) / (m + 1.0), square = s * s;
  // The series Σ s^2k / (2k + 1); |s| < 0.1716 makes the next term 10^-20.
  double sum = 0.0;
  for (int k = 12; k >= 0; --k)
    sum = sum * square + 1.0 / double(2 * k + 1);
  // ln 2 in two parts, so that the product with the first is exact.
  constexpr double high = 0x1.62e42feep-1, low = 0x1.a39ef35793c76p-33;
  return double(exponent) * high + (double(exponent) * low + 2.0 * s * sum);
}

namespace {

struct SinCos {
  double sin, cos;
};

} // namespace

/// Sine and cosine of the angle 2π k / 2^53.
static SinCos sineOfFraction(uint64_t k) {
  constexpr uint64_t quarter = uint64_t(1) << 51;
  uint64_t quadrant = k / quarter, rest = k % quarter;
  bool isReflected = rest > quarter / 2; // sin(π/2 − x) = cos x.
  if (isReflected)
    rest = quarter - rest;
  double x = double(rest) * 0x1.0p-51 * 1.5707963267948966, square = x * x;
  // Taylor series; x ≤ π/4 makes the next terms 10^-18.
  double sine = 0.0, cosine = 0.0;
  for (int n = 8; n >= 0; --n) {
    sine = 1.0 - sine * square / double((2 * n + 2) * (2 * n + 3));
    cosine = 1.0 - cosine * square / double((2 * n + 1) * (2 * n + 2));
  }
  sine = sine * x;
  if (isReflected)
    std::swap(sine, cosine);
  switch (quadrant) {
  case 0:
    return {sine, cosine};
  case 1:
    return {cosine, -sine};
  case 2:
    return {-sine, -cosine};
  default:
    return {-cosine, sine};
  }
}

//===----------------------------------------------------------------------===//
// Projections
//===----------------------------------------------------------------------===//

namespace {

/// The purpose of a sequence of normal numbers.
enum class Stream : uint32_t { Directions = 0, Norms = 1 };

/// Independent numbers N(0, 1), by position.
class Normals {
public:
  Normals(const ProjectionOptions &options, Stream stream)
      : key{uint32_t(options.seed), uint32_t(options.seed >> 32)},
        draw(options.draw << 1 | uint64_t(stream)) {}

  /// The numbers [begin, begin + n) of the sequence.
  void fill(uint64_t begin, int64_t n, double *out) const {
    for (uint64_t pair = begin / 2; pair * 2 < begin + n; ++pair) {
      std::array<double, 2> two = makePair(pair);
      for (uint64_t half : {0, 1})
        if (uint64_t at = pair * 2 + half; at >= begin && at < begin + n)
          out[at - begin] = two[half];
    }
  }

private:
  /// Box and Muller's transform of one block.
  std::array<double, 2> makePair(uint64_t index) const {
    auto words = philox4x32({uint32_t(index), uint32_t(index >> 32),
                             uint32_t(draw), uint32_t(draw >> 32)},
                            key);
    uint64_t first = (uint64_t(words[1]) << 32 | words[0]) >> 11;
    uint64_t second = (uint64_t(words[3]) << 32 | words[2]) >> 11;
    // In (0, 1], so that its logarithm is finite.
    double uniform = double(first + 1) * 0x1.0p-53;
    double radius = std::sqrt(-2.0 * logarithm(uniform));
    SinCos angle = sineOfFraction(second);
    return {radius * angle.cos, radius * angle.sin};
  }

  std::array<uint32_t, 2> key;
  uint64_t draw;
};

} // namespace

static double dot(const double *x, const double *y, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i)
    sum = sum + x[i] * y[i];
  return sum;
}

/// Divides a row by its norm.
static void normalizeRow(double *row, int64_t n) {
  double norm = std::sqrt(dot(row, row, n));
  for (int64_t i = 0; i < n; ++i)
    row[i] = row[i] / norm;
}

/// Makes rows orthonormal: Gram and Schmidt's process, which leaves normal rows
/// uniform on the sphere. Twice, so that rounding does not add up.
static void orthonormalize(double *rows, int64_t count, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    double *row = rows + i * n;
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t j = 0; j < i; ++j) {
        const double *other = rows + j * n;
        double along = dot(row, other, n);
        for (int64_t c = 0; c < n; ++c)
          row[c] = row[c] - along * other[c];
      }
    normalizeRow(row, n);
  }
}

/// Why the sizes are not acceptable; empty if they are.
static std::string checkSizes(const ProjectionOptions &options) {
  constexpr int64_t largest = int64_t(1) << 20;
  for (auto [name, size] : {std::pair("features", options.features),
                            std::pair("head size", options.headSize),
                            {"heads", options.heads}})
    if (size < 1 || size > largest)
      return "expected " + std::string(name) + " from 1 to " +
             std::to_string(largest) + ", but got " + std::to_string(size);
  // 2^20 · 2^20 · 2^20 fits.
  if (options.features * options.headSize * options.heads > int64_t(1) << 31)
    return "expected at most 2147483648 elements, but got " +
           std::to_string(options.features * options.headSize * options.heads);
  if (options.draw >> 63)
    return "expected a draw below 2^63, but got " +
           std::to_string(options.draw);
  return {};
}

std::optional<std::vector<double>>
linattn::randomProjection(const ProjectionOptions &options,
                          std::string *error) {
  if (std::string reason = checkSizes(options); !reason.empty()) {
    if (error)
      *error = std::move(reason);
    return std::nullopt;
  }
  int64_t d = options.headSize, rows = options.heads * options.features;
  std::vector<double> w(rows * d), gaussian(d);
  Normals directions(options, Stream::Directions);
  Normals norms(options, Stream::Norms);
  directions.fill(0, rows * d, w.data());

  bool isOrthogonal = options.kind == ProjectionKind::Orthogonal;
  if (isOrthogonal)
    for (int64_t head = 0; head < options.heads; ++head)
      for (int64_t first = 0; first < options.features; first += d)
        orthonormalize(w.data() + (head * options.features + first) * d,
                       std::min(d, options.features - first), d);
  for (int64_t row = 0; row < rows; ++row) {
    double *out = w.data() + row * d, length = 1.0;
    if (options.norms == RowNorms::SqrtD) {
      if (!isOrthogonal)
        normalizeRow(out, d);
      length = std::sqrt(double(d));
    } else if (isOrthogonal) {
      // The norm of another normal row: independent of this one's direction.
      norms.fill(row * d, d, gaussian.data());
      length = std::sqrt(dot(gaussian.data(), gaussian.data(), d));
    }
    for (int64_t i = 0; i < d; ++i)
      out[i] = out[i] * length;
  }
  return w;
}
