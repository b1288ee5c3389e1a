//===- PrimeField.h - Numbers without rounding ------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The arithmetic in which equivalence is exact. A number is a pair of residues,
// modulo a prime p and modulo a prime q = (p − 1) / 2, in one 64-bit word.
// Sums, products and quotients act on both; e^x is g^x modulo p for an element
// g of order q, so that e^(x+y) = e^x e^y holds without exception. The second
// residue of e^x, which nothing defines, is a fixed random function of the
// first (Mirage, OSDI 2025, leaves it undefined).
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_FIELD_PRIMEFIELD_H
#define LINATTN_FIELD_PRIMEFIELD_H

#include <cstdint>

namespace linattn {

class PrimeField {
public:
  /// The residue modulo p in the low half, the one modulo q in the high half.
  /// Negative words are the three values below.
  using Element = int64_t;
  static constexpr Element kNaN = -1, kNegativeInfinity = -2, kInfinity = -3;

  /// Two primes, so that an accident in one of them is found out by the other.
  static constexpr unsigned kNumFields = 2;

  /// `index` is 0 or 1.
  explicit PrimeField(unsigned index);

  uint64_t getPrime() const { return p; }
  uint64_t getOrder() const { return q; }
  /// The number that stands for e: an element of order q modulo p.
  uint64_t getBase() const { return g; }

  static Element pack(uint64_t first, uint64_t second) {
    return static_cast<Element>(second << 32 | first);
  }
  static uint64_t getFirst(Element x) { return x & 0xffffffff; }
  static uint64_t getSecond(Element x) {
    return static_cast<uint64_t>(x) >> 32;
  }

  Element embedInteger(int64_t value) const;

  /// The element of a floating-point constant with `precision` significant
  /// bits: the simplest fraction that rounds to it. So 0.1 is 1/10 in every
  /// precision, dyadic numbers of few bits are themselves, log₂e is 1/ln 2, and
  /// different constants are different elements. The lowest and the largest
  /// finite number of a type, which stand for no number, are the infinities.
  Element embed(double value, unsigned precision = 53) const;

  /// The same for the same seed, stream and index; uniform and independent
  /// otherwise.
  Element makeRandom(uint64_t seed, uint64_t stream, uint64_t index) const;

  /// Whether two results agree. Only the first residue counts: the second one
  /// of an exponential satisfies no law.
  static bool areEqual(Element x, Element y) {
    if (x < 0 || y < 0)
      return x == y && x != kNaN;
    return getFirst(x) == getFirst(y);
  }

private:
  Element embedFraction(__int128 numerator, __int128 denominator) const;
  Element embedDyadic(double value) const;
  Element multiply(Element x, Element y) const;
  Element invert(Element x) const;

  uint64_t p, q, g;
};

} // namespace linattn

#endif // LINATTN_FIELD_PRIMEFIELD_H
