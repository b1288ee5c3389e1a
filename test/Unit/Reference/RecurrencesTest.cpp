//===- RecurrencesTest.cpp - The small recurrences by other formulas ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Reference/Recurrences.h"
#include "ReferenceTestUtils.h"

#include <cmath>
#include <complex>

using namespace linattn::reference;
using namespace linattn::reference::test;

using Complex = std::complex<double>;

// A fixed S4D layer is a convolution: y_t = Σ_j Re(Σ_n c Δ b e^{Δ a (t-j)})
// u_j.
TEST(SelectiveScan, IsAConvolutionWhenNothingDependsOnTheToken) {
  constexpr int64_t T = 9, C = 2, N = 3;
  SelectiveScanOperands x{randomArray({1, T, C}, 1),
                          randomArray({C}, 2, 0.01, 0.2),
                          randomArray({C, N}, 3, -1, 0), randomArray({C, N}, 4),
                          randomArray({C, N}, 5)};
  x.aImag = randomArray({C, N}, 6, -9, 9);
  x.cImag = randomArray({C, N}, 7);
  SelectiveScanResult result = take(selectiveScan(x, {}));
  for (int64_t t = 0; t < T; ++t)
    for (int64_t c = 0; c < C; ++c) {
      double y = 0.0;
      for (int64_t j = 0; j <= t; ++j)
        for (int64_t n = 0; n < N; ++n) {
          double delta = x.delta.at({c});
          Complex a(x.a.at({c, n}), x.aImag->at({c, n}));
          Complex weight(x.c.at({c, n}), x.cImag->at({c, n}));
          y += (weight * std::exp(delta * a * double(t - j))).real() * delta *
               x.b.at({c, n}) * x.u.at({0, j, c});
        }
      EXPECT_NEAR(result.o.at({0, t, c}), y, roundoff);
    }
}

// With one state, no step and no gate it is linear attention of that size.
TEST(SelectiveScan, IsAScanWhenTheDecayIsShared) {
  constexpr int64_t T = 6, C = 4, N = 3;
  SelectiveScanOperands x{randomArray({1, T, C}, 1), Array({C}, 1.0),
                          Array({C, N}, -0.25), randomArray({1, T, N}, 2),
                          randomArray({1, T, N}, 3)};
  SelectiveScanResult result = take(selectiveScan(x, {}));
  auto oneHead = [&](const Array &tokens) {
    return Array({1, 1, T, tokens.dim(2)}, tokens.data);
  };
  ScanOperands operands{oneHead(x.c), oneHead(x.b), oneHead(x.u)};
  operands.decay = Array({1}, -0.25);
  ScanOptions options;
  options.scale = 1.0;
  expectNear(result.o, take(scan(operands, options)).o.data, roundoff);
}

TEST(SelectiveScan, AppliesStepSkipAndGate) {
  SelectiveScanOperands x{Array({1, 1, 1}, 2.0), Array({1, 1, 1}, 0.5),
                          Array({1, 1}, -1.0), Array({1, 1, 1}, 3.0),
                          Array({1, 1, 1}, 5.0)};
  x.skip = Array({1}, 7.0);
  x.gate = Array({1, 1, 1}, -1.5);
  x.deltaBias = Array({1}, 0.25);
  SelectiveScanResult result = take(selectiveScan(
      x, {/*deltaSoftplus=*/true}, ComplexState{Array({1, 1, 1}, 4.0)}));
  double delta = std::log(1 + std::exp(0.75));
  double h = std::exp(-delta) * 4.0 + delta * 3.0 * 2.0;
  double gate = -1.5 / (1 + std::exp(1.5));
  expectNear(result.o, {(5.0 * h + 7.0 * 2.0) * gate}, roundoff);
  expectNear(result.state.real, {h}, roundoff);
}

TEST(SelectiveScan, RefusesOperandsThatDoNotFit) {
  SelectiveScanOperands x{Array({1, 2, 4}), Array({1, 2, 4}), Array({4, 3}),
                          Array({1, 3, 2, 3}), Array({1, 2, 3})};
  expectError(selectiveScan(x, {}),
              "expected groups of b that divide the channels, but got 3");
  x.b = Array({1, 2, 3});
  x.bImag = x.b;
  expectError(
      selectiveScan(x, {}),
      "expected imaginary parts of b and c with one of a, but got none of a");
  x.aImag = x.a;
  expectError(selectiveScan(x, {}, ComplexState{Array({1, 4, 3})}),
              "expected a complex initial state, but got a real one");
}

// h_t = Σ_j λ^(t-j) x_j + λ^(t+1) h_0.
TEST(DiagonalScan, IsASumOfPowers) {
  constexpr int64_t T = 8;
  Array x = randomArray({1, T, 1}, 1), imaginary = randomArray({1, T, 1}, 2);
  Complex factor = std::polar(std::exp(-0.1), 2.0), start(0.5, -2.0);
  DiagonalScanResult result = take(
      diagonalScan({x, Array({1}, -0.1), imaginary, Array({1}, 2.0)}, false,
                   ComplexState{Array({1, 1}, 0.5), Array({1, 1}, -2.0)}));
  for (int64_t t = 0; t < T; ++t) {
    Complex h = std::pow(factor, double(t + 1)) * start;
    for (int64_t j = 0; j <= t; ++j)
      h += std::pow(factor, double(t - j)) *
           Complex(x.data[j], imaginary.data[j]);
    EXPECT_NEAR(result.h.real.data[t], h.real(), roundoff);
    EXPECT_NEAR(result.h.imaginary->data[t], h.imag(), roundoff);
  }
  EXPECT_EQ(result.state.real.data[0], result.h.real.data[T - 1]);
}

TEST(DiagonalScan, ReverseVisitsTheLastTokenFirst) {
  DiagonalScanResult result =
      take(diagonalScan({Array({1, 3, 1}, std::vector<double>{1, 2, 4}),
                         Array({1}, std::log(0.5))},
                        /*reverse=*/true));
  expectNear(result.h.real, {3, 4, 4}, roundoff);
  expectNear(result.state.real, {3}, roundoff);
}

// The average as it is written, without any maximum.
TEST(Wkv4, IsAWeightedAverage) {
  constexpr int64_t T = 7;
  Wkv4Operands x{randomArray({1, T, 1}, 1, -2, 2), randomArray({1, T, 1}, 2),
                 Array({1}, -0.3), Array({1}, 0.7)};
  Wkv4Result result = take(wkv4(x));
  for (int64_t t = 0; t < T; ++t) {
    double own = std::exp(0.7 + x.k.data[t]);
    double num = own * x.v.data[t], den = own;
    for (int64_t j = 0; j < t; ++j) {
      double weight = std::exp(-0.3 * double(t - 1 - j) + x.k.data[j]);
      num += weight * x.v.data[j];
      den += weight;
    }
    EXPECT_NEAR(result.o.data[t], num / den, roundoff);
  }
}

TEST(LogLinear, StatesGiveTheMaskedMatrix) {
  constexpr int64_t T = 21;
  for (int64_t levels : {1, 3, 6}) {
    LogLinearOperands x{
        randomArray({2, 4, T, 3}, 1), randomArray({2, 1, T, 3}, 2),
        randomArray({2, 2, T, 5}, 3), randomArray({2, 2, T, levels}, 4)};
    x.decay = randomDecay({2, 2, T}, 5);
    expectNear(take(logLinear(x, {})).o, take(logLinearQuadratic(x, {})).data,
               roundoff);
  }
}

// One level, or the same weight on all of them, is a scan.
TEST(LogLinear, WithEqualLevelsIsAScan) {
  ScanOperands tokens = randomTokens(1);
  tokens.decay = randomDecay({2, 2, 5}, 7);
  LogLinearOperands x{tokens.q, tokens.k, tokens.v, Array({2, 2, 5, 4}, 1.0),
                      tokens.decay};
  expectNear(take(logLinear(x, {})).o, take(scan(tokens, {})).o.data, roundoff);
}

TEST(LogLinear, GoesOnFromItsPosition) {
  constexpr int64_t T = 13, cut = 5;
  LogLinearOperands x{
      randomArray({1, 1, T, 3}, 1), randomArray({1, 1, T, 3}, 2),
      randomArray({1, 1, T, 2}, 3), randomArray({1, 1, T, 5}, 4)};
  auto part = [&](int64_t begin, int64_t end) {
    return LogLinearOperands{
        take(slice(x.q, 2, begin, end)), take(slice(x.k, 2, begin, end)),
        take(slice(x.v, 2, begin, end)), take(slice(x.levels, 2, begin, end))};
  };
  LogLinearResult whole = take(logLinear(x, {}));
  LogLinearResult head = take(logLinear(part(0, cut), {}));
  LogLinearResult tail =
      take(logLinear(part(cut, T), {std::nullopt, {cut}}, head.state));
  expectNear(tail.state, whole.state.data, roundoff);
  expectNear(tail.o, take(slice(whole.o, 2, cut, T)).data, roundoff);
}
