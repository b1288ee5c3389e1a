//===- FormsTest.cpp - Compiled attention against the oracle --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace linattn;
using namespace linattn::test;

namespace {

const FeatureMapKind allMaps[] = {
    FeatureMapKind::Identity,      FeatureMapKind::Relu,
    FeatureMapKind::Relu2,         FeatureMapKind::Elu1,
    FeatureMapKind::SoftmaxKernel, FeatureMapKind::Exp};

/// Compiles the case once and checks it for all these sequence lengths.
void check(AttentionCase c, llvm::ArrayRef<int64_t> lengths = {}) {
  if (!isDrawn())
    return;
  SCOPED_TRACE(c.name);
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  if (!kernel)
    return;
  if (!c.remark.empty()) {
    EXPECT_NE(llvm::join(kernel->explain(), "\n").find(c.remark),
              std::string::npos)
        << llvm::join(kernel->explain(), "\n");
  }
  auto checkOnce = [&] {
    SCOPED_TRACE(std::to_string(c.queryCount) + " queries, " +
                 std::to_string(c.keyCount) + " keys");
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<Buffer> outputs = run(*kernel, inputs, c.layout);
    if (!outputs.empty())
      expectClose(outputs[0], c.getExpected(inputs), "output", c.tolerance);
  };
  if (lengths.empty())
    return checkOnce();
  for (int64_t length : lengths) {
    c.tokens(c.hasFixedQueries ? c.queryCount : length, length);
    checkOnce();
  }
}

void checkAll(llvm::ArrayRef<AttentionCase> cases,
              llvm::ArrayRef<int64_t> lengths = {}) {
  for (const AttentionCase &c : cases)
    check(c, lengths);
}

const int64_t formLengths[] = {0, 1, 2, 31, 33, 100, 257};

//===----------------------------------------------------------------------===//
// Forms
//===----------------------------------------------------------------------===//

constexpr const char *kFactors = "(QKᵀ)V becomes Q(KᵀV)";

TEST(Forms, NonCausal) {
  checkAll(
      {AttentionCase("quadratic")
           .configured("form = quadratic")
           .explained("the quadratic form was requested"),
       AttentionCase("reassociated").reassociated("always").explained(kFactors),
       AttentionCase("normalised, quadratic")
           .features(FeatureMapKind::Elu1)
           .normalized()
           .configured("form = quadratic"),
       AttentionCase("normalised, reassociated")
           .features(FeatureMapKind::Elu1)
           .normalized()
           .reassociated("always"),
       AttentionCase("at run time")
           .features(FeatureMapKind::Elu1)
           .normalized()
           .explained("at run time")},
      {0, 1, 2, 8, 31, 33, 100, 257, 1024});
}

// The form a kernel chose shows in its bits.
TEST(Forms, RunTimeChoiceTakesBothSides) {
  AttentionCase c("either");
  c.sizes(64, 64);
  std::optional<Kernel> either = compile(c.getText(), c.compiler);
  std::optional<Kernel> reassociated =
      compile(c.getText(), c.reassociated("always").compiler);
  std::optional<Kernel> quadratic =
      compile(c.getText(), c.reassociated("never").compiler);
  ASSERT_TRUE(either && reassociated && quadratic);
  for (auto [tokens, isLong] : {std::pair(2, false), std::pair(1000, true)}) {
    std::vector<Buffer> inputs = c.tokens(tokens).getInputs();
    auto bits = [&](const Kernel &kernel) {
      return run(kernel, inputs).at(0).getBits();
    };
    EXPECT_NE(bits(*reassociated), bits(*quadratic)) << tokens;
    EXPECT_EQ(bits(*either), bits(isLong ? *reassociated : *quadratic))
        << tokens;
  }
}

TEST(Forms, CausalScan) {
  for (const char *form : {"state_tile", "token", "chunk:16", "chunk:64"}) {
    AttentionCase c(form);
    c.causal().form(form).sizes(24, 40);
    check(c, formLengths);
    check(c.features(FeatureMapKind::Elu1).normalized(), formLengths);
  }
}

TEST(Forms, Softmax) {
  checkAll({AttentionCase("all keys").softmax().scaled(0.25),
            AttentionCase("causal").softmax().causal().scaled(0.25),
            AttentionCase("unscaled").softmax().causal()},
           formLengths);
}

TEST(Forms, DifferentNumbersOfQueriesAndKeys) {
  for (auto [queries, keys] : std::initializer_list<std::pair<int, int>>{
           {7, 100}, {100, 7}, {1, 33}, {33, 1}, {5, 0}, {0, 5}})
    checkAll({AttentionCase("quadratic")
                  .tokens(queries, keys)
                  .configured("form = quadratic"),
              AttentionCase("reassociated")
                  .tokens(queries, keys)
                  .features(FeatureMapKind::Relu2)
                  .normalized()
                  .reassociated("always"),
              AttentionCase("softmax").tokens(queries, keys).softmax()});
}

// Rows rather than panels of queries, as in decoding over a cache of keys.
TEST(Forms, FewQueries) {
  auto few = [](const char *name, int64_t queries = 1) {
    return AttentionCase(name)
        .fixedQueries(queries)
        .sizes(20, 24)
        .heads(8, 2, 4)
        .scaled(0.25)
        .explained("token: one pass over the keys");
  };
  auto linear = [&](const char *name) {
    return few(name).normalized().reassociated("never");
  };
  checkAll({few("softmax").softmax(), few("four", 4).softmax().masked(),
            few("three", 3).softmax().type(DType::BF16),
            linear("elu1").features(FeatureMapKind::Elu1),
            linear("masked elu1").features(FeatureMapKind::Elu1).masked(),
            linear("exp").features(FeatureMapKind::Exp).masked(),
            linear("softmax_kernel").features(FeatureMapKind::SoftmaxKernel),
            linear("region").features(Region::Captured).type(DType::F64),
            few("plain", 2).reassociated("never")},
           {0, 1, 2, 31, 64, 100, 300});
  check(few("tokens first").softmax().laidOut(Layout::TokensFirst));
  check(few("backwards").softmax().laidOut(Layout::AllBackwards));
}

// Static and aligned as in decoding: one query and its own key, all visible.
TEST(Forms, OneCausalToken) {
  for (int64_t tokens : {1, 4}) {
    AttentionCase c("causal softmax");
    c.open(Extents::Static).tokens(tokens).softmax().causal().sizes(64, 64);
    check(c);
    check(c.masked());
  }
}

//===----------------------------------------------------------------------===//
// Feature maps, normalizers
//===----------------------------------------------------------------------===//

TEST(Forms, FeatureMaps) {
  auto inEveryForm = [](AttentionCase c) {
    check(c.configured("form = quadratic"));
    check(c.configured("").reassociated("always"));
    check(c.causal());
  };
  for (FeatureMapKind map : allMaps) {
    // 20 and 12: rows of φ are padded in the kernels, and φ(0) is not 0.
    AttentionCase c(reference::featureMapName(map));
    c.features(map).tokens(45).sizes(20, 12).positive();
    inEveryForm(c.normalized());
    // A map of its own without a normaliser.
    c.normalize.reset();
    if (map == FeatureMapKind::Exp)
      inEveryForm(c);
    else
      check(c.causal());
  }
  AttentionCase c("region");
  c.tokens(45).sizes(20, 12).normalized();
  check(c.features(Region::Constants));
  inEveryForm(c.features(Region::Captured));
}

TEST(Forms, FeatureMapsInOtherForms) {
  for (FeatureMapKind map :
       {FeatureMapKind::Relu2, FeatureMapKind::Elu1,
        FeatureMapKind::SoftmaxKernel, FeatureMapKind::Exp}) {
    AttentionCase c(featureMapName(map));
    c.causal().features(map).positive().normalized();
    check(c.form("token"));
    check(c.form("chunk:16"));
  }
  for (const char *form : {"token", "chunk:16"}) {
    AttentionCase c(form);
    check(c.causal().form(form).features(Region::Captured).normalized());
  }
}

TEST(Forms, Normalizers) {
  using N = Normalize;
  std::pair<const char *, N> normalizers[] = {
      {"eps", N{0.5, {}, {}}},
      {"eps 0", N{0.0, {}, {}}},
      // Positive and negative denominators, on both sides of the bound.
      {"floor", N{{}, 1.5, {}}},
      {"clamp", N{0.5, {}, 0.25}}};
  for (auto &[name, normalize] : normalizers) {
    AttentionCase c(name);
    c.normalized(normalize).scaled(0.5);
    if (!normalize.floor)
      c.positive();
    check(c.configured("form = quadratic"));
    check(c.configured("").reassociated("always"));
    check(c.causal());
  }
}

// relu of negative tokens is 0, and so are all denominators: 0, not NaN.
TEST(Forms, ZeroDenominators) {
  AttentionCase c("eps 0");
  c.features(FeatureMapKind::Relu).normalized({0.0});
  c.low = -2;
  c.high = -1;
  check(c.configured("form = quadratic"));
  check(c.configured("").reassociated("always"));
  check(c.causal());
  check(c.form("chunk:16"));
}

TEST(Forms, LargeExponents) {
  // e^x of these overflows f32 unless it is stabilised.
  AttentionCase c("exp");
  c.features(FeatureMapKind::Exp).normalized({0.0}).within(2e-5);
  c.low = 50;
  c.high = 150;
  check(c.configured("form = quadratic"));
  check(c.configured("").reassociated("always"));
  check(c.causal());
}

//===----------------------------------------------------------------------===//
// Masks, heads, sizes, shapes
//===----------------------------------------------------------------------===//

TEST(Forms, Masks) {
  auto base = [](const char *name) {
    return AttentionCase(name).masked().batches(2).tokens(70);
  };
  auto mapped = [&](const char *name) {
    return base(name).features(FeatureMapKind::Elu1).normalized();
  };
  auto stabilised = [&](const char *name) {
    return base(name).features(FeatureMapKind::Exp).normalized();
  };
  checkAll(
      {base("softmax").softmax(), base("causal softmax").softmax().causal(),
       mapped("quadratic").configured("form = quadratic"),
       mapped("reassociated").reassociated("always"), mapped("causal").causal(),
       mapped("token").causal().form("token"),
       mapped("chunk").causal().form("chunk:16"),
       stabilised("exp, quadratic").configured("form = quadratic"),
       stabilised("exp, reassociated").reassociated("always"),
       stabilised("exp, causal").causal(),
       stabilised("exp, token").causal().form("token"),
       base("softmax_kernel").features(FeatureMapKind::SoftmaxKernel).causal(),
       base("without normaliser").causal()});
}

TEST(Forms, GroupedHeads) {
  std::tuple<int64_t, int64_t, int64_t> heads[] = {
      {6, 2, 2}, {2, 1, 4}, {1, 2, 2}, {8, 2, 4}};
  for (auto [q, k, v] : heads) {
    std::string name = std::to_string(q) + " query, " + std::to_string(k) +
                       " key, " + std::to_string(v) + " value heads";
    AttentionCase c(name);
    c.heads(q, k, v).features(FeatureMapKind::Elu1).normalized();
    check(c.configured("form = quadratic"));
    check(c.configured("").reassociated("always"));
    check(c.causal());
    check(c.form("token"));
  }
  check(AttentionCase("softmax").heads(6, 2, 2).softmax());
}

TEST(Forms, ChunksUnderARunningMaximum) {
  checkAll({AttentionCase("chunk")
                .causal()
                .heads(4, 2, 2)
                .features(FeatureMapKind::Exp)
                .normalized()
                .form("chunk:16")},
           formLengths);
}

TEST(Forms, HeadSizes) {
  std::pair<int64_t, int64_t> sizes[] = {
      {1, 1},     {3, 3},     {60, 60}, {64, 64}, {100, 100},
      {128, 128}, {256, 256}, {1, 40},  {40, 1},  {17, 96}};
  for (auto [k, v] : sizes) {
    AttentionCase c("K " + std::to_string(k) + ", V " + std::to_string(v));
    c.sizes(k, v).tokens(40);
    if (k == 3 || k == 100 || k != v)
      check(c.softmax().scaled(1 / std::sqrt(double(k))));
    c.isSoftmax = false;
    c.features(FeatureMapKind::Elu1).normalized();
    if (k <= 60 || k != v)
      check(c.reassociated("always"));
    check(c.causal());
  }
}

TEST(Forms, StaticAndDynamicShapes) {
  for (Extents extents : {Extents::Static, Extents::Dynamic})
    for (int64_t length : {1, 37}) {
      std::string name = extents == Extents::Static ? "static" : "dynamic";
      AttentionCase c(name);
      c.open(extents).tokens(length).sizes(20, 24);
      c.features(FeatureMapKind::Elu1).normalized();
      check(c.configured("form = quadratic"));
      check(c.configured("").reassociated("always"));
      check(c.causal());
    }
}

// The oracle takes no such operands; what is left of an output is 0.
TEST(Forms, NoBatchHeadsOrFeatures) {
  auto empty = [](const char *name) {
    return AttentionCase(name).open(Extents::Dynamic).normalized();
  };
  for (AttentionCase c : {empty("causal").causal(),
                          empty("quadratic").configured("form = quadratic"),
                          empty("reassociated").reassociated("always")}) {
    SCOPED_TRACE(c.name);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    AttentionCase noBatch = c, noHeads = c, noKeys = c, noValues = c;
    for (const AttentionCase &sized :
         {noBatch.batches(0), noHeads.heads(0, 0, 0), noKeys.sizes(0, 4),
          noValues.sizes(4, 0)}) {
      std::vector<Buffer> outputs = run(*kernel, sized.getInputs());
      ASSERT_FALSE(outputs.empty());
      for (double x : outputs[0].toArray().data)
        EXPECT_EQ(x, 0);
    }
  }
}

TEST(Forms, Layouts) {
  for (Layout layout : {Layout::TokensFirst, Layout::Packed, Layout::Backwards,
                        Layout::AllBackwards, Layout::EveryOther}) {
    AttentionCase c(test::getName(layout));
    c.laidOut(layout).batches(2).tokens(37).sizes(20, 24);
    check(c.softmax());
    c.isSoftmax = false;
    c.features(FeatureMapKind::Elu1).normalized();
    check(c.reassociated("always"));
    check(c.causal());
    check(c.form("chunk:16"));
  }
}

TEST(Forms, ElementTypes) {
  for (DType dtype : {DType::F64, DType::F16, DType::BF16}) {
    AttentionCase c{std::string(linattn::getName(dtype))};
    c.type(dtype).tokens(70).sizes(20, 24).scaled(0.25);
    check(c.softmax().causal());
    c.isSoftmax = c.isCausal = false;
    c.features(FeatureMapKind::Elu1).normalized();
    check(c.configured("form = quadratic"));
    check(c.configured("").reassociated("always"));
    check(c.causal());
    if (dtype == DType::BF16)
      check(c.form("chunk:16"));
    check(c.form("auto").features(FeatureMapKind::Exp));
  }
}

} // namespace
