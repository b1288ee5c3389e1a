//===- WorkedExamplesTest.cpp - Published numbers through the compiler ----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small attentions whose digits are known; the documentation quotes them.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"

using namespace linattn;
using namespace linattn::test;

namespace {

using Rows = std::vector<std::vector<double>>;

/// One batch element and head.
Array oneHead(const Rows &rows) {
  std::vector<double> data;
  for (const std::vector<double> &row : rows)
    data.insert(data.end(), row.begin(), row.end());
  return Array({1, 1, static_cast<int64_t>(rows.size()),
                static_cast<int64_t>(rows[0].size())},
               data);
}

const Array exampleQ = oneHead(
    {{1, 0, 1, 0}, {0, 2, 0, 1}, {1, 1, 1, 0}, {0, 0, 1, 1}, {1, 0, 0, 1}});
const Array exampleK = oneHead(
    {{0, 1, 0, 1}, {1, 0, 1, 0}, {1, 1, 0, 0}, {0, 0, 1, 1}, {1, 0, .5, .5}});
const Array exampleV = oneHead(
    {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}, {.5, .5, .5, .5}});
const Array identity = oneHead({{1, 0, 0, 0, 0},
                                {0, 1, 0, 0, 0},
                                {0, 0, 1, 0, 0},
                                {0, 0, 0, 1, 0},
                                {0, 0, 0, 0, 1}});

/// Checks a case on given tokens, to the four digits that are printed.
void expectOutput(AttentionCase c, const Array &q, const Array &k,
                  const Array &v, const Rows &rows, double digits = 5.1e-5) {
  SCOPED_TRACE(c.name);
  c.heads(1, 1, 1).sizes(q.dim(3), v.dim(3));
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  if (!kernel)
    return;
  std::vector<Buffer> outputs = run(
      *kernel, {Buffer(c.dtype, q), Buffer(c.dtype, k), Buffer(c.dtype, v)});
  ASSERT_FALSE(outputs.empty());
  Array out = outputs[0].toArray(), expected = oneHead(rows);
  ASSERT_EQ(out.data.size(), expected.data.size());
  for (size_t i = 0; i < out.data.size(); ++i)
    EXPECT_NEAR(out.data[i], expected.data[i], digits) << "element " << i;
}

/// The same in the forms that non-causal attention may take.
void expectInBothForms(AttentionCase c, const Array &q, const Array &k,
                       const Array &v, const Rows &rows,
                       double digits = 5.1e-5) {
  expectOutput(c.configured("form = quadratic"), q, k, v, rows, digits);
  expectOutput(c.configured("").reassociated("always"), q, k, v, rows, digits);
}

TEST(WorkedExamples, Elu) {
  AttentionCase c = AttentionCase("1").features(FeatureMapKind::Elu1);
  expectInBothForms(c, exampleQ, exampleK, exampleV,
                    {{12.75, 14.75, 13.75, 13.75},
                     {16.75, 13.75, 15.75, 14.75},
                     {15.25, 16.25, 16.25, 15.25},
                     {13.5, 13.5, 12.5, 14.5},
                     {13.75, 13.75, 13.75, 13.75}});
  expectInBothForms(c.normalized(), exampleQ, exampleK, exampleV,
                    {{.2802, .3242, .3022, .3022},
                     {.3252, .2670, .3058, .2864},
                     {.2905, .3095, .3095, .2905},
                     {.3, .3, .2778, .3222},
                     {.3022, .3022, .3022, .3022}});
  // The unit vectors as values: the outputs are the implicit weights.
  c.name = "2";
  expectInBothForms(c, exampleQ, exampleK, identity,
                    {{.1758, .2198, .1978, .1978, .2088},
                     {.2330, .1748, .2136, .1942, .1845},
                     {.1905, .2095, .2095, .1905, .2},
                     {.2, .2, .1778, .2222, .2},
                     {.1978, .1978, .1978, .1978, .2088}});
  c.normalize.reset();
  expectInBothForms(c, exampleQ, exampleK, identity,
                    {{8, 10, 9, 9, 9.5},
                     {12, 9, 11, 10, 9.5},
                     {10, 11, 11, 10, 10.5},
                     {9, 9, 8, 10, 9},
                     {9, 9, 9, 9, 9.5}});
}

TEST(WorkedExamples, Softmax) {
  AttentionCase c = AttentionCase("3").softmax().scaled(0.5);
  expectOutput(c, exampleQ, exampleK, exampleV,
               {{.2254, .4135, .2964, .2964},
                {.4602, .1475, .3018, .2058},
                {.2495, .3481, .3481, .2495},
                {.2854, .2854, .2106, .4089},
                {.3108, .3108, .3108, .3108}});
  expectOutput(c, exampleQ, exampleK, identity,
               {{.1095, .2976, .1805, .1805, .2318},
                {.4026, .0898, .2442, .1481, .1153},
                {.1519, .2505, .2505, .1519, .1951},
                {.1903, .1903, .1154, .3137, .1903},
                {.1892, .1892, .1892, .1892, .2430}});
}

TEST(WorkedExamples, CausalElu) {
  for (const char *form : {"state_tile", "token", "chunk:2"}) {
    AttentionCase c = AttentionCase(std::string("4, ") + form);
    c.causal().features(FeatureMapKind::Elu1).normalized().form(form);
    expectOutput(c, exampleQ, exampleK, exampleV,
                 {{1, 0, 0, 0},
                  {.5714, .4286, 0, 0},
                  {.3125, .3438, .3438, 0},
                  {.25, .25, .2222, .2778},
                  {.3022, .3022, .3022, .3022}});
  }
}

TEST(WorkedExamples, Relu) {
  AttentionCase c =
      AttentionCase("5").features(FeatureMapKind::Relu).normalized();
  expectInBothForms(c, exampleQ, exampleK, exampleV,
                    {{.1364, .5, .3182, .3182},
                     {.5, .0385, .3462, .1923},
                     {.2333, .3667, .3667, .2333},
                     {.3, .3, .1, .5},
                     {.3182, .3182, .3182, .3182}});
  // A column of ones reads the denominators.
  c.normalize.reset();
  Array ones({1, 1, 5, 1}, 1.0);
  expectInBothForms(c, exampleQ, exampleK, ones,
                    {{5.5}, {6.5}, {7.5}, {5}, {5.5}});
  expectOutput(c.causal(), exampleQ, exampleK, ones,
               {{0}, {3}, {5}, {4}, {5.5}});
  // The first denominator is 0: its row is 0, not NaN.
  expectOutput(c.normalized(), exampleQ, exampleK, ones,
               {{0}, {1}, {1}, {1}, {1}});
}

const Array smallK = oneHead({{1, 0}, {0, 1}, {1, 1}});
const Array smallV = oneHead({{10, 20}, {30, 40}, {50, 60}});

TEST(WorkedExamples, States) {
  ScanCase c("6");
  c.heads(1, 1, 1).sizes(2, 2);
  std::optional<Kernel> kernel = compile(c.getText());
  ASSERT_TRUE(kernel);
  const Rows states[] = {
      {{10, 20}, {0, 0}}, {{10, 20}, {30, 40}}, {{60, 80}, {80, 100}}};
  const Rows outputs[] = {{{10, 20}}, {{30, 40}}, {{140, 180}}};
  Array state({1, 1, 2, 2});
  for (int64_t t = 0; t < 3; ++t) {
    Array k = sliceTokens(smallK, t, t + 1), v = sliceTokens(smallV, t, t + 1);
    DType f32 = DType::F32;
    std::vector<Buffer> results =
        run(*kernel, {Buffer(f32, k), Buffer(f32, k), Buffer(f32, v),
                      Buffer(f32, state)});
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0].toArray().data, oneHead(outputs[t]).data);
    state = results[1].toArray();
    EXPECT_EQ(state.data, oneHead(states[t]).data);
  }
  expectInBothForms(AttentionCase("6, non-causal"), smallK, smallK, smallV,
                    {{60, 80}, {80, 100}, {140, 180}}, 0);
  // Reading S₂ with [.5, .5]: two keys, one query.
  expectInBothForms(AttentionCase("6, read"), oneHead({{.5, .5}}),
                    sliceTokens(smallK, 0, 2), sliceTokens(smallV, 0, 2),
                    {{20, 30}}, 0);
}

TEST(WorkedExamples, SoftmaxKernelIsNotExp) {
  Array q = oneHead({{0, 0}}), k = oneHead({{0, 0}, {2, 0}});
  Array units = oneHead({{1, 0}, {0, 1}});
  AttentionCase c = AttentionCase("7").normalized({0.0});
  expectInBothForms(c.features(FeatureMapKind::SoftmaxKernel), q, k, units,
                    {{.6379, .3621}});
  expectInBothForms(c.features(FeatureMapKind::Exp), q, k, units,
                    {{.1925, .8075}});
}

TEST(WorkedExamples, NormaliserRules) {
  auto ratio = [](Normalize normalize, double numerator, double denominator,
                  double expected) {
    // One key of size 1: den = q k, num = q k v.
    expectInBothForms(AttentionCase("normaliser").normalized(normalize),
                      oneHead({{denominator}}), oneHead({{1}}),
                      oneHead({{numerator / denominator}}), {{expected}}, 1e-3);
  };
  ratio({0.5, {}, {}}, 3, 1, 2);
  ratio({0.0, {}, {}}, -1, -0.5, 2);
  ratio({{}, 1e-4, {}}, -1, -0.5, -1e4);
  ratio({{}, 1e-4, 10.0}, -1, -0.5, -10);
  ratio({0.0, {}, 1.5}, 3, 1, 1.5);
}

} // namespace
