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

#include "linattn/Field/Residues.h"

#include <cstdint>

namespace linattn {

class PrimeField {
public:
  /// An element: the residue modulo p in the low half, the one modulo q in the
  /// high half. Negative words are the three values below.
  using Element = int64_t;
  static constexpr Element kNaN = -1, kNegativeInfinity = -2, kInfinity = -3;

  /// There are two primes: a coincidence in one field shows in the other.
  static constexpr unsigned kNumFields = 2;

  /// `index` is 0 or 1. Safe primes, so that q is as large as it can be; any
  /// square but 1 has order q.
  constexpr explicit PrimeField(unsigned index)
      : p(index == 0 ? 2147483579 : 2147483123), q((p - 1) / 2),
        g(detail::power(1234567891, 2, p)) {}

  constexpr uint64_t getPrime() const { return p; }
  constexpr uint64_t getOrder() const { return q; }
  /// The number that stands for e: an element of order q modulo p.
  constexpr uint64_t getBase() const { return g; }

  static constexpr Element pack(uint64_t first, uint64_t second) {
    return static_cast<Element>(second << 32 | first);
  }
  static constexpr uint64_t getFirst(Element x) { return x & 0xffffffff; }
  static constexpr uint64_t getSecond(Element x) {
    return static_cast<uint64_t>(x) >> 32;
  }

  /// The product of two pairs.
  constexpr Element multiply(Element x, Element y) const {
    return pack(getFirst(x) * getFirst(y) % p, getSecond(x) * getSecond(y) % q);
  }
  /// The inverses of both residues, by Fermat's theorem.
  constexpr Element invert(Element x) const {
    return pack(detail::power(getFirst(x), p - 2, p),
                detail::power(getSecond(x), q - 2, q));
  }

  constexpr Element embedInteger(int64_t value) const {
    return pack(reduce(value, p), reduce(value, q));
  }

  /// The element of a floating-point constant with `precision` significant
  /// bits: the simplest fraction that rounds to it. 0.1 is 1/10 in every
  /// precision, short dyadic numbers are exact, log₂e is 1/ln 2, and different
  /// constants are different elements. The lowest and the largest finite number
  /// of a type are the infinities.
  Element embed(double value, unsigned precision = 53) const;

  /// Uniform and independent elements, determined by seed, stream and index.
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

  template <typename Integer>
  static constexpr uint64_t reduce(Integer value, uint64_t modulus) {
    Integer rest = value % static_cast<Integer>(modulus);
    return static_cast<uint64_t>(rest) + (rest < 0 ? modulus : 0);
  }

  uint64_t p, q, g;
};

} // namespace linattn

#endif // LINATTN_FIELD_PRIMEFIELD_H
