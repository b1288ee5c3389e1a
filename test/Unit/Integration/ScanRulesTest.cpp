//===- ScanRulesTest.cpp - Every rule with every operand ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ScanFormsTest goes through the forms; here are the rules: Oja's update, the
// input gate with its running maximum, wide states, and decays, masks, heads,
// directions and packed sequences under each update.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"

using namespace linattn;
using namespace linattn::test;

namespace {

// Empty at the start, in the middle and at the end; one token; many.
const std::vector<int64_t> packed = {0, 0, 1, 20, 20, 22, 50, 50};

/// A case per update, which `spoil` gives more operands.
template <typename Fn>
void checkEveryUpdate(Fn spoil) {
  using reference::Transition;
  for (ScanCase c : {ScanCase("add"), ScanCase("delta").delta(),
                     ScanCase("delta per channel").delta(4),
                     ScanCase("erase and write").delta().erased().written(),
                     ScanCase("dplr before").dplr(Transition::Before),
                     ScanCase("dplr after").dplr(Transition::After),
                     ScanCase("oja").oja()}) {
    spoil(c);
    checkScan(c);
  }
}

TEST(Rules, Decays) {
  for (Decay decay : {Decay::Head, Decay::Token, Decay::Channel})
    checkEveryUpdate([&](ScanCase &c) { c.decayed(decay).batches(2); });
}

TEST(Rules, Masks) {
  checkEveryUpdate(
      [](ScanCase &c) { c.masked().decayed(Decay::Token).batches(2); });
  checkEveryUpdate([](ScanCase &c) { c.masked().exclusive(); });
}

TEST(Rules, Heads) {
  checkEveryUpdate([](ScanCase &c) { c.heads(6, 2, 2).decayed(Decay::Token); });
  checkEveryUpdate(
      [](ScanCase &c) { c.heads(2, 2, 4).decayed(Decay::Channel); });
}

TEST(Rules, ReverseAndPacked) {
  checkEveryUpdate(
      [](ScanCase &c) { c.sequences(packed).decayed(Decay::Token).masked(); });
  checkEveryUpdate(
      [](ScanCase &c) { c.sequences(packed).reversed().heads(2, 2, 4); });
}

TEST(Rules, BonusAndMap) {
  for (ScanCase c :
       {ScanCase("add"), ScanCase("dplr").dplr(reference::Transition::Before)})
    checkScan(c.bonus()
                  .features(FeatureMapKind::Relu)
                  .scaled(0.5)
                  .decayed(Decay::Channel));
}

TEST(Rules, Oja) {
  checkScans(
      {ScanCase("value decay").oja().valueDecayed(),
       ScanCase("both decays").oja().valueDecayed().decayed(Decay::Channel),
       ScanCase("sizes").oja().sizes(20, 24).valueDecayed(),
       ScanCase("masked").oja().masked().valueDecayed(),
       ScanCase("half").oja().type(DType::F16).within(2.5e-3),
       ScanCase("f64").oja().type(DType::F64).within(1e-12)},
      {0, 1, 33});
}

TEST(Rules, InputGate) {
  for (const char *form : {"state_tile", "token"}) {
    auto gated = [&](const char *name) {
      // At this scale, and with floors that are no smaller, no denominator is
      // what is left of much larger terms.
      return ScanCase(std::string(name) + ", " + form)
          .gated()
          .form(form)
          .scaled(0.1);
    };
    checkScans({gated("per token").decayed(Decay::Token),
                gated("per head").decayed(Decay::Head).sizes(20, 24),
                gated("no decay"), gated("from nothing").empty(),
                gated("masked").masked().empty().decayed(Decay::Token),
                gated("reverse").reversed().decayed(Decay::Token),
                gated("queries").heads(6, 2, 2).decayed(Decay::Token),
                gated("values").heads(2, 2, 4).decayed(Decay::Token),
                gated("map").features(FeatureMapKind::Relu),
                gated("eps and floor").gated(absFloor(0.5, 1e-3)),
                gated("sum of weights").gated({1e-6}).positive(),
                gated("f16").type(DType::F16).decayed(Decay::Token)},
               {0, 1, 33});
    checkScan(gated("packed").sequences(packed).decayed(Decay::Token).empty());
    checkScan(gated("packed, reverse").sequences(packed).reversed().masked());
  }
}

// max(|den|, abs_floor) without a gate: the sum of weights may be negative.
TEST(Rules, AbsoluteFloor) {
  for (const char *form : {"state_tile", "token"})
    checkScans({ScanCase(form).form(form).normalized(absFloor(1.0)),
                ScanCase(form)
                    .form(form)
                    .decayed(Decay::Token)
                    .normalized(absFloor(0.1, 1e-3))});
}

// The state alone is wider than the tokens: sums are in f64, to 1e-12 where the
// output is f64 as well.
TEST(Rules, WideStates) {
  for (const char *form : {"state_tile", "token"})
    for (DType dtype : {DType::F32, DType::BF16})
      checkScans(
          {ScanCase(form).form(form).wide().type(dtype).decayed(Decay::Channel),
           ScanCase(form).form(form).wide().type(dtype).gated().decayed(
               Decay::Token),
           ScanCase(form)
               .form(form)
               .wide()
               .type(dtype)
               .features(FeatureMapKind::Exp)
               .normalized()});
  checkEveryUpdate([](ScanCase &c) { c.wide().decayed(Decay::Token); });
}

} // namespace
