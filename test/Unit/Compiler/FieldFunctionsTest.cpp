//===- FieldFunctionsTest.cpp - Field arithmetic against 128 bits ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Field/FieldFunctions.h"
#include "linattn/Field/PrimeField.h"
#include "gtest/gtest.h"

#include <limits>

using namespace linattn;
using Element = PrimeField::Element;

namespace {

constexpr Element kNaN = PrimeField::kNaN, kInfinity = PrimeField::kInfinity,
                  kLow = PrimeField::kNegativeInfinity;

/// A representative in 0 … m − 1, in numbers that no product leaves.
uint64_t reduce(__int128 value, uint64_t modulus) {
  __int128 m = modulus;
  return static_cast<uint64_t>(((value % m) + m) % m);
}

class FieldFunctionsTest : public testing::TestWithParam<unsigned> {
protected:
  PrimeField field{GetParam()};
  uint64_t p = field.getPrime(), q = field.getOrder();

  template <typename Result = Element, typename... Arguments>
  Result call(llvm::StringRef name, Arguments... arguments) {
    std::string symbol = getFieldSymbol(GetParam(), name);
    for (const FieldFunction &function : getFieldFunctions())
      if (function.symbol == symbol)
        return reinterpret_cast<Result (*)(Arguments...)>(function.address)(
            arguments...);
    ADD_FAILURE() << "expected a function " << symbol;
    return Result();
  }

  /// Applies a polynomial to both residues.
  template <typename Formula>
  Element onResidues(Formula formula, Element x, Element y = 0) {
    auto first = [](Element z) { return __int128(PrimeField::getFirst(z)); };
    auto second = [](Element z) { return __int128(PrimeField::getSecond(z)); };
    return PrimeField::pack(reduce(formula(first(x), first(y)), p),
                            reduce(formula(second(x), second(y)), q));
  }

  /// Random elements, and those at the ends of both residues.
  std::vector<Element> makeElements() {
    std::vector<Element> elements = {
        0, field.embedInteger(1), field.embedInteger(-1),
        PrimeField::pack(p - 1, 1), PrimeField::pack(1, q - 1)};
    for (uint64_t i = 0; i < 20; ++i)
      elements.push_back(field.makeRandom(11, 0, i));
    return elements;
  }
};

TEST_P(FieldFunctionsTest, SumsAndProducts) {
  auto sum = [](__int128 x, __int128 y) { return x + y; };
  auto difference = [](__int128 x, __int128 y) { return x - y; };
  auto product = [](__int128 x, __int128 y) { return x * y; };
  auto negative = [](__int128 x, __int128) { return -x; };
  for (Element x : makeElements()) {
    EXPECT_EQ(call("neg", x), onResidues(negative, x));
    for (Element y : makeElements()) {
      EXPECT_EQ(call("add", x, y), onResidues(sum, x, y));
      EXPECT_EQ(call("sub", x, y), onResidues(difference, x, y));
      EXPECT_EQ(call("mul", x, y), onResidues(product, x, y));
    }
  }
}

TEST_P(FieldFunctionsTest, Quotients) {
  auto product = [](__int128 x, __int128 y) { return x * y; };
  for (Element x : makeElements()) {
    // Both residues have an inverse, or the quotient is undefined.
    if (PrimeField::getFirst(x) == 0 || PrimeField::getSecond(x) == 0)
      continue;
    EXPECT_EQ(onResidues(product, call("inv", x), x), field.embedInteger(1));
    for (Element y : makeElements())
      EXPECT_EQ(onResidues(product, call("div", y, x), x), y);
  }
}

TEST_P(FieldFunctionsTest, Powers) {
  auto product = [](__int128 x, __int128 y) { return x * y; };
  Element x = field.makeRandom(11, 1, 0), inverse = call("inv", x);
  Element up = field.embedInteger(1), down = up;
  for (int64_t exponent = 0; exponent < 20; ++exponent) {
    EXPECT_EQ(call("pow_int", x, exponent), up);
    EXPECT_EQ(call("pow_int", x, -exponent), down);
    up = onResidues(product, up, x);
    down = onResidues(product, down, inverse);
  }
  EXPECT_EQ(call("pow_int", kLow, int64_t(3)), kLow);
  EXPECT_EQ(call("pow_int", kLow, int64_t(2)), kInfinity);
  EXPECT_EQ(call("pow_int", Element(0), int64_t(-1)), kNaN);
}

TEST_P(FieldFunctionsTest, Integers) {
  constexpr int64_t limits[] = {std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max()};
  for (int64_t x : limits)
    EXPECT_EQ(call("from_int", x),
              PrimeField::pack(reduce(x, p), reduce(x, q)));
  for (int64_t x :
       {int64_t(0), int64_t(7), int64_t(-7), int64_t(q), -int64_t(q)})
    EXPECT_EQ(call<int64_t>("to_int", call("from_int", x)), x);
  // Of another element, an integer without sign, the same every time.
  Element other = PrimeField::pack(3, 4);
  EXPECT_EQ(call<int64_t>("to_int", other), call<int64_t>("to_int", other));
  EXPECT_NE(call<int64_t>("to_int", other), 3);
}

TEST_P(FieldFunctionsTest, Exponential) {
  EXPECT_EQ(call("exp", Element(0)), field.embedInteger(1));
  EXPECT_EQ(call("exp", kLow), 0);
  EXPECT_EQ(call("exp", kInfinity), kInfinity);
  EXPECT_EQ(call("log", Element(0)), kLow);
  for (uint64_t i = 0; i < 5; ++i) {
    Element x = field.makeRandom(11, 2, i), y = field.makeRandom(11, 3, i);
    Element e = call("exp", x);
    __int128 power = 1;
    for (unsigned bit = 64; bit-- > 0;) {
      power = power * power % p;
      if (PrimeField::getSecond(x) >> bit & 1)
        power = power * field.getBase() % p;
    }
    EXPECT_EQ(PrimeField::getFirst(e), static_cast<uint64_t>(power));
    EXPECT_TRUE(PrimeField::areEqual(call("exp", call("add", x, y)),
                                     call("mul", e, call("exp", y))));
  }
}

TEST_P(FieldFunctionsTest, Order) {
  // As integers from −q to q.
  auto rank = [&](Element x) {
    if (x < 0)
      return x == kLow ? std::numeric_limits<int64_t>::min()
                       : std::numeric_limits<int64_t>::max();
    auto first = static_cast<int64_t>(PrimeField::getFirst(x));
    return first > int64_t(q) ? first - int64_t(p) : first;
  };
  std::vector<Element> elements = makeElements();
  elements.insert(elements.end(), {kLow, kInfinity});
  for (Element x : elements)
    for (Element y : elements) {
      int64_t left = rank(x), right = rank(y);
      EXPECT_EQ(call<bool>("cmp", x, y, int64_t(kFieldLess)), left < right);
      EXPECT_EQ(call<bool>("cmp", x, y, int64_t(kFieldGreater | kFieldEqual)),
                left >= right);
      EXPECT_FALSE(call<bool>("cmp", x, y, int64_t(kFieldUnordered)));
      EXPECT_EQ(rank(call("max", x, y)), std::max(left, right));
      EXPECT_EQ(rank(call("min", x, y)), std::min(left, right));
    }
  for (Element x : makeElements())
    EXPECT_EQ(rank(call("abs", x)), std::abs(rank(x)));
}

TEST_P(FieldFunctionsTest, InfinitiesAndNaN) {
  Element x = field.makeRandom(11, 4, 0);
  EXPECT_EQ(call("add", x, kLow), kLow);
  EXPECT_EQ(call("add", kInfinity, kInfinity), kInfinity);
  EXPECT_EQ(call("add", kInfinity, kLow), kNaN);
  EXPECT_EQ(call("neg", kLow), kInfinity);
  EXPECT_EQ(call("mul", x, kLow), kLow);
  EXPECT_EQ(call("mul", kLow, kLow), kInfinity);
  EXPECT_EQ(call("mul", kLow, kInfinity), kLow);
  EXPECT_EQ(call("mul", Element(0), kInfinity), kNaN);
  EXPECT_EQ(call("inv", kLow), 0);
  EXPECT_EQ(call("div", x, Element(0)), kNaN);
  for (const char *name : {"neg", "inv", "exp", "log", "abs"})
    EXPECT_EQ(call(name, kNaN), kNaN) << name;
  for (const char *name : {"add", "sub", "mul", "div", "max", "min"}) {
    EXPECT_EQ(call(name, kNaN, kLow), kNaN) << name;
    EXPECT_EQ(call(name, x, kNaN), kNaN) << name;
  }
  EXPECT_TRUE(call<bool>("cmp", x, kNaN, int64_t(kFieldUnordered)));
  EXPECT_EQ(call("random", kNaN, int64_t(5)), kNaN);
  EXPECT_EQ(call("random2", x, kNaN, int64_t(5)), kNaN);
}

TEST_P(FieldFunctionsTest, RandomFunctions) {
  Element x = field.makeRandom(11, 5, 0), y = field.makeRandom(11, 5, 1);
  EXPECT_NE(call("random", x, int64_t(5)), call("random", x, int64_t(6)));
  EXPECT_NE(call("random", x, int64_t(5)), call("random", y, int64_t(5)));
  EXPECT_NE(call("random", kLow, int64_t(5)),
            call("random", kInfinity, int64_t(5)));
  EXPECT_NE(call("random2", x, y, int64_t(5)),
            call("random2", y, x, int64_t(5)));
  // They see the first residue.
  Element twin = PrimeField::pack(PrimeField::getFirst(x), 1);
  EXPECT_EQ(call("random2", x, y, int64_t(5)),
            call("random2", twin, y, int64_t(5)));
}

INSTANTIATE_TEST_SUITE_P(BothFields, FieldFunctionsTest,
                         testing::Values(0u, 1u));

} // namespace
