//===- HandTileAVX512.cpp - The state tile in AVX-512 ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HandTileImpl.h"

using namespace linattn::bench;

namespace {

struct AVX512 {
  using Vector = __m512;
  static constexpr int64_t lanes = 16, rows = 8;
  static Vector load(const float *p) { return _mm512_loadu_ps(p); }
  static void store(float *p, Vector x) { _mm512_storeu_ps(p, x); }
  static Vector splat(float x) { return _mm512_set1_ps(x); }
  static Vector add(Vector x, Vector y) { return _mm512_add_ps(x, y); }
  static Vector mul(Vector x, Vector y) { return _mm512_mul_ps(x, y); }
  static Vector max(Vector x, Vector y) { return _mm512_max_ps(x, y); }
  static Vector fma(Vector x, Vector y, Vector z) {
    return _mm512_fmadd_ps(x, y, z);
  }
  static Vector round(Vector x) { return _mm512_roundscale_ps(x, 0); }
  static Vector scale(Vector x, Vector n) { return _mm512_scalef_ps(x, n); }
};

} // namespace

void linattn::bench::runHandTileAVX512(Rule rule, const HandTask &task) {
  runRule<AVX512>(rule, task);
}

double linattn::bench::runPeakAVX512(int64_t rounds) {
  return runPeak<AVX512>(rounds);
}
