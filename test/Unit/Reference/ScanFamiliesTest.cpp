//===- ScanFamiliesTest.cpp - Laws of every family of scans ---------------===//
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

namespace {

struct Family {
  std::string name;
  ScanOperands operands;
  ScanOptions options;
};

} // namespace

static State initialState(const ScanOptions &options) {
  State initial{randomArray({2, 2, 3, 2}, 90)};
  if (options.normalize)
    initial.z = randomArray({2, 2, 3}, 91, 1, 2);
  if (options.normalize && options.featureMap.kind == FeatureMapKind::Exp)
    initial.m = randomArray({2, 2}, 92);
  return initial;
}

/// One instance of each combination that the recurrence has.
static std::vector<Family> families() {
  ScanOperands base = randomTokens(41);
  std::vector<Family> all = {{"additive", base, {}}};
  auto add = [&](const std::string &name) -> Family & {
    return all.emplace_back(Family{name, base, {}});
  };
  add("retnet").operands.decay = randomDecay({2}, 50);
  add("simple gla").operands.decay = randomDecay({2, 2, 5}, 51);
  Family &gla = add("gla");
  gla.operands.decay = randomDecay({2, 2, 5, 3}, 52);
  gla.operands.valueDecay = randomDecay({2, 2, 5, 2}, 53);
  Family &masked = add("masked");
  masked.operands.decay = randomDecay({2, 2, 5}, 54);
  masked.operands.mask =
      Array({2, 5}, std::vector<double>{1, 0, 1, 1, 0, 0, 1, 1, 0, 1});
  Family &rwkv = add("rwkv6");
  rwkv.operands.decay = randomDecay({2, 2, 5, 3}, 55);
  rwkv.operands.bonus = randomArray({2, 3}, 56);
  rwkv.options.readout = Readout::Exclusive;
  Family &delta = add("gated delta");
  delta.operands.decay = randomDecay({2, 2, 5}, 57);
  delta.operands.beta = randomArray({2, 2, 5}, 58, 0, 1);
  delta.options.update = UpdateRule::Delta;
  Family &gated = add("gdn2");
  gated.operands.decay = randomDecay({2, 2, 5, 3}, 59);
  gated.operands.erase = randomArray({2, 2, 5, 3}, 60, 0, 1);
  gated.operands.write = randomArray({2, 2, 5, 2}, 61, 0, 1);
  gated.options.update = UpdateRule::Delta;
  Family &oja = add("gated oja");
  oja.operands.valueDecay = randomDecay({2, 2, 5, 2}, 65);
  oja.operands.beta = randomArray({2, 2, 5}, 66, 0, 1);
  oja.options.update = UpdateRule::Oja;
  for (Transition transition : {Transition::Before, Transition::After}) {
    Family &dplr = add("dplr");
    dplr.operands.decay = randomDecay({2, 2, 5, 3}, 62);
    dplr.operands.a = randomArray({2, 2, 5, 3}, 63);
    dplr.operands.b = randomArray({2, 2, 5, 3}, 64);
    dplr.options.update = UpdateRule::Dplr;
    dplr.options.transition = transition;
  }
  return all;
}

static bool isNormalizable(const Family &family) {
  return !family.operands.valueDecay && !family.operands.write;
}

/// Every family with every named map, with and without a normalizer.
static std::vector<Family> familiesWithMaps() {
  std::vector<Family> all;
  for (const Family &family : families())
    for (FeatureMapKind kind : allNamedMaps)
      for (bool normalized : {false, true}) {
        bool stabilized = normalized && kind == FeatureMapKind::Exp;
        if ((normalized && !isNormalizable(family)) ||
            (stabilized && family.options.update != UpdateRule::Add))
          continue;
        Family instance = family;
        instance.name += std::string(" ") + featureMapName(kind);
        instance.options.featureMap = makeMap(kind);
        if (normalized) {
          instance.name += " normalized";
          instance.options.normalize = Normalize();
        }
        all.push_back(instance);
      }
  return all;
}

/// The tokens [begin, end) of every operand that has tokens.
static ScanOperands takeTokens(const ScanOperands &x, int64_t begin,
                               int64_t end) {
  ScanOperands part = x;
  for (Array *array : {&part.q, &part.k, &part.v})
    *array = take(slice(*array, 2, begin, end));
  for (std::optional<Array> *array :
       {&part.decay, &part.valueDecay, &part.beta, &part.a, &part.b,
        &part.erase, &part.write})
    if (*array && (*array)->rank() > 2)
      *array = take(slice(**array, 2, begin, end));
  if (part.mask)
    part.mask = take(slice(*part.mask, 1, begin, end));
  return part;
}

static void expectSameState(const State &got, const State &expected) {
  EXPECT_EQ(got.S.data, expected.S.data);
  ASSERT_EQ(got.z.has_value(), expected.z.has_value());
  ASSERT_EQ(got.m.has_value(), expected.m.has_value());
  if (expected.z) {
    EXPECT_EQ(got.z->data, expected.z->data);
  }
  if (expected.m) {
    EXPECT_EQ(got.m->data, expected.m->data);
  }
}

TEST(ScanFamilies, SplitAnywhereIsTheWhole) {
  for (Family &family : familiesWithMaps())
    for (bool reverse : {false, true}) {
      SCOPED_TRACE(family.name + (reverse ? " reverse" : ""));
      family.options.reverse = reverse;
      State initial = initialState(family.options);
      ScanResult whole = take(scan(family.operands, family.options, initial));
      for (int64_t cut = 0; cut <= 5; ++cut) {
        ScanOperands left = takeTokens(family.operands, 0, cut);
        ScanOperands right = takeTokens(family.operands, cut, 5);
        ScanResult first =
            take(scan(reverse ? right : left, family.options, initial));
        ScanResult second =
            take(scan(reverse ? left : right, family.options, first.state));
        expectSameState(second.state, whole.state);
        EXPECT_EQ((reverse ? second : first).o.data,
                  take(slice(whole.o, 2, 0, cut)).data);
        EXPECT_EQ((reverse ? first : second).o.data,
                  take(slice(whole.o, 2, cut, 5)).data);
      }
    }
}

static Array flipped(const Array &x, int64_t axis) {
  int64_t inner = 1, length = x.dim(axis);
  for (int64_t i = axis + 1; i < x.rank(); ++i)
    inner *= x.dim(i);
  Array result = x;
  for (int64_t i = 0; i < static_cast<int64_t>(x.data.size()); ++i) {
    int64_t t = i / inner % length;
    result.data[i + (length - 1 - 2 * t) * inner] = x.data[i];
  }
  return result;
}

TEST(ScanFamilies, ReverseIsTheScanOfTheFlippedTokens) {
  for (Family &family : families()) {
    SCOPED_TRACE(family.name);
    State initial = initialState(family.options);
    ScanOperands x = family.operands;
    for (Array *array : {&x.q, &x.k, &x.v})
      *array = flipped(*array, 2);
    for (std::optional<Array> *array :
         {&x.decay, &x.valueDecay, &x.beta, &x.a, &x.b, &x.erase, &x.write})
      if (*array && (*array)->rank() > 2)
        *array = flipped(**array, 2);
    if (x.mask)
      x.mask = flipped(*x.mask, 1);
    ScanResult expected = take(scan(x, family.options, initial));
    family.options.reverse = true;
    ScanResult got = take(scan(family.operands, family.options, initial));
    EXPECT_EQ(got.o.data, flipped(expected.o, 2).data);
    expectSameState(got.state, expected.state);
  }
}

TEST(ScanFamilies, TheNormalizerIsAColumnOfOnes) {
  for (Family &family : families()) {
    if (!isNormalizable(family))
      continue;
    SCOPED_TRACE(family.name);
    family.options.featureMap = makeMap(FeatureMapKind::Elu1);
    ScanOperands extended = family.operands;
    extended.v = Array({2, 2, 5, 3}, 1.0);
    for (int64_t i = 0; i < 40; ++i)
      extended.v.data[i / 2 * 3 + i % 2] = family.operands.v.data[i];
    ScanResult columns = take(scan(extended, family.options));

    family.options.normalize = Normalize{0.1, std::nullopt, std::nullopt};
    ScanResult got = take(scan(family.operands, family.options));
    for (int64_t i = 0; i < 40; ++i) {
      double num = columns.o.data[i / 2 * 3 + i % 2];
      double expected = num / (columns.o.data[i / 2 * 3 + 2] + 0.1);
      EXPECT_NEAR(got.o.data[i], expected, 1e-11 * (1 + std::abs(expected)));
    }
    for (int64_t i = 0; i < 12; ++i)
      EXPECT_NEAR(got.state.z->data[i], columns.state.S.data[i * 3 + 2], 1e-12);
  }
}

TEST(ScanFamilies, NoTokensKeepTheState) {
  for (Family &family : familiesWithMaps()) {
    SCOPED_TRACE(family.name);
    ScanOperands none = takeTokens(family.operands, 0, 0);
    State initial = initialState(family.options);
    ScanResult kept = take(scan(none, family.options, initial));
    EXPECT_EQ(kept.o.shape, (std::vector<int64_t>{2, 2, 0, 2}));
    expectSameState(kept.state, initial);
    State fresh = take(scan(none, family.options)).state;
    EXPECT_EQ(fresh.S.data, std::vector<double>(24, 0.0));
    if (fresh.z) {
      EXPECT_EQ(fresh.z->data, std::vector<double>(12, 0.0));
    }
    if (fresh.m) {
      EXPECT_EQ(fresh.m->data, std::vector<double>(4, -infinity));
    }
  }
}
