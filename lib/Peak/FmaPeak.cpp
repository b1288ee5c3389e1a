//===- FmaPeak.cpp - The machine's arithmetic ceiling ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Peak/FmaPeak.h"
#include "Threads.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

/// Runs `rounds` rounds of FMAs and returns their floating-point operations.
using Loop = double (*)(int64_t rounds);

/// Keeps the compiler from deleting the loop.
thread_local volatile float sink;

#if defined(__x86_64__)
// Latency times throughput is at most ten; a few more chains do no harm, and 12
// accumulators with two operands fit sixteen registers.
constexpr int kChains = 12;

__attribute__((target("avx512f"))) double runAVX512(int64_t rounds) {
  __m512 acc[kChains];
  for (int i = 0; i < kChains; ++i)
    acc[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(1.0f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i)
      acc[i] = _mm512_fmadd_ps(acc[i], a, b);
    // Hides from the optimiser that the operands never change.
    __asm__ volatile("" : "+v"(a), "+v"(b));
  }
  __m512 sum = acc[0];
  for (int i = 1; i < kChains; ++i)
    sum = _mm512_add_ps(sum, acc[i]);
  sink = _mm512_cvtss_f32(sum);
  return 2.0 * 16 * kChains * static_cast<double>(rounds);
}

__attribute__((target("avx2,fma"))) double runAVX2(int64_t rounds) {
  __m256 acc[kChains];
  for (int i = 0; i < kChains; ++i)
    acc[i] = _mm256_set1_ps(static_cast<float>(i));
  __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(1.0f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i)
      acc[i] = _mm256_fmadd_ps(acc[i], a, b);
    __asm__ volatile("" : "+x"(a), "+x"(b));
  }
  __m256 sum = acc[0];
  for (int i = 1; i < kChains; ++i)
    sum = _mm256_add_ps(sum, acc[i]);
  sink = _mm256_cvtss_f32(sum);
  return 2.0 * 8 * kChains * static_cast<double>(rounds);
}
#endif

/// Any vectors of the compiler: 4 lanes suit every 64-bit Arm.
double runGeneric(int64_t rounds) {
  using Vector = float __attribute__((vector_size(16)));
  constexpr int kGenericChains = 16;
  Vector acc[kGenericChains] = {};
  Vector a = {0.5f, 0.5f, 0.5f, 0.5f}, b = {1, 1, 1, 1};
  for (int64_t r = 0; r < rounds; ++r) {
    for (Vector &chain : acc)
      chain = chain * a + b;
    __asm__ volatile("" ::: "memory");
  }
  Vector sum = acc[0];
  for (Vector chain : acc)
    sum += chain;
  sink = sum[0];
  return 2.0 * 4 * kGenericChains * static_cast<double>(rounds);
}

struct Kind {
  const char *name;
  Loop loop;
};

Kind getKind(int64_t vectorBits) {
#if defined(__x86_64__)
  if (vectorBits >= 512 && __builtin_cpu_supports("avx512f"))
    return {"avx512", runAVX512};
  if (vectorBits >= 256 && __builtin_cpu_supports("avx2") &&
      __builtin_cpu_supports("fma"))
    return {"avx2", runAVX2};
#endif
  return {"generic", runGeneric};
}

} // namespace

double linattn::measureFmaGflops(int threads, int64_t vectorBits) {
  Loop loop = getKind(vectorBits).loop;
  return linattn::detail::sumOverThreads(threads, [&](auto start) {
    start();
    return detail::measureBestGflops(loop, 200000);
  });
}

const char *linattn::getFmaKind(int64_t vectorBits) {
  return getKind(vectorBits).name;
}
