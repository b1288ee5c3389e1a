//===- Mutator.cpp - Inputs that nobody would write -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"

#include <fstream>

using namespace linattn::fuzz;

/// Bytes and backslashes, as in C.
static std::string unescape(const std::string &text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      bytes += text[i];
      continue;
    }
    ++i;
    if (text[i] == 'x' && i + 2 < text.size()) {
      bytes += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      bytes += text[i];
    }
  }
  return bytes;
}

std::vector<std::string> Mutator::readWords(const std::string &path) {
  std::vector<std::string> words;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);)
    if (line.size() > 2 && line.front() == '"' && line.back() == '"')
      words.push_back(unescape(line.substr(1, line.size() - 2)));
  return words;
}

std::string Mutator::make(uint64_t seed, uint64_t number) const {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15ull + number);
  auto below = [&](size_t limit) -> size_t { return random() % limit; };
  auto pick = [&](std::initializer_list<size_t> values) {
    return values.begin()[below(values.size())];
  };
  std::string data = corpus[below(corpus.size())];
  if (words.empty()) {
    for (char &byte : data)
      byte = static_cast<char>(below(256));
    return data;
  }
  for (size_t left = pick({1, 1, 2, 3, 8}); left > 0; --left) {
    size_t at = below(data.size() + 1), size = pick({1, 2, 5, 20, 100});
    const std::string &word = words[below(words.size())];
    switch (below(7)) {
    case 0:
      if (at < data.size())
        data[at] = static_cast<char>(below(256));
      break;
    case 1:
      data.erase(at, size);
      break;
    case 6:
      data.resize(at);
      break;
    case 2:
      data.insert(at, data.substr(at, size));
      break;
    case 3:
      data.replace(at, size, data.substr(below(data.size() + 1), size));
      break;
    case 4:
      data.replace(at, pick({0, 0, size}), word);
      break;
    default:
      for (size_t copies = pick({1, 1, 2, 50, 3000}); copies > 0; --copies)
        data.insert(at, word);
    }
  }
  return data;
}
