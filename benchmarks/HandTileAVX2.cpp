//===- HandTileAVX2.cpp - The state tile in AVX2 --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HandTileImpl.h"

using namespace linattn::bench;

namespace {

struct AVX2 {
  using Vector = __m256;
  static constexpr int64_t lanes = 8, rows = 4;
  static Vector load(const float *p) { return _mm256_loadu_ps(p); }
  static void store(float *p, Vector x) { _mm256_storeu_ps(p, x); }
  static Vector splat(float x) { return _mm256_set1_ps(x); }
  static Vector add(Vector x, Vector y) { return _mm256_add_ps(x, y); }
  static Vector mul(Vector x, Vector y) { return _mm256_mul_ps(x, y); }
  static Vector max(Vector x, Vector y) { return _mm256_max_ps(x, y); }
  static Vector fma(Vector x, Vector y, Vector z) {
    return _mm256_fmadd_ps(x, y, z);
  }
  static Vector round(Vector x) { return _mm256_round_ps(x, 8); }
  /// x · 2^n, by way of the exponent's bits.
  static Vector scale(Vector x, Vector n) {
    __m256i shifted = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_castps_si256(x), shifted));
  }
};

} // namespace

void linattn::bench::runHandTileAVX2(Rule rule, const HandTask &task) {
  runRule<AVX2>(rule, task);
}

double linattn::bench::runPeakAVX2(int64_t rounds) {
  return runPeak<AVX2>(rounds);
}
