//===- MemoryPeak.cpp - The machine's memory ceilings ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Peak/MemoryPeak.h"
#include "Threads.h"
#include <array>
#include <cstring>

using namespace linattn;

namespace {

#if defined(__x86_64__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
void updateInPlace(float *data, size_t count) {
  for (size_t i = 0; i < count; ++i)
    data[i] = data[i] * 0.5f + 1.0f;
}

void passOver(MemoryPass pass, std::vector<float> &data) {
  size_t half = data.size() / 2;
  if (pass == MemoryPass::Copy)
    std::memcpy(data.data() + half, data.data(), half * sizeof(float));
  else
    updateInPlace(data.data(), data.size());
  // The next pass must not be merged with this one.
  __asm__ volatile("" : : "r"(data.data()) : "memory");
}

/// Bytes per second of one thread in one pass, repeated until it can be timed.
double measureOneThread(MemoryPass pass, PassTime time,
                        std::vector<float> &data) {
  double bytes = sizeof(float) * static_cast<double>(data.size());
  // A copy reads one half and writes the other; an update does both to all.
  double moved = pass == MemoryPass::Copy ? bytes : 2 * bytes;
  int64_t repetitions =
      std::max<int64_t>(1, static_cast<int64_t>(2e6 / std::max(bytes, 1.0)));
  std::array<double, 12> rates;
  passOver(pass, data);
  for (double &rate : rates) {
    double start = linattn::detail::getSeconds();
    for (int64_t i = 0; i < repetitions; ++i)
      passOver(pass, data);
    double seconds = (linattn::detail::getSeconds() - start) /
                     static_cast<double>(repetitions);
    rate = moved / seconds;
  }
  std::sort(rates.begin(), rates.end());
  return time == PassTime::Best ? rates.back() : rates[rates.size() / 2];
}

} // namespace

double linattn::measureMemoryGbytes(MemoryPass pass, int64_t bytes, int threads,
                                    PassTime time) {
  size_t used = std::max(threads, 1);
  size_t count =
      std::max<size_t>(32, static_cast<size_t>(bytes) / sizeof(float) / used);
  return linattn::detail::sumOverThreads(threads,
                                         [&](auto start) {
                                           std::vector<float> data(count, 1.0f);
                                           start();
                                           return measureOneThread(pass, time,
                                                                   data);
                                         }) /
         1e9;
}
