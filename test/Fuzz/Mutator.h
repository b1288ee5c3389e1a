//===- Mutator.h - Inputs that nobody would write ---------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_FUZZ_MUTATOR_H
#define LINATTN_TEST_FUZZ_MUTATOR_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace linattn::fuzz {

/// Makes inputs of a corpus; the same from a seed and a number everywhere.
class Mutator {
public:
  /// `words` are of the format. Without any, inputs are any bytes, as many as
  /// those of the corpus.
  Mutator(std::vector<std::string> corpus, std::vector<std::string> words)
      : corpus(std::move(corpus)), words(std::move(words)) {}

  /// The words of a file as libFuzzer reads it: quoted, one on a line.
  static std::vector<std::string> readWords(const std::string &path);

  std::string make(uint64_t seed, uint64_t number) const;

private:
  std::vector<std::string> corpus, words;
};

} // namespace linattn::fuzz

#endif // LINATTN_TEST_FUZZ_MUTATOR_H
