//===- EnumSet.h - Sets of enumerators --------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ANALYSIS_ENUMSET_H
#define LINATTN_ANALYSIS_ENUMSET_H

#include <vector>

namespace linattn {

/// A set of enumerators below 32.
template <typename Enum>
class EnumSet {
public:
  constexpr EnumSet() = default;
  template <typename... Others>
  constexpr EnumSet(Enum first, Others... others)
      : bits((0u | ... | (1u << unsigned(others))) | 1u << unsigned(first)) {}

  void add(Enum element, bool isPresent = true) {
    bits |= unsigned(isPresent) << unsigned(element);
  }
  constexpr bool contains(Enum element) const {
    return bits >> unsigned(element) & 1;
  }
  constexpr bool intersects(EnumSet other) const { return bits & other.bits; }
  /// The elements in the order of the enumeration.
  std::vector<Enum> list() const {
    std::vector<Enum> elements;
    for (unsigned i = 0; bits >> i; ++i)
      if (contains(Enum(i)))
        elements.push_back(Enum(i));
    return elements;
  }

private:
  unsigned bits = 0;
};

} // namespace linattn

#endif // LINATTN_ANALYSIS_ENUMSET_H
