//===- TilePeak.cpp - The ceiling of the matrix unit ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Peak/TilePeak.h"
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

} // namespace

double linattn::measureTileGflops() {
  if (!hasTiles())
    return 0;
  constexpr int64_t rounds = 100000;
  double best = 0;
  for (int repetition = 0; repetition < 8; ++repetition) {
    double start = detail::getSeconds();
    double operations = runTiles(rounds);
    best = std::max(best, operations / (detail::getSeconds() - start));
  }
  return best / 1e9;
}
#else
double linattn::measureTileGflops() { return 0; }
#endif
