//===- Targets.h - Targets of fuzzing ---------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target takes any bytes. A crash, a call of `report` or an input that never
// ends is a finding; an error that says why is an answer.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_FUZZ_TARGETS_H
#define LINATTN_TEST_FUZZ_TARGETS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>
#include <vector>

namespace linattn::fuzz {

struct FuzzTarget {
  llvm::StringLiteral name;
  /// Whether the input was taken for what it should be.
  bool (*run)(llvm::StringRef input);
  /// Inputs in the tests, by what one costs.
  unsigned count;
};

/// Files of NumPy: the reader of linattn-run.
bool runNpy(llvm::StringRef input);
/// Manifests of bundles for a GPU: the reader and the launches of the runner,
/// on a driver without a GPU.
bool runBundle(llvm::StringRef input);
/// Entries of the cache with a checksum that is right.
bool runCache(llvm::StringRef input);
/// Text of modules: the parser, the verifiers, and the pipelines without code
/// generation.
bool runModule(llvm::StringRef input);
/// Scans made of the bytes, most of them legal: as above.
bool runScan(llvm::StringRef input);
/// Operators of ONNX with attributes and types made of the bytes: as above.
bool runOnnx(llvm::StringRef input);

inline constexpr FuzzTarget kTargets[] = {
    {"npy", runNpy, 20000},    {"bundle", runBundle, 1000},
    {"cache", runCache, 2000}, {"module", runModule, 150},
    {"scan", runScan, 40},     {"onnx", runOnnx, 60}};

/// A finding: prints it and ends the process.
[[noreturn]] void report(const llvm::Twine &what);

/// Makes choices of bytes; of zeros where they end.
class Choices {
public:
  explicit Choices(llvm::StringRef bytes) : rest(bytes) {}

  uint8_t byte() {
    if (rest.empty())
      return 0;
    uint8_t value = rest.front();
    rest = rest.drop_front();
    return value;
  }
  bool flag() { return byte() % 2 == 1; }
  /// Once in `n`.
  bool rarely(unsigned n) { return byte() % n == n - 1; }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[byte() % values.size()];
  }
  llvm::StringRef pick(std::initializer_list<const char *> values) {
    return values.begin()[byte() % values.size()];
  }

private:
  llvm::StringRef rest;
};

/// Parses a module, prints and parses it again, and lowers it by the pipeline
/// that `choices` name. Returns whether it was one.
bool lowerText(llvm::StringRef text, Choices &choices);

} // namespace linattn::fuzz

#endif // LINATTN_TEST_FUZZ_TARGETS_H
