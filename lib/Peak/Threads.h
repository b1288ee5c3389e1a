//===- Threads.h - Rates of several threads ---------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_PEAK_THREADS_H
#define LINATTN_LIB_PEAK_THREADS_H

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace linattn::detail {

inline double getSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The GFLOP/s of `run(rounds)`, which returns its operations: the best of
/// several short runs, since interruptions only ever slow one down.
template <typename Run>
double measureBestGflops(Run run, int64_t rounds) {
  double best = 0;
  run(rounds); // Warm up: wide registers take a moment to get their clock.
  for (int repetition = 0; repetition < 8; ++repetition) {
    double start = getSeconds();
    double operations = run(rounds);
    best = std::max(best, operations / (getSeconds() - start));
  }
  return best / 1e9;
}

/// The sum of `measure(start)` over `threads` threads, this one among them.
/// Each calls `start()` when it is ready to be timed: all go on at once, so
/// that they share clocks and power as they would in use.
template <typename Measure>
double sumOverThreads(int threads, Measure measure) {
  std::vector<double> results(std::max(threads, 1));
  std::atomic<int> waiting{static_cast<int>(results.size())};
  auto start = [&] {
    --waiting;
    while (waiting > 0)
      std::this_thread::yield();
  };
  auto work = [&](size_t i) { results[i] = measure(start); };
  std::vector<std::thread> others;
  for (size_t i = 1; i < results.size(); ++i)
    others.emplace_back(work, i);
  work(0);
  for (std::thread &thread : others)
    thread.join();
  double total = 0;
  for (double result : results)
    total += result;
  return total;
}

} // namespace linattn::detail

#endif // LINATTN_LIB_PEAK_THREADS_H
