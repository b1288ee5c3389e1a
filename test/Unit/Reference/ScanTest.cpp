//===- ScanTest.cpp - The general recurrence ------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceTestUtils.h"

#include <cmath>
#include <limits>

using namespace linattn::reference;
using namespace linattn::reference::test;

/// A scalar operand of shape [1, ..., 1].
static Array scalar(double value, size_t rank = 4) {
  return Array(std::vector<int64_t>(rank, 1), value);
}

static ScanOptions withScale(double scale) {
  ScanOptions options;
  options.scale = scale;
  return options;
}

//===----------------------------------------------------------------------===//
// Worked examples
//===----------------------------------------------------------------------===//

TEST(ScanWorkedExamples, EluCausal) {
  ScanOptions options = withScale(1.0);
  options.featureMap = makeMap(FeatureMapKind::Elu1);
  // 11/32 lies halfway between two printed values, which any eps would decide.
  options.normalize = Normalize{0.0, std::nullopt, std::nullopt};
  ScanOperands x{exampleQ(), exampleK(), exampleV()};
  ScanResult whole = take(scan(x, options));
  expectNear(whole.o, {1,     0,     0,     0,     //
                       .5714, .4286, 0,     0,     //
                       .3125, .3438, .3438, 0,     //
                       .25,   .25,   .2222, .2778, //
                       .3022, .3022, .3022, .3022},
             printed);
  const std::vector<double> sums[] = {
      {1, 2, 1, 2}, {3, 3, 3, 3}, {5, 5, 4, 4}, {6, 6, 6, 6}, {8, 7, 7.5, 7.5}};
  for (int64_t t = 1; t <= 5; ++t) {
    ScanOperands prefix{take(slice(x.q, 2, 0, t)), take(slice(x.k, 2, 0, t)),
                        take(slice(x.v, 2, 0, t))};
    EXPECT_EQ(take(scan(prefix, options)).state.z->data, sums[t - 1]);
  }
}

TEST(ScanWorkedExamples, ReluFirstRowIsZero) {
  ScanOptions options = withScale(1.0);
  options.featureMap = makeMap(FeatureMapKind::Relu);
  options.normalize = Normalize();
  Array o = take(scan({exampleQ(), exampleK(), exampleV()}, options)).o;
  for (int64_t d = 0; d < 4; ++d)
    EXPECT_EQ(o.at({0, 0, 0, d}), 0.0);
}

TEST(ScanWorkedExamples, UnnormalizedStates) {
  Array k = oneHead({{1, 0}, {0, 1}, {1, 1}});
  Array v = oneHead({{10, 20}, {30, 40}, {50, 60}});
  const std::vector<double> outputs[] = {{10, 20}, {30, 40}, {140, 180}};
  const std::vector<double> states[] = {
      {10, 20, 0, 0}, {10, 20, 30, 40}, {60, 80, 80, 100}};
  std::optional<State> carried;
  for (int64_t t = 0; t < 3; ++t) {
    Array key = take(slice(k, 2, t, t + 1));
    ScanResult step = take(
        scan({key, key, take(slice(v, 2, t, t + 1))}, withScale(1.0), carried));
    EXPECT_EQ(step.o.data, outputs[t]);
    EXPECT_EQ(step.state.S.data, states[t]);
    carried = step.state;
  }
}

//===----------------------------------------------------------------------===//
// One token by hand
//===----------------------------------------------------------------------===//

/// S = 2 before the token; q = 3, k = 5, v = 7.
static ScanResult oneToken(ScanOperands x, const ScanOptions &options) {
  x.q = scalar(3), x.k = scalar(5), x.v = scalar(7);
  return take(scan(x, options, State{scalar(2)}));
}

TEST(ScanByHand, AddDecaysThenWrites) {
  ScanOperands x;
  EXPECT_EQ(oneToken(x, {}).state.S.data[0], 37.0);
  EXPECT_EQ(oneToken(x, {}).o.data[0], 3 * 37.0);
  x.decay = scalar(std::log(0.5), 1);
  EXPECT_EQ(oneToken(x, {}).state.S.data[0], 36.0);
  x.valueDecay = scalar(std::log(0.25));
  EXPECT_EQ(oneToken(x, {}).state.S.data[0], 35.25);
  EXPECT_EQ(oneToken(x, {}).o.data[0], 3 * 35.25);
}

TEST(ScanByHand, ExclusiveReadsTheStateBeforeTheDecay) {
  ScanOperands x;
  x.decay = scalar(std::log(0.5), 1);
  ScanOptions options = withScale(0.5);
  options.readout = Readout::Exclusive;
  EXPECT_EQ(oneToken(x, options).o.data[0], 0.5 * 3 * 2);
  EXPECT_EQ(oneToken(x, options).state.S.data[0], 36.0);
  x.bonus = scalar(11, 2);
  EXPECT_EQ(oneToken(x, options).o.data[0], 0.5 * (6 + 3 * 11 * 5 * 7));
  EXPECT_EQ(oneToken(x, options).state.S.data[0], 36.0);
}

TEST(ScanByHand, DplrReadsBeforeOrAfterTheDecay) {
  ScanOperands x;
  x.decay = scalar(std::log(0.5), 1);
  x.a = scalar(11), x.b = scalar(13);
  ScanOptions options;
  options.update = UpdateRule::Dplr;
  // The default is before: 1 + 13 * (11 * 2) + 35.
  EXPECT_EQ(oneToken(x, options).state.S.data[0], 322.0);
  options.transition = Transition::Before;
  EXPECT_EQ(oneToken(x, options).state.S.data[0], 322.0);
  // 1 + 13 * (11 * 1) + 35.
  options.transition = Transition::After;
  EXPECT_EQ(oneToken(x, options).state.S.data[0], 179.0);
}

TEST(ScanByHand, DeltaReadsAfterTheDecay) {
  ScanOperands x;
  x.decay = scalar(std::log(0.5), 1);
  ScanOptions options;
  options.update = UpdateRule::Delta;
  // 1 + 5 * (7 - 5 * 1)
  EXPECT_EQ(oneToken(x, options).state.S.data[0], 11.0);
  x.beta = scalar(0.5, 3);
  EXPECT_EQ(oneToken(x, options).state.S.data[0], 6.0);
  x.beta.reset();
  x.erase = scalar(0.2), x.write = scalar(3);
  // 1 + 5 * (3 * 7 - 0.2 * 5 * 1)
  EXPECT_EQ(oneToken(x, options).state.S.data[0], 101.0);
}

TEST(ScanByHand, DefaultScaleIsTheInverseRootOfK) {
  Array ones({1, 1, 1, 4}, 1.0);
  EXPECT_EQ(take(scan({ones, ones, ones}, {})).o.data,
            std::vector<double>(4, 2.0));
}

//===----------------------------------------------------------------------===//
// Against closed forms
//===----------------------------------------------------------------------===//

TEST(ScanTest, CausalAttentionIsTheScan) {
  Array q = randomArray({2, 8, 6, 3}, 1), k = randomArray({2, 2, 6, 3}, 2);
  Array v = randomArray({2, 4, 6, 2}, 3);
  Array mask({2, 6}, std::vector<double>{0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0});
  for (FeatureMapKind kind : allNamedMaps)
    for (int flags = 0; flags < 4; ++flags) {
      AttentionOptions expected;
      expected.causal = true;
      expected.featureMap = makeMap(kind);
      expected.scale = 0.7;
      ScanOperands x{q, k, v};
      ScanOptions options = withScale(0.7);
      options.featureMap = expected.featureMap;
      // The large eps shows that both add it to the same denominator.
      if (flags & 1)
        expected.normalize = options.normalize =
            Normalize{8.0, std::nullopt, std::nullopt};
      if (flags & 2)
        expected.mask = x.mask = mask;
      EXPECT_LT(
          compare(take(scan(x, options)).o, take(attention(q, k, v, expected))),
          roundoff)
          << featureMapName(kind) << " flags " << flags;
    }
}

/// o_i = s sum_{j<=i} (sum_d q_id e^{c_id - c_jd} k_jd) e^{h_i - h_j} v_j, with
/// c and h the cumulative decays.
static Array decayedQuadratic(const ScanOperands &x, const Array &g,
                              const Array &h) {
  Array o({2, 2, 5, 2});
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t i = 0; i < 5; ++i)
        for (int64_t j = 0; j <= i; ++j)
          for (int64_t e = 0; e < 2; ++e) {
            double score = 0.0, value = x.v.at({b, head, j, e});
            for (int64_t d = 0; d < 3; ++d) {
              double exponent = 0.0;
              for (int64_t t = j + 1; t <= i; ++t)
                exponent += g.at({b, head, t, d});
              score += x.q.at({b, head, i, d}) * std::exp(exponent) *
                       x.k.at({b, head, j, d});
            }
            for (int64_t t = j + 1; t <= i; ++t)
              value *= std::exp(h.at({b, head, t, e}));
            o.at({b, head, i, e}) += score * value;
          }
  return o;
}

TEST(ScanTest, DecayShapes) {
  ScanOperands x = randomTokens(7);
  Array perHead = randomDecay({2}, 1), perToken = randomDecay({2, 2, 5}, 2);
  Array perKey = randomDecay({2, 2, 5, 3}, 3);
  Array fromHead({2, 2, 5, 3}), fromToken({2, 2, 5, 3}), none({2, 2, 5, 2});
  for (int64_t i = 0; i < 60; ++i) {
    fromHead.data[i] = perHead.data[i / 15 % 2];
    fromToken.data[i] = perToken.data[i / 3];
  }
  const std::pair<Array, Array> cases[] = {
      {perHead, fromHead}, {perToken, fromToken}, {perKey, perKey}};
  for (const auto &[decay, full] : cases) {
    x.decay = decay;
    EXPECT_LT(compare(take(scan(x, withScale(1.0))).o,
                      decayedQuadratic(x, full, none)),
              roundoff)
        << "rank " << decay.rank();
  }
  x.valueDecay = randomDecay({2, 2, 5, 2}, 4);
  EXPECT_LT(compare(take(scan(x, withScale(1.0))).o,
                    decayedQuadratic(x, perKey, *x.valueDecay)),
            roundoff);
}

TEST(ScanTest, DeltaIsATriangularSolve) {
  // O = tril(Q K^T) (I + tril(beta K K^T, -1))^-1 beta V
  ScanOperands x = randomTokens(11);
  x.beta = randomArray({2, 2, 5}, 14, 0, 1);
  ScanOptions options = withScale(1.0);
  options.update = UpdateRule::Delta;
  auto product = [](const Array &y, const Array &z, int64_t b, int64_t h,
                    int64_t i, int64_t j) {
    double sum = 0.0;
    for (int64_t d = 0; d < 3; ++d)
      sum += y.at({b, h, i, d}) * z.at({b, h, j, d});
    return sum;
  };
  Array expected({2, 2, 5, 2}), delta({2, 2, 5, 2});
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t e = 0; e < 2; ++e)
        for (int64_t i = 0; i < 5; ++i) {
          double rest = x.v.at({b, h, i, e});
          for (int64_t j = 0; j < i; ++j)
            rest -= product(x.k, x.k, b, h, i, j) * delta.at({b, h, j, e});
          delta.at({b, h, i, e}) = x.beta->at({b, h, i}) * rest;
          for (int64_t j = 0; j <= i; ++j)
            expected.at({b, h, i, e}) +=
                product(x.q, x.k, b, h, i, j) * delta.at({b, h, j, e});
        }
  EXPECT_LT(compare(take(scan(x, options)).o, expected), roundoff);
}

TEST(ScanTest, DeltaIsAnInstanceOfDplr) {
  ScanOperands delta = randomTokens(21);
  delta.decay = randomDecay({2, 2, 5, 3}, 24);
  delta.beta = randomArray({2, 2, 5}, 25, 0, 1);
  delta.erase = randomArray({2, 2, 5, 3}, 26, 0, 1);
  delta.write = randomArray({2, 2, 5, 2}, 27, 0, 1);
  ScanOperands dplr{delta.q, delta.k, delta.v, delta.decay};
  dplr.a = delta.k, dplr.b = delta.k;
  for (size_t i = 0; i < delta.k.data.size(); ++i) {
    double beta = delta.beta->data[i / 3];
    dplr.a->data[i] *= -delta.erase->data[i];
    dplr.b->data[i] *= beta;
    dplr.k.data[i] *= beta;
  }
  for (size_t i = 0; i < delta.v.data.size(); ++i)
    dplr.v.data[i] *= delta.write->data[i];
  ScanOptions deltaOptions, dplrOptions;
  deltaOptions.update = UpdateRule::Delta;
  dplrOptions.update = UpdateRule::Dplr;
  dplrOptions.transition = Transition::After;
  ScanResult got = take(scan(delta, deltaOptions));
  ScanResult expected = take(scan(dplr, dplrOptions));
  EXPECT_LT(compare(got.o, expected.o), roundoff);
  EXPECT_LT(compare(got.state.S, expected.state.S), roundoff);
}

TEST(ScanTest, BetaPerValueColumn) {
  // Value columns are independent: column e only sees its own beta.
  ScanOperands x = randomTokens(31);
  x.beta = randomArray({2, 2, 5, 2}, 34, 0, 1);
  ScanOptions options;
  options.update = UpdateRule::Delta;
  Array both = take(scan(x, options)).o;
  for (int64_t e = 0; e < 2; ++e) {
    ScanOperands column{x.q, x.k, take(slice(x.v, 3, e, e + 1))};
    column.beta = take(slice(*x.beta, 3, e, e + 1));
    column.beta->shape.pop_back();
    EXPECT_EQ(take(scan(column, options)).o.data,
              take(slice(both, 3, e, e + 1)).data);
  }
}

TEST(ScanTest, DeltaOverwritesTheValueOfAUnitKey) {
  Array key = oneHead({{.6, .8}, {.6, .8}}), v = oneHead({{1, 2}, {-3, 5}});
  ScanOptions options = withScale(1.0);
  options.update = UpdateRule::Delta;
  EXPECT_LT(compare(take(scan({key, key, v}, options)).o, v), roundoff);
}

//===----------------------------------------------------------------------===//
// Masks, groups and the running maximum
//===----------------------------------------------------------------------===//

TEST(ScanTest, AMaskedTokenStillDecays) {
  ScanOperands x{Array({1, 1, 2, 1}, 1.0), Array({1, 1, 2, 1}, 1.0),
                 oneHead({{8}, {std::nan("")}})};
  x.decay = scalar(std::log(0.5), 1);
  x.mask = Array({1, 2}, std::vector<double>{1, 0});
  EXPECT_EQ(take(scan(x, {})).o.data, (std::vector<double>{8, 4}));
  x.bonus = scalar(1, 2);
  ScanOptions options;
  options.readout = Readout::Exclusive;
  EXPECT_EQ(take(scan(x, options)).o.data, (std::vector<double>{8, 8}));
}

TEST(ScanTest, GroupedHeads) {
  // One key head serves two value heads; four query heads read two states.
  ScanOperands x{randomArray({1, 4, 5, 3}, 1), randomArray({1, 1, 5, 3}, 2),
                 randomArray({1, 2, 5, 2}, 3), randomDecay({1, 2, 5}, 4)};
  ScanResult grouped = take(scan(x, {}));
  EXPECT_EQ(grouped.o.shape, (std::vector<int64_t>{1, 4, 5, 2}));
  EXPECT_EQ(grouped.state.S.shape, (std::vector<int64_t>{1, 2, 3, 2}));
  for (int64_t head = 0; head < 4; ++head) {
    ScanOperands one{take(slice(x.q, 1, head, head + 1)), x.k,
                     take(slice(x.v, 1, head / 2, head / 2 + 1)),
                     take(slice(*x.decay, 1, head / 2, head / 2 + 1))};
    EXPECT_EQ(take(scan(one, {})).o.data,
              take(slice(grouped.o, 1, head, head + 1)).data);
  }
}

static ScanOptions normalizedExp(double eps) {
  ScanOptions options = withScale(1.0);
  options.featureMap = makeMap(FeatureMapKind::Exp);
  options.normalize = Normalize{eps, std::nullopt, std::nullopt};
  return options;
}

TEST(ScanTest, ExpDoesNotOverflow) {
  ScanOperands x{oneHead({{500, 499}, {-500, -500}, {0, 0}}),
                 oneHead({{-500, -501}, {500, 499}, {-500, 500}}),
                 oneHead({{1}, {3}, {5}})};
  ScanResult got = take(scan(x, normalizedExp(0.0)));
  double e = std::exp(-1.0);
  expectNear(got.o, {1, 3, (3 * (1 + e) + 5) / (2 + e)}, roundoff);
  EXPECT_EQ(got.state.m->data[0], 500.0);
  expectNear(*got.state.z, {1, e + 1}, roundoff);
  expectNear(got.state.S, {3, 3 * e + 5}, roundoff);
}

TEST(ScanTest, ExpOfMinusInfinityWeighsNothing) {
  double lowest = -std::numeric_limits<double>::infinity();
  ScanOperands x{Array({1, 1, 3, 2}),
                 oneHead({{lowest, lowest}, {3, lowest}, {lowest, lowest}}),
                 oneHead({{1}, {2}, {4}})};
  ScanResult got = take(scan(x, normalizedExp(0.0)));
  EXPECT_EQ(got.o.data, (std::vector<double>{0, 2, 2}));
  EXPECT_EQ(got.state.m->data[0], 3.0);
}

TEST(ScanTest, BonusOfEachHead) {
  Array ones({1, 2, 1, 2}, 1.0);
  ScanOperands x{ones, ones, ones};
  x.bonus = Array({2, 2}, std::vector<double>{1, 2, 30, 40});
  ScanOptions options = withScale(1.0);
  options.readout = Readout::Exclusive;
  EXPECT_EQ(take(scan(x, options)).o.data, (std::vector<double>{3, 3, 70, 70}));
}

TEST(ScanTest, ExpWithDecayAndBonusIsThePlainQuotient) {
  for (bool exclusive : {false, true}) {
    ScanOperands x = randomTokens(71);
    x.decay = randomDecay({2, 2, 5, 3}, 74);
    ScanOptions options = normalizedExp(0.0);
    if (exclusive) {
      options.readout = Readout::Exclusive;
      x.bonus = randomArray({2, 3}, 75, 0, 1);
    }
    ScanOperands plain = x;
    for (Array *array : {&plain.q, &plain.k})
      for (double &element : array->data)
        element = std::exp(element);
    ScanOptions plainOptions = options;
    plainOptions.featureMap = {};
    EXPECT_LT(
        compare(take(scan(x, options)).o, take(scan(plain, plainOptions)).o),
        roundoff)
        << "exclusive " << exclusive;
  }
}

TEST(ScanTest, ExclusiveReadDoesNotSeeItsTokenThroughEps) {
  ScanOperands x{oneHead({{0}, {0}}), oneHead({{1}, {2}}), oneHead({{4}, {8}})};
  ScanOptions options = normalizedExp(1.0);
  options.readout = Readout::Exclusive;
  Array before = take(scan(x, options)).o;
  EXPECT_EQ(before.data, (std::vector<double>{0, 2}));
  x.k.data[1] = 300;
  EXPECT_EQ(take(scan(x, options)).o.data, before.data);
}
