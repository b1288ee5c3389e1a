//===- PrimeField.cpp - Numbers without rounding --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Field/PrimeField.h"

#include <cmath>
#include <limits>

using namespace linattn;
using namespace linattn::detail;

namespace {

struct Fraction {
  __int128 numerator, denominator;
};

/// Beyond these, the ends of a rounding interval do not fit 128 bits.
constexpr int kMaxExponent = 40;

/// A constant with few bits is exact, such as 0.375.
constexpr unsigned kExactBits = 12;

} // namespace

/// The fraction with the smallest denominator between two positive ones: the
/// common part of their continued fractions.
static Fraction findSimplest(Fraction low, Fraction high) {
  __int128 whole = low.numerator / low.denominator;
  __int128 rest = low.numerator % low.denominator;
  if (rest == 0)
    return {whole, 1};
  if (whole + 1 <= high.numerator / high.denominator)
    return {whole + 1, 1};
  // Both lie in (whole, whole + 1): continue with the inverse of the rest.
  Fraction inner = findSimplest(
      {high.denominator, high.numerator - whole * high.denominator},
      {low.denominator, rest});
  return {whole * inner.numerator + inner.denominator, inner.numerator};
}

PrimeField::Element PrimeField::embedFraction(__int128 numerator,
                                              __int128 denominator) const {
  return multiply(pack(reduce(numerator, p), reduce(numerator, q)),
                  invert(pack(reduce(denominator, p), reduce(denominator, q))));
}

PrimeField::Element PrimeField::embedDyadic(double value) const {
  int exponent;
  auto mantissa =
      static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), 53));
  exponent -= 53;
  uint64_t steps = static_cast<uint64_t>(std::abs(exponent));
  Element scale = pack(power(2, steps, p), power(2, steps, q));
  return multiply(embedInteger(mantissa), exponent < 0 ? invert(scale) : scale);
}

/// Whether rounding `exact` to `precision` bits gives `value`.
static bool isRounded(double value, double exact, unsigned precision) {
  return std::abs(value - exact) <=
         std::ldexp(std::abs(exact), -static_cast<int>(precision));
}

PrimeField::Element PrimeField::embed(double value, unsigned precision) const {
  if (std::isnan(value))
    return kNaN;
  // f16 ends at 65504, the wider types beyond 3e38.
  bool isLargest =
      precision == 11
          ? std::abs(value) >= 65504
          : std::abs(value) >= 3.38e38 &&
                (precision < 53 ||
                 std::abs(value) == std::numeric_limits<double>::max());
  if (std::isinf(value) || isLargest)
    return value < 0 ? kNegativeInfinity : kInfinity;
  if (value == 0)
    return 0;

  // The one pair of irrational constants that code multiplies with each other.
  constexpr double ln2 = 0.69314718055994530942;
  Element ln2Element = embedDyadic(ln2);
  if (isRounded(value, ln2, precision))
    return ln2Element;
  if (isRounded(value, 1 / ln2, precision))
    return invert(ln2Element);

  int exponent;
  double mantissa = std::frexp(value, &exponent);
  double few = std::ldexp(mantissa, kExactBits);
  if (few == std::trunc(few) || std::abs(exponent) > kMaxExponent)
    return embedDyadic(value);
  double whole = std::trunc(value);
  if (value == whole)
    return embedInteger(static_cast<int64_t>(whole));
  // Half a unit in the last place on both sides, as fractions over 2^shift.
  auto digits = static_cast<int64_t>(
      std::ldexp(std::abs(mantissa), static_cast<int>(precision) + 1));
  int shift = static_cast<int>(precision) + 1 - exponent;
  __int128 denominator = __int128(1) << shift;
  Fraction simplest =
      findSimplest({digits - 1, denominator}, {digits + 1, denominator});
  return embedFraction(value < 0 ? -simplest.numerator : simplest.numerator,
                       simplest.denominator);
}

PrimeField::Element PrimeField::makeRandom(uint64_t seed, uint64_t stream,
                                           uint64_t index) const {
  uint64_t state = mix(mix(mix(seed ^ p) ^ stream) ^ index);
  return pack(state % p, mix(state) % q);
}
