//===- Residues.h - Arithmetic modulo one prime -----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_FIELD_RESIDUES_H
#define LINATTN_FIELD_RESIDUES_H

#include <cstdint>

namespace linattn::detail {

/// base^exponent modulo a number below 2^32.
constexpr uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1)
      result = result * base % modulus;
    base = base * base % modulus;
  }
  return result;
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

} // namespace linattn::detail

#endif // LINATTN_FIELD_RESIDUES_H
