//===- Sample.h - Cases that the seed draws ---------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_TEST_UNIT_SAMPLE_H
#define LINATTN_TEST_UNIT_SAMPLE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/xxhash.h"

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace linattn::test {

/// Whether LINATTN_TEST_SEED draws this case, as it does one of three. Under
/// LINATTN_MATRIX=all every case is drawn.
inline bool isDrawn(const std::string &name) {
  auto variable = [](const char *variable, const char *otherwise) {
    const char *value = std::getenv(variable);
    return std::string(value ? value : otherwise);
  };
  static const bool all = variable("LINATTN_MATRIX", "") == "all";
  static const std::string seed = [&] {
    std::string text = variable("LINATTN_TEST_SEED", "0");
    return text == "random" ? std::to_string(std::random_device()()) : text;
  }();
  return all || llvm::xxh3_64bits(seed + " " + name) % 3 == 0;
}

/// The first case, and those of the others that are drawn by their names.
template <typename CaseT>
std::vector<CaseT> draw(const std::vector<CaseT> &cases) {
  std::vector<CaseT> drawn;
  for (const CaseT &c : cases)
    if (drawn.empty() || isDrawn(c.name))
      drawn.push_back(c);
  return drawn;
}

} // namespace linattn::test

#endif // LINATTN_TEST_UNIT_SAMPLE_H
