//===- ScanRulesTest.cpp - Gates, Oja's rule, masks, sequences ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceTestUtils.h"

#include <cmath>

using namespace linattn::reference;
using namespace linattn::reference::test;

/// [B, H, K, V] with K and V exchanged.
static Array transposed(const Array &x) {
  Array result({x.dim(0), x.dim(1), x.dim(3), x.dim(2)});
  for (int64_t b = 0; b < x.dim(0); ++b)
    for (int64_t h = 0; h < x.dim(1); ++h)
      for (int64_t i = 0; i < x.dim(2); ++i)
        for (int64_t j = 0; j < x.dim(3); ++j)
          result.at({b, h, j, i}) = x.at({b, h, i, j});
  return result;
}

TEST(ScanRules, OjaIsTheDeltaRuleOnTheTransposedState) {
  ScanOperands x = randomTokens(1);
  x.valueDecay = randomDecay({2, 2, 5, 2}, 5);
  x.beta = randomArray({2, 2, 5}, 6, 0, 1);
  ScanOptions options;
  options.update = UpdateRule::Oja;
  State initial{randomArray({2, 2, 3, 2}, 7)};
  ScanResult oja = take(scan(x, options, initial));

  ScanOperands y{x.v, x.v, x.k};
  y.decay = x.valueDecay;
  y.beta = x.beta;
  options.update = UpdateRule::Delta;
  ScanResult delta = take(scan(y, options, State{transposed(initial.S)}));
  EXPECT_LE(compare(transposed(delta.state.S), oja.state.S), roundoff);
}

// The outputs read the state: o = scale S^T q after each token.
TEST(ScanRules, OjaReadsItsState) {
  ScanOperands x = randomTokens(11);
  x.beta = randomArray({2, 2, 5}, 12, 0, 1);
  ScanOptions options;
  options.update = UpdateRule::Oja;
  options.scale = 0.5;
  ScanResult result = take(scan(x, options));
  for (int64_t e = 0; e < 2; ++e) {
    double expected = 0;
    for (int64_t d = 0; d < 3; ++d)
      expected += 0.5 * x.q.at({1, 1, 4, d}) * result.state.S.at({1, 1, d, e});
    EXPECT_NEAR(result.o.at({1, 1, 4, e}), expected, roundoff);
  }
}

/// mLSTM: decays, gates of any sign, max(|den|, 1).
static ScanOperands gatedTokens(ScanOptions &options) {
  ScanOperands x = randomTokens(21);
  x.decay = randomDecay({2, 2, 5}, 25);
  x.inputGate = randomArray({2, 2, 5}, 26, -3, 3);
  options.normalize = {std::nullopt, std::nullopt, std::nullopt, 1.0};
  return x;
}

TEST(ScanRules, AnInputGateIsAFactorOfTheKey) {
  ScanOptions options;
  ScanOperands x = gatedTokens(options);
  for (bool reverse : {false, true}) {
    options.reverse = reverse;
    ScanResult gated = take(scan(x, options));
    ScanOperands plain = x;
    for (int64_t i = 0; i < 20; ++i)
      for (int64_t d = 0; d < 3; ++d)
        plain.k.data[i * 3 + d] *= std::exp(x.inputGate->data[i]);
    plain.inputGate.reset();
    ScanResult expected = take(scan(plain, options));
    EXPECT_LE(compare(gated.o, expected.o), roundoff);
    // S and z are stored times e^-m.
    for (int64_t i = 0; i < 24; ++i)
      EXPECT_NEAR(gated.state.S.data[i] * std::exp(gated.state.m->data[i / 6]),
                  expected.state.S.data[i], 1e-12);
    for (int64_t i = 0; i < 12; ++i)
      EXPECT_NEAR(gated.state.z->data[i] * std::exp(gated.state.m->data[i / 3]),
                  expected.state.z->data[i], 1e-12);
  }
}

TEST(ScanRules, TheRunningMaximumFollowsDecayAndGate) {
  ScanOptions options;
  ScanOperands x = gatedTokens(options);
  x.mask = Array({2, 5}, std::vector<double>{1, 1, 1, 1, 1, 0, 1, 0, 1, 0});
  ScanResult result = take(scan(x, options));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 2; ++h) {
      double m = -infinity;
      for (int64_t t = 0; t < 5; ++t) {
        m += x.decay->at({b, h, t});
        if (x.mask->at({b, t}) != 0)
          m = std::max(m, x.inputGate->at({b, h, t}));
      }
      EXPECT_EQ(result.state.m->at({b, h}), m);
    }
}

TEST(ScanRules, HugeGatesStayFinite) {
  ScanOptions options;
  ScanOperands x = gatedTokens(options);
  for (double shift : {1e4, -1e4}) {
    for (double &gate : x.inputGate->data)
      gate += shift;
    ScanResult result = take(scan(x, options));
    for (double o : result.o.data)
      EXPECT_TRUE(std::isfinite(o));
    // The denominator is huge, or far below its floor.
    if (shift < 0) {
      EXPECT_EQ(compare(result.o, Array(result.o.shape)), 0);
    }
    for (double &gate : x.inputGate->data)
      gate -= shift;
  }
}

TEST(ScanRules, TheAbsoluteFloorKnowsTheSignOfNothing) {
  Normalize normalize{std::nullopt, std::nullopt, std::nullopt, 2.0};
  EXPECT_EQ(normalizeValue(3.0, -4.0, normalize), 0.75);
  EXPECT_EQ(normalizeValue(3.0, -1.0, normalize), 1.5);
  EXPECT_EQ(normalizeValue(3.0, 1.0, normalize, /*m=*/std::log(4.0)), 3.0);
  normalize.eps = 1.0;
  EXPECT_EQ(normalizeValue(3.0, 0.0, normalize), 1.0);
}

TEST(ScanRules, AReadOfAGatedStateIsTheLastOutput) {
  ScanOptions options;
  ScanOperands x = gatedTokens(options);
  options.scale = 0.5;
  ScanResult result = take(scan(x, options));
  ReadOptions readOptions;
  readOptions.normalize = options.normalize;
  readOptions.scale = options.scale;
  Array last = take(slice(x.q, 2, 4, 5));
  EXPECT_EQ(take(read(last, result.state, readOptions)).data,
            take(slice(result.o, 2, 4, 5)).data);
}

/// A masked token decays and is read, and does nothing else.
TEST(ScanRules, MaskedTokensOnlyDecay) {
  Array mask({2, 5}, std::vector<double>{1, 0, 1, 0, 1, 1, 0, 1, 0, 1});
  for (UpdateRule update : {UpdateRule::Add, UpdateRule::Delta,
                            UpdateRule::Dplr, UpdateRule::Oja}) {
    ScanOperands x = randomTokens(31);
    ScanOptions options;
    options.update = update;
    if (update == UpdateRule::Delta || update == UpdateRule::Oja)
      x.beta = randomArray({2, 2, 5}, 35, 0, 1);
    if (update == UpdateRule::Dplr) {
      x.a = randomArray({2, 2, 5, 3}, 36);
      x.b = randomArray({2, 2, 5, 3}, 37);
    }
    // Without decay, the tokens 0, 2 and 4 alone.
    auto keep = [](const Array &array) {
      Array kept({1, array.dim(1), 3});
      if (array.rank() == 4)
        kept = Array({1, array.dim(1), 3, array.dim(3)});
      int64_t size = array.rank() == 4 ? array.dim(3) : 1;
      for (int64_t h = 0; h < array.dim(1); ++h)
        for (int64_t t = 0; t < 3; ++t)
          std::copy_n(array.row({0, h, 2 * t}), size, kept.row({0, h, t}));
      return kept;
    };
    ScanOperands y{keep(x.q), keep(x.k), keep(x.v)};
    for (auto operand :
         {&ScanOperands::beta, &ScanOperands::a, &ScanOperands::b})
      if (x.*operand)
        y.*operand = keep(*(x.*operand));
    State expected = take(scan(y, options)).state;
    x.mask = mask;
    for (int64_t t : {1, 3})
      std::fill_n(x.k.row({0, 0, t}), 3, NAN);
    State got = take(scan(x, options)).state;
    EXPECT_EQ(std::vector<double>(got.S.data.begin(), got.S.data.begin() + 12),
              expected.S.data);
  }
}

TEST(ScanRules, PackedSequencesAreScansOfTheirOwn) {
  ScanOptions options;
  ScanOperands all = gatedTokens(options), x = all;
  for (Array *array : {&x.q, &x.k, &x.v, &*x.decay, &*x.inputGate})
    *array = take(slice(*array, 0, 0, 1));
  x.cuSeqlens = {0, 0, 1, 4, 4, 5, 5};
  for (bool reverse : {false, true}) {
    options.reverse = reverse;
    ScanResult packed = take(scan(x, options));
    ASSERT_EQ(packed.state.S.dim(0), 6);
    for (int64_t n = 0; n < 6; ++n) {
      int64_t begin = (*x.cuSeqlens)[n], end = (*x.cuSeqlens)[n + 1];
      ScanOperands part = x;
      part.cuSeqlens.reset();
      for (Array *array :
           {&part.q, &part.k, &part.v, &*part.decay, &*part.inputGate})
        *array = take(slice(*array, 2, begin, end));
      ScanResult alone = take(scan(part, options));
      EXPECT_EQ(alone.o.data, take(slice(packed.o, 2, begin, end)).data);
      EXPECT_EQ(alone.state.S.data,
                take(slice(packed.state.S, 0, n, n + 1)).data);
      EXPECT_EQ(alone.state.m->data,
                take(slice(*packed.state.m, 0, n, n + 1)).data);
    }
    // Nothing was written: the maximum is that before the first token.
    EXPECT_EQ(packed.state.m->at({0, 0}), -infinity);
  }
}
