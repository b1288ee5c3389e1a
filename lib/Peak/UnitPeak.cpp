//===- UnitPeak.cpp - The ceilings of matrix units ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Peak/UnitPeak.h"
#include "Threads.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <cstdint>
#include <immintrin.h>

namespace {

/// The operand of ldtilecfg: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start = 0, reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

bool hasTiles() {
  // Leaf 7: AMX-BF16 and AMX-TILE.
  constexpr unsigned bf16 = 1u << 22, tiles = 1u << 24;
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & bf16 && d & tiles;
}

/// Six sums of one pair of operands: enough to hide the latency of each.
__attribute__((target("amx-tile,amx-bf16"))) double runTiles(int64_t rounds) {
  TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 6, 7);
    _tile_dpbf16ps(1, 6, 7);
    _tile_dpbf16ps(2, 6, 7);
    _tile_dpbf16ps(3, 6, 7);
    _tile_dpbf16ps(4, 6, 7);
    _tile_dpbf16ps(5, 6, 7);
  }
  _tile_release();
  return 2.0 * 16 * 16 * 32 * 6 * static_cast<double>(rounds);
}

bool hasDotProducts() {
  // Leaf 7, subleaf 1: AVX512-BF16.
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1u << 5;
}

/// Sixteen sums of one pair of operands.
__attribute__((target("avx512f,avx512bf16"))) double
runDotProducts(int64_t rounds) {
  constexpr int count = 16;
  __m512 sums[count] = {};
  auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f80));
  for (int64_t r = 0; r < rounds; ++r) {
    for (__m512 &sum : sums)
      sum = _mm512_dpbf16_ps(sum, ones, ones);
    // The operand of each round is unknown.
    asm volatile("" : "+v"(ones));
  }
  for (__m512 &sum : sums)
    asm volatile("" ::"v"(sum));
  return 2.0 * 32 * count * static_cast<double>(rounds);
}

} // namespace

double linattn::measureTileGflops() {
  return hasTiles() ? detail::measureBestGflops(runTiles, 100000) : 0;
}

double linattn::measureDotGflops() {
  return hasDotProducts() ? detail::measureBestGflops(runDotProducts, 1000000)
                          : 0;
}
#else
double linattn::measureTileGflops() { return 0; }
double linattn::measureDotGflops() { return 0; }
#endif
