//===- PrimeFieldTest.cpp - Numbers without rounding ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The laws that make comparison exact, of constants here and of the compiled
// arithmetic by functions of scalars.
//
//===----------------------------------------------------------------------===//

#include "linattn/Field/PrimeField.h"
#include "linattn/Compiler/Compiler.h"
#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <set>

using namespace linattn;
using Element = PrimeField::Element;

namespace {

bool isPrime(uint64_t n) {
  for (uint64_t d = 2; d * d <= n; ++d)
    if (n % d == 0)
      return false;
  return n > 1;
}

uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base = base * base % modulus)
    if (exponent & 1)
      result = result * base % modulus;
  return result;
}

class PrimeFieldTest : public testing::TestWithParam<unsigned> {
protected:
  PrimeField field{GetParam()};
  uint64_t p = field.getPrime(), q = field.getOrder();

  Element multiply(Element x, Element y) const {
    return PrimeField::pack(
        PrimeField::getFirst(x) * PrimeField::getFirst(y) % p,
        PrimeField::getSecond(x) * PrimeField::getSecond(y) % q);
  }

  /// Compiles `body` as the value %r of x and y, and runs it.
  Element run(const std::string &body, Element x, Element y = 0) {
    CompilerOptions options;
    options.prime = GetParam();
    options.diskCache = false;
    auto kernel = Compiler(options).compile(
        "func.func @f(%x: f32, %y: f32) -> tensor<f32> {\n" + body +
        "\n %boxed = tensor.from_elements %r : tensor<f32>\n"
        " return %boxed : tensor<f32>\n}");
    if (!kernel) {
      ADD_FAILURE() << llvm::toString(kernel.takeError());
      return 0;
    }
    Element result = 0;
    auto view = [](Element &element) {
      return BufferView(&element, DType::I64, {});
    };
    if (llvm::Error error = kernel->run({view(x), view(y)}, {view(result)}))
      ADD_FAILURE() << llvm::toString(std::move(error));
    return result;
  }

  Element random(uint64_t index) { return field.makeRandom(5, 0, index); }
};

TEST_P(PrimeFieldTest, OrderDividesThePrimesPredecessor) {
  EXPECT_TRUE(isPrime(p));
  EXPECT_TRUE(isPrime(q));
  EXPECT_EQ(p - 1, 2 * q);
  EXPECT_NE(field.getBase(), 1u);
  EXPECT_EQ(power(field.getBase(), q, p), 1u);
}

TEST_P(PrimeFieldTest, ConstantsAreFractions) {
  Element one = field.embedInteger(1);
  EXPECT_EQ(field.embed(1.0), one);
  EXPECT_EQ(field.embed(0.0), 0);
  EXPECT_EQ(field.embed(-0.0), 0);
  EXPECT_EQ(field.embed(-3.0), field.embedInteger(-3));
  EXPECT_EQ(field.embed(16777217.0, 24), field.embedInteger(16777217));
  EXPECT_EQ(multiply(field.embed(0.375), field.embedInteger(8)),
            field.embedInteger(3));
  // The same fraction in every precision.
  for (double value : {0.1, 1e-6, 1e-4, 1.0 / 3, -2.0 / 7}) {
    auto inverse = static_cast<int64_t>(std::llround(14 * 3 * 1e6 * value));
    EXPECT_EQ(multiply(field.embed(value), field.embedInteger(42000000)),
              field.embedInteger(inverse))
        << value;
    EXPECT_EQ(field.embed(value), field.embed(static_cast<float>(value), 24))
        << value;
  }
  // 1/√2 is none, but has its element, and its neighbours have others.
  float root = std::sqrt(0.5f);
  EXPECT_EQ(field.embed(root, 24), field.embed(root, 24));
  EXPECT_NE(field.embed(root, 24), field.embed(std::nextafter(root, 1.f), 24));
  EXPECT_EQ(multiply(field.embed(1e100), field.embed(std::ldexp(1.0, -60))),
            field.embed(std::ldexp(1e100, -60)));
  EXPECT_EQ(multiply(field.embed(M_LN2), field.embed(M_LOG2E)), one);
  EXPECT_EQ(field.embed(static_cast<float>(M_LOG2E), 24), field.embed(M_LOG2E));
}

TEST_P(PrimeFieldTest, NeighboursDiffer) {
  std::set<Element> seen;
  float value = 0.7f;
  for (int i = 0; i < 1000; ++i, value = std::nextafter(value, 1.f))
    EXPECT_TRUE(seen.insert(field.embed(value, 24)).second) << value;
}

TEST_P(PrimeFieldTest, LowestNumbersAreInfinite) {
  double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(field.embed(infinity), PrimeField::kInfinity);
  EXPECT_EQ(field.embed(-infinity), PrimeField::kNegativeInfinity);
  EXPECT_EQ(field.embed(std::numeric_limits<float>::lowest(), 24),
            PrimeField::kNegativeInfinity);
  EXPECT_EQ(field.embed(-65504, 11), PrimeField::kNegativeInfinity);
  EXPECT_EQ(field.embed(std::numeric_limits<double>::lowest()),
            PrimeField::kNegativeInfinity);
  EXPECT_GE(field.embed(-65504, 24), 0);
  EXPECT_EQ(field.embed(std::nan("")), PrimeField::kNaN);
  EXPECT_FALSE(PrimeField::areEqual(PrimeField::kNaN, PrimeField::kNaN));
  EXPECT_TRUE(
      PrimeField::areEqual(PrimeField::kInfinity, PrimeField::kInfinity));
  EXPECT_FALSE(PrimeField::areEqual(PrimeField::kInfinity, 5));
}

TEST_P(PrimeFieldTest, RandomElementsAreResidues) {
  std::set<Element> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    Element x = random(i);
    EXPECT_LT(PrimeField::getFirst(x), p);
    EXPECT_LT(PrimeField::getSecond(x), q);
    EXPECT_TRUE(seen.insert(x).second);
  }
  EXPECT_NE(field.makeRandom(0, 1, 2), field.makeRandom(0, 2, 1));
}

TEST_P(PrimeFieldTest, CompiledArithmetic) {
  Element x = random(1), y = random(2);
  uint64_t x0 = PrimeField::getFirst(x), x1 = PrimeField::getSecond(x);
  uint64_t y0 = PrimeField::getFirst(y), y1 = PrimeField::getSecond(y);
  EXPECT_EQ(run("%r = arith.addf %x, %y : f32", x, y),
            PrimeField::pack((x0 + y0) % p, (x1 + y1) % q));
  EXPECT_EQ(run("%r = arith.subf %x, %y : f32", x, y),
            PrimeField::pack((x0 + p - y0) % p, (x1 + q - y1) % q));
  EXPECT_EQ(run("%r = arith.mulf %x, %y : f32", x, y), multiply(x, y));
  EXPECT_EQ(
      run("%s = arith.divf %x, %y : f32\n%r = arith.mulf %s, %y : f32", x, y),
      x);
  EXPECT_EQ(run("%n = arith.negf %x : f32\n%r = arith.addf %n, %x : f32", x),
            0);
  EXPECT_EQ(
      run("%r = math.fma %x, %y, %y : f32", x, y),
      run("%p = arith.mulf %y, %x : f32\n%r = arith.addf %y, %p : f32", x, y));
  EXPECT_EQ(
      run("%n = arith.constant -3 : i32\n%r = arith.sitofp %n : i32 to f32", x),
      field.embedInteger(-3));
  EXPECT_EQ(
      run("%c = arith.constant 3.0 : f32\n%r = math.powf %x, %c : f32", x),
      multiply(x, multiply(x, x)));
}

TEST_P(PrimeFieldTest, CompiledIntegers) {
  std::string there = "%n = arith.fptosi %x : f32 to i32\n"
                      "%r = arith.sitofp %n : i32 to f32";
  for (int64_t value : {0, 1, -1, 7, -300, 1 << 20})
    EXPECT_EQ(run(there, field.embedInteger(value)), field.embedInteger(value));
  // Others are none: 1/2, and one that is an integer modulo p only.
  std::string wide = "%n = arith.fptosi %x : f32 to i64\n"
                     "%r = arith.sitofp %n : i64 to f32";
  for (Element other : {field.embed(0.5), random(9), PrimeField::pack(3, 4)}) {
    EXPECT_NE(run(wide, other), other);
    EXPECT_EQ(run(wide, other), run(wide, other));
  }
  EXPECT_NE(run(wide, random(9)), run(wide, random(10)));
}

TEST_P(PrimeFieldTest, CompiledExponential) {
  Element x = random(3), y = random(4);
  Element e = run("%r = math.exp %x : f32", x);
  EXPECT_EQ(PrimeField::getFirst(e),
            power(field.getBase(), PrimeField::getSecond(x), p));
  auto ofSum =
      run("%s = arith.addf %x, %y : f32\n%r = math.exp %s : f32", x, y);
  auto product = run("%e = math.exp %x : f32\n%f = math.exp %y : f32\n"
                     "%r = arith.mulf %e, %f : f32",
                     x, y);
  EXPECT_TRUE(PrimeField::areEqual(ofSum, product));
  EXPECT_EQ(run("%r = math.exp %x : f32", 0), field.embedInteger(1));
  EXPECT_EQ(run("%r = math.exp %x : f32", PrimeField::kNegativeInfinity), 0);
  EXPECT_EQ(run("%c = arith.constant 1.44269504 : f32\n"
                "%s = arith.mulf %x, %c : f32\n%r = math.exp2 %s : f32",
                x),
            e);
  // log 0 is −∞; other values have no logarithm in a field.
  EXPECT_EQ(run("%r = math.log %x : f32", 0), PrimeField::kNegativeInfinity);
  EXPECT_NE(run("%r = math.log %x : f32", e), x);
}

TEST_P(PrimeFieldTest, CompiledPredicates) {
  Element one = field.embedInteger(1), two = field.embedInteger(2);
  struct Case {
    const char *name;
    bool less, equal, greater, unordered;
  };
  for (Case c : {Case{"oeq", false, true, false, false},
                 {"ogt", false, false, true, false},
                 {"oge", false, true, true, false},
                 {"olt", true, false, false, false},
                 {"ole", true, true, false, false},
                 {"one", true, false, true, false},
                 {"ord", true, true, true, false},
                 {"ueq", false, true, false, true},
                 {"ugt", false, false, true, true},
                 {"uge", false, true, true, true},
                 {"ult", true, false, false, true},
                 {"ule", true, true, false, true},
                 {"une", true, false, true, true},
                 {"uno", false, false, false, true}}) {
    std::string body = std::string("%c = arith.cmpf ") + c.name +
                       ", %x, %y : f32\n%n = arith.extui %c : i1 to i32\n"
                       "%r = arith.uitofp %n : i32 to f32";
    auto holds = [&](Element x, Element y) { return run(body, x, y) == one; };
    EXPECT_EQ(holds(one, two), c.less) << c.name;
    EXPECT_EQ(holds(two, two), c.equal) << c.name;
    EXPECT_EQ(holds(two, one), c.greater) << c.name;
    EXPECT_EQ(holds(one, PrimeField::kNaN), c.unordered) << c.name;
  }
}

TEST_P(PrimeFieldTest, CompiledFunctions) {
  Element x = random(5), y = random(6);
  Element tanh = run("%r = math.tanh %x : f32", x);
  EXPECT_EQ(tanh, run("%r = math.tanh %x : f32", x));
  EXPECT_NE(tanh, run("%r = math.tanh %x : f32", y));
  EXPECT_NE(tanh, run("%r = math.sin %x : f32", x));
  // Functions see the first residue: the second one of e^x obeys no law.
  EXPECT_EQ(tanh, run("%r = math.tanh %x : f32", x ^ (int64_t(1) << 33)));
  EXPECT_EQ(run("%s = math.sqrt %x : f32\n%i = math.rsqrt %x : f32\n"
                "%r = arith.mulf %s, %i : f32",
                x),
            field.embedInteger(1));
  EXPECT_EQ(run("%s = math.log1p %x : f32\n%o = arith.constant 1.0 : f32\n"
                "%t = arith.addf %x, %o : f32\n%l = math.log %t : f32\n"
                "%r = arith.subf %s, %l : f32",
                x),
            0);
}

TEST_P(PrimeFieldTest, CompiledOrder) {
  Element x = random(7), y = random(8), low = PrimeField::kNegativeInfinity;
  std::string max = "%r = arith.maximumf %x, %y : f32";
  std::string min = "%r = arith.minimumf %x, %y : f32";
  EXPECT_EQ(run(max, x, y), run(max, y, x));
  EXPECT_EQ(run(max, x, low), x);
  EXPECT_EQ(run(min, x, PrimeField::kInfinity), x);
  EXPECT_NE(run(max, x, y), run(min, x, y));
  EXPECT_EQ(run(max, field.embedInteger(-2), field.embedInteger(3)),
            field.embedInteger(3));
  EXPECT_EQ(run("%c = arith.cmpf ogt, %x, %y : f32\n"
                "%r = arith.select %c, %x, %y : f32",
                x, y),
            run(max, x, y));
  EXPECT_EQ(run("%r = math.absf %x : f32", field.embedInteger(-4)),
            field.embedInteger(4));
  EXPECT_EQ(run(max, x, PrimeField::kNaN), PrimeField::kNaN);
}

TEST_P(PrimeFieldTest, CompiledSpecials) {
  Element x = random(9), low = PrimeField::kNegativeInfinity;
  std::string add = "%r = arith.addf %x, %y : f32";
  std::string sub = "%r = arith.subf %x, %y : f32";
  std::string mul = "%r = arith.mulf %x, %y : f32";
  std::string div = "%r = arith.divf %x, %y : f32";
  EXPECT_EQ(run(add, x, low), low);
  EXPECT_EQ(run(sub, x, low), PrimeField::kInfinity);
  EXPECT_EQ(run(sub, low, low), PrimeField::kNaN);
  EXPECT_EQ(run(mul, x, low), low);
  EXPECT_EQ(run(mul, 0, low), PrimeField::kNaN);
  EXPECT_EQ(run(div, x, 0), PrimeField::kNaN);
  EXPECT_EQ(run(div, x, PrimeField::kInfinity), 0);
  EXPECT_EQ(run(add, x, PrimeField::kNaN), PrimeField::kNaN);
}

INSTANTIATE_TEST_SUITE_P(BothFields, PrimeFieldTest, testing::Values(0u, 1u));

} // namespace
