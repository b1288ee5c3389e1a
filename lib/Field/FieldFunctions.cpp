//===- FieldFunctions.cpp - Field arithmetic for compiled code ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Field/FieldFunctions.h"
#include "linattn/Field/PrimeField.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

using namespace linattn;
using namespace linattn::detail;
using Element = PrimeField::Element;

namespace {

/// Seeds of the random functions that the field itself needs.
enum RandomFunction : int64_t { kOfExp = 1, kOfLog = 2, kOfInteger = 3 };

/// One instance per field: dividing by a constant is a multiplication.
template <unsigned index>
struct Functions {
  static constexpr PrimeField kField{index};
  static constexpr uint64_t p = kField.getPrime(), q = kField.getOrder();
  static constexpr Element kNaN = PrimeField::kNaN,
                           kInfinity = PrimeField::kInfinity,
                           kNegativeInfinity = PrimeField::kNegativeInfinity;

  static constexpr uint64_t getFirst(Element x) {
    return PrimeField::getFirst(x);
  }
  static constexpr uint64_t getSecond(Element x) {
    return PrimeField::getSecond(x);
  }

  static Element add(Element x, Element y) {
    if (x >= 0 && y >= 0)
      return PrimeField::pack((getFirst(x) + getFirst(y)) % p,
                              (getSecond(x) + getSecond(y)) % q);
    // Infinities absorb; two different ones have no sum.
    if (x == kNaN || y == kNaN)
      return kNaN;
    if (x >= 0)
      return y;
    if (y >= 0)
      return x;
    return x == y ? x : kNaN;
  }

  static Element neg(Element x) {
    if (x >= 0)
      return PrimeField::pack((p - getFirst(x)) % p, (q - getSecond(x)) % q);
    if (x == kNaN)
      return kNaN;
    return x == kInfinity ? kNegativeInfinity : kInfinity;
  }

  static Element sub(Element x, Element y) { return add(x, neg(y)); }

  static Element mul(Element x, Element y) {
    if (x >= 0 && y >= 0)
      return kField.multiply(x, y);
    // A field has no signs: a factor scales an infinity and keeps it.
    if (x == kNaN || y == kNaN || getFirst(x) == 0 || getFirst(y) == 0)
      return kNaN;
    if (x >= 0)
      return y;
    if (y >= 0)
      return x;
    return x == y ? kInfinity : kNegativeInfinity;
  }

  /// 1/x; 1/±∞ is 0, 1/0 is NaN.
  static Element inv(Element x) {
    if (x < 0)
      return x == kNaN ? kNaN : 0;
    return getFirst(x) == 0 ? kNaN : kField.invert(x);
  }

  static Element div(Element x, Element y) { return mul(x, inv(y)); }

  /// A function of the first residues, or of which infinity it is.
  static Element random2(Element x, Element y, int64_t function) {
    if (x == kNaN || y == kNaN)
      return kNaN;
    auto getKey = [](Element z) {
      return z >= 0 ? getFirst(z) : static_cast<uint64_t>(z);
    };
    uint64_t state = mix(static_cast<uint64_t>(function));
    state = mix(mix(state ^ getKey(x)) ^ getKey(y));
    return PrimeField::pack(state % p, mix(state) % q);
  }

  static Element random(Element x, int64_t function) {
    return random2(x, 0, function);
  }

  /// g^x modulo p; e^(−∞) = 0 and e^0 = 1.
  static Element exp(Element x) {
    if (x < 0)
      return x == kNegativeInfinity ? 0 : x;
    if (getSecond(x) == 0)
      return PrimeField::pack(1, 1);
    uint64_t first = power(kField.getBase(), getSecond(x), p);
    return PrimeField::pack(
        first, getSecond(random(static_cast<Element>(first), kOfExp)));
  }

  /// A random function but for log 0 = −∞, the gate that forgets.
  static Element log(Element x) {
    return getFirst(x) == 0 ? kNegativeInfinity : random(x, kOfLog);
  }

  /// The place in the order of residues from −p/2 to p/2, −∞ below, ∞ above.
  static int64_t getRank(Element x) {
    if (x >= 0)
      return static_cast<int64_t>((getFirst(x) + q) % p);
    return x == kNegativeInfinity ? -1 : static_cast<int64_t>(p);
  }

  static FieldOutcome compare(Element x, Element y) {
    if (x == kNaN || y == kNaN)
      return kFieldUnordered;
    int64_t left = getRank(x), right = getRank(y);
    if (left == right)
      return kFieldEqual;
    return left < right ? kFieldLess : kFieldGreater;
  }

  static bool cmp(Element x, Element y, int64_t outcomes) {
    return (compare(x, y) & outcomes) != 0;
  }

  static Element max(Element x, Element y) {
    FieldOutcome outcome = compare(x, y);
    if (outcome == kFieldUnordered)
      return kNaN;
    return outcome == kFieldGreater ? x : y;
  }

  static Element min(Element x, Element y) {
    FieldOutcome outcome = compare(x, y);
    if (outcome == kFieldUnordered)
      return kNaN;
    return outcome == kFieldLess ? x : y;
  }

  static Element abs(Element x) { return max(x, neg(x)); }

  static Element fromInt(int64_t x) { return kField.embedInteger(x); }

  /// The integer that maps to this element; any other element gives a random
  /// one.
  static int64_t toInt(Element x) {
    auto integer = static_cast<int64_t>(getFirst(x));
    if (getFirst(x) > q)
      integer -= static_cast<int64_t>(p);
    if (fromInt(integer) == x)
      return integer;
    return static_cast<int64_t>(getFirst(random(x, kOfInteger)));
  }

  static Element powInt(Element x, int64_t exponent) {
    Element square = exponent < 0 ? inv(x) : x, result = PrimeField::pack(1, 1);
    auto count = static_cast<uint64_t>(exponent);
    for (count = exponent < 0 ? -count : count; count != 0; count >>= 1) {
      if (count & 1)
        result = mul(result, square);
      square = mul(square, square);
    }
    return result;
  }
};

} // namespace

std::string linattn::getFieldSymbol(unsigned field, llvm::StringRef function) {
  return (kFieldPrefix + llvm::Twine(field) + "_" + function).str();
}

template <unsigned index>
static void append(llvm::SmallVectorImpl<FieldFunction> &functions) {
  using F = Functions<index>;
  auto add = [&](llvm::StringRef name, auto *function) {
    functions.push_back(
        {getFieldSymbol(index, name), reinterpret_cast<void *>(function)});
  };
  add("add", &F::add);
  add("sub", &F::sub);
  add("mul", &F::mul);
  add("div", &F::div);
  add("neg", &F::neg);
  add("inv", &F::inv);
  add("exp", &F::exp);
  add("log", &F::log);
  add("abs", &F::abs);
  add("max", &F::max);
  add("min", &F::min);
  add("cmp", &F::cmp);
  add("from_int", &F::fromInt);
  add("to_int", &F::toInt);
  add("pow_int", &F::powInt);
  add("random", &F::random);
  add("random2", &F::random2);
}

llvm::ArrayRef<FieldFunction> linattn::getFieldFunctions() {
  static_assert(PrimeField::kNumFields == 2);
  static const auto functions = [] {
    llvm::SmallVector<FieldFunction, 0> functions;
    append<0>(functions);
    append<1>(functions);
    return functions;
  }();
  return functions;
}
