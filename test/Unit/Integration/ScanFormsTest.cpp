//===- ScanFormsTest.cpp - Compiled scans against the oracle --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"

using namespace linattn;
using namespace linattn::test;

namespace {

const int64_t scanLengths[] = {0, 1, 2, 33, 100};

TEST(Scans, CarryTheirState) {
  for (const char *form : {"state_tile", "token", "chunk:16"}) {
    checkScans({ScanCase(std::string("plain, ") + form).form(form),
                ScanCase(std::string("normalised, ") + form)
                    .form(form)
                    .features(FeatureMapKind::Elu1)
                    .normalized()
                    .scaled(0.5)},
               scanLengths);
  }
  for (const char *form : {"state_tile", "token"})
    checkScans({ScanCase(std::string("running maximum, ") + form)
                    .form(form)
                    .features(FeatureMapKind::Exp)
                    .normalized(),
                ScanCase(std::string("running maximum from nothing, ") + form)
                    .form(form)
                    .features(FeatureMapKind::Exp)
                    .normalized()
                    .empty()},
               scanLengths);
}

// Nothing was written before the first unmasked token: the maximum is still −∞.
TEST(Scans, MasksUnderARunningMaximum) {
  for (const char *form : {"state_tile", "token"}) {
    ScanCase c(form);
    c.form(form).features(FeatureMapKind::Exp).normalized().masked().empty();
    for (uint64_t seed : {1, 2, 3, 4}) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
      ASSERT_TRUE(kernel);
      std::vector<Buffer> inputs = c.getInputs(seed);
      Array mask = inputs[3].toArray();
      for (int64_t t = 0; t < 5; ++t)
        mask.at({0, t}) = 0;
      inputs[3] = Buffer(DType::I1, mask);
      std::vector<Buffer> outputs = run(*kernel, inputs);
      ASSERT_FALSE(outputs.empty());
      expectClose(outputs[0], c.getExpected(inputs)[0], "output");
    }
  }
}

TEST(Scans, Decays) {
  for (auto [decay, name] : {std::pair(Decay::Head, "per head"),
                             std::pair(Decay::Token, "per token"),
                             std::pair(Decay::Channel, "per channel")}) {
    ScanCase c(name);
    c.decayed(decay).sizes(20, 24);
    checkScan(c, {0, 1, 33, 100});
    checkScan(c.form("token"));
    checkScan(c.features(FeatureMapKind::Elu1).normalized());
    checkScan(c.form("auto"));
  }
  checkScans(
      {ScanCase("value").valueDecayed(),
       ScanCase("value and token").valueDecayed().decayed(Decay::Token),
       ScanCase("value and channel").valueDecayed().decayed(Decay::Channel),
       ScanCase("value, token form").valueDecayed().form("token").sizes(20, 24),
       ScanCase("decay under a running maximum")
           .decayed(Decay::Token)
           .features(FeatureMapKind::Exp)
           .normalized()});
}

// A decay of −∞ forgets everything: how sequences are packed by hand.
TEST(Scans, InfiniteDecay) {
  for (auto [decay, name] : {std::pair(Decay::Token, "per token"),
                             std::pair(Decay::Channel, "per channel")})
    for (const char *form : {"state_tile", "token"}) {
      SCOPED_TRACE(std::string(name) + ", " + form);
      ScanCase c(name);
      c.decayed(decay).form(form).features(FeatureMapKind::Elu1).normalized();
      std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
      ASSERT_TRUE(kernel);
      std::vector<Buffer> inputs = c.getInputs();
      Array logs = inputs[3].toArray();
      for (size_t i = 0; i < logs.data.size(); i += 7)
        logs.data[i] = -std::numeric_limits<double>::infinity();
      inputs[3] = Buffer(c.dtype, logs);
      std::vector<Buffer> outputs = run(*kernel, inputs);
      ASSERT_FALSE(outputs.empty());
      std::vector<Array> expected = c.getExpected(inputs);
      for (size_t i = 0; i < outputs.size(); ++i)
        expectClose(outputs[i], expected[i], "result");
    }
}

TEST(Scans, ReadBeforeTheWrite) {
  checkScans({ScanCase("exclusive").exclusive(),
              ScanCase("exclusive, token").exclusive().form("token"),
              ScanCase("bonus").bonus().sizes(20, 24),
              ScanCase("bonus, token").bonus().sizes(20, 24).form("token"),
              ScanCase("bonus and decay")
                  .bonus()
                  .decayed(Decay::Channel)
                  .features(FeatureMapKind::Relu)
                  .scaled(0.5)},
             {0, 1, 2, 33});
}

TEST(Scans, Reverse) {
  checkScans({ScanCase("plain").reversed(),
              ScanCase("token").reversed().form("token"),
              ScanCase("decay").reversed().decayed(Decay::Token),
              ScanCase("normalised and masked")
                  .reversed()
                  .masked()
                  .features(FeatureMapKind::Elu1)
                  .normalized(),
              ScanCase("bonus").reversed().bonus()},
             {0, 1, 33, 100});
}

TEST(Scans, PackedSequences) {
  // Empty at the start, in the middle and at the end; one token; many.
  const std::vector<int64_t> offsets = {0, 0, 1, 34, 34, 36, 100, 100};
  checkScans({ScanCase("plain").sequences(offsets),
              ScanCase("token").sequences(offsets).form("token"),
              ScanCase("decay").sequences(offsets).decayed(Decay::Channel),
              ScanCase("normalised and masked")
                  .sequences(offsets)
                  .masked()
                  .features(FeatureMapKind::Elu1)
                  .normalized(),
              ScanCase("running maximum")
                  .sequences(offsets)
                  .features(FeatureMapKind::Exp)
                  .normalized(),
              ScanCase("bonus").sequences(offsets).bonus(),
              ScanCase("reverse").sequences(offsets).reversed(),
              ScanCase("no tokens").sequences({0, 0}),
              ScanCase("grouped").sequences(offsets).heads(4, 2, 2)});
}

TEST(Scans, Masks) {
  checkScans({ScanCase("plain").masked().batches(2),
              ScanCase("decay").masked().batches(2).decayed(Decay::Token),
              ScanCase("token").masked().batches(2).form("token"),
              ScanCase("chunk").masked().batches(2).form("chunk:16")});
}

TEST(Scans, DeltaRule) {
  checkScans(
      {ScanCase("beta").delta(), ScanCase("beta per channel").delta(4),
       ScanCase("beta and decay").delta().decayed(Decay::Token),
       ScanCase("beta and channel decay").delta().decayed(Decay::Channel),
       ScanCase("erase").delta().erased(), ScanCase("write").delta().written(),
       ScanCase("all").delta(4).decayed(Decay::Head).erased().written(),
       ScanCase("exclusive").delta().exclusive(),
       ScanCase("reverse").delta().reversed(),
       ScanCase("packed").delta().sequences({0, 0, 1, 20, 33})},
      {});
  checkScan(ScanCase("long").delta().decayed(Decay::Token), {0, 1, 2, 100});
}

TEST(Scans, Dplr) {
  using reference::Transition;
  for (Transition transition : {Transition::Before, Transition::After}) {
    std::string name = transition == Transition::Before ? "before" : "after";
    checkScans(
        {ScanCase(name).dplr(transition),
         ScanCase(name + ", decay").dplr(transition).decayed(Decay::Channel),
         ScanCase(name + ", exclusive")
             .dplr(transition)
             .decayed(Decay::Token)
             .exclusive()});
  }
}

TEST(Scans, GroupedHeads) {
  checkScans({ScanCase("queries").heads(6, 2, 2).decayed(Decay::Token),
              ScanCase("values").heads(2, 2, 4).decayed(Decay::Channel),
              ScanCase("both").heads(8, 2, 4).bonus(),
              ScanCase("token").heads(8, 2, 4).form("token"),
              ScanCase("delta").heads(8, 2, 4).delta(),
              ScanCase("running maximum")
                  .heads(8, 2, 4)
                  .features(FeatureMapKind::Exp)
                  .normalized()});
}

TEST(Scans, ElementTypesAndShapes) {
  for (DType dtype : {DType::F64, DType::F16, DType::BF16})
    checkScans({ScanCase(std::string(linattn::getName(dtype)))
                    .type(dtype)
                    .decayed(Decay::Channel)
                    .sizes(20, 24),
                ScanCase(std::string(linattn::getName(dtype)) + " delta")
                    .type(dtype)
                    .delta()
                    .within(dtype == DType::F64 ? 1e-12 : 2.5e-3)});
  for (Extents extents : {Extents::Static, Extents::Dynamic})
    checkScans(
        {ScanCase(extents == Extents::Static ? "static" : "dynamic")
             .open(extents)
             .decayed(Decay::Token)
             .sizes(20, 24),
         ScanCase(extents == Extents::Static ? "static delta" : "dynamic delta")
             .open(extents)
             .delta()});
  for (Layout layout :
       {Layout::TokensFirst, Layout::Packed, Layout::AllBackwards})
    checkScan(ScanCase(test::getName(layout))
                  .laidOut(layout)
                  .decayed(Decay::Channel)
                  .features(FeatureMapKind::Elu1)
                  .normalized()
                  .sizes(20, 24));
}

TEST(Scans, UsersFeatureMap) {
  checkScans(
      {ScanCase("constants").features(Region::Constants).normalized(),
       ScanCase("captured").features(Region::Captured).normalized(),
       ScanCase("captured, token").features(Region::Captured).form("token"),
       ScanCase("captured, delta").features(Region::Captured).delta()});
}

} // namespace
