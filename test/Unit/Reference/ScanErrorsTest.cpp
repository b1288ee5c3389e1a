//===- ScanErrorsTest.cpp - Scans that must be refused --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceTestUtils.h"

using namespace linattn::reference;
using namespace linattn::reference::test;

namespace {

/// A valid scan to spoil: B = 1, H = 1, T = 2, K = 4, V = 3.
struct ScanErrors : testing::Test {
  ScanOperands x{Array({1, 1, 2, 4}), Array({1, 1, 2, 4}), Array({1, 1, 2, 3})};
  ScanOptions options;
  std::optional<State> initial;

  void expectRefused(const std::string &message) {
    expectError(scan(x, options, initial), message);
  }
};

} // namespace

TEST_F(ScanErrors, Tokens) {
  x.v = Array({1, 1, 5, 3});
  expectRefused("expected key and value to have the same sequence length, but "
                "got 2 and 5");
  x.q = Array({1, 1, 7, 4});
  expectRefused("expected query and key to have the same sequence length, but "
                "got 7 and 2");
  x.q = Array({1, 1, 2, 5});
  x.v = Array({1, 1, 2, 3});
  expectRefused("expected query and key to have the same number of features, "
                "but got 5 and 4");
  x.q = Array({4});
  expectRefused("expected query to have rank 4, but got 1");
}

TEST_F(ScanErrors, Shapes) {
  x.decay = Array({3});
  expectRefused("expected decay to have shape [1], [1, 1, 2] or [1, 1, 2, 4], "
                "but got [3]");
  x.decay = Array({1}, std::vector<double>{});
  expectRefused("expected decay of shape [1] to hold 1 elements, but got 0");
  x.decay.reset();
  x.valueDecay = Array({1, 1, 2, 4});
  expectRefused("expected value decay to have shape [1, 1, 2, 3], but got "
                "[1, 1, 2, 4]");
  x.valueDecay.reset();
  x.mask = Array({2});
  expectRefused("expected mask to have shape [1, 2], but got [2]");
  x.mask.reset();
  options.readout = Readout::Exclusive;
  x.bonus = Array({4});
  expectRefused("expected bonus to have shape [1, 4], but got [4]");
  x.bonus.reset();
  options.update = UpdateRule::Delta;
  x.beta = Array({1, 1});
  expectRefused("expected beta to have shape [1, 1, 2] or [1, 1, 2, 3], but "
                "got [1, 1]");
  x.beta.reset();
  x.erase = Array({1, 1, 2, 3});
  expectRefused("expected erase to have shape [1, 1, 2, 4], but got [1, 1, 2, "
                "3]");
  x.erase.reset();
  x.write = Array({1, 1, 2, 4});
  expectRefused("expected write to have shape [1, 1, 2, 3], but got [1, 1, 2, "
                "4]");
  x.write.reset();
  options.update = UpdateRule::Dplr;
  x.a = Array({4}), x.b = Array({1, 1, 2, 4});
  expectRefused("expected a to have shape [1, 1, 2, 4], but got [4]");
  std::swap(x.a, x.b);
  expectRefused("expected b to have shape [1, 1, 2, 4], but got [4]");
}

TEST_F(ScanErrors, OperandsWithoutMeaning) {
  const std::pair<std::optional<Array> ScanOperands::*, const char *>
      forDelta[] = {{&ScanOperands::beta, "beta"},
                    {&ScanOperands::erase, "erase"},
                    {&ScanOperands::write, "write"}};
  for (auto [operand, name] : forDelta) {
    x.*operand = Array({1, 1, 2, 4});
    expectRefused("expected update delta with " + std::string(name) +
                  ", but got add");
    (x.*operand).reset();
  }
  x.bonus = Array({1, 4});
  expectRefused("expected readout exclusive with bonus, but got inclusive");
  x.beta = Array({1, 1, 2});
  options.update = UpdateRule::Delta;
  options.readout = Readout::Exclusive;
  expectRefused("expected update add or dplr with bonus, but got delta");
  x.bonus.reset(), x.beta.reset();
  options = {};
  options.transition = Transition::After;
  expectRefused("expected no transition with update add, but got one");
  options.update = UpdateRule::Delta;
  options.transition = Transition::Before;
  expectRefused("expected transition after with update delta, but got before");
  options.transition.reset();
  x.a = Array({1, 1, 2, 4});
  expectRefused("expected update dplr with a, but got delta");
  options.update = UpdateRule::Dplr;
  expectRefused("expected a and b with update dplr, but got a only");
  std::swap(x.a, x.b);
  expectRefused("expected a and b with update dplr, but got b only");
  x.b.reset();
  expectRefused("expected a and b with update dplr, but got neither");
}

TEST_F(ScanErrors, Normalize) {
  options.normalize = Normalize();
  x.valueDecay = Array({1, 1, 2, 3});
  expectRefused("expected no value decay with normalize, but got one");
  x.valueDecay.reset();
  options.update = UpdateRule::Delta;
  x.write = Array({1, 1, 2, 3});
  expectRefused("expected no write gate with normalize, but got one");
  x.write.reset();
  x.beta = Array({1, 1, 2, 3});
  expectRefused("expected beta of rank 3 with normalize, but got 4");
  x.beta.reset();
  options.featureMap = makeMap(FeatureMapKind::Exp);
  expectRefused("expected update add with the normalized exp map, but got "
                "delta");
  options.normalize->clamp = 0.0;
  expectRefused("expected normalize clamp above 0, but got 0.000000");
}

TEST_F(ScanErrors, Oja) {
  options.update = UpdateRule::Oja;
  expectRefused("expected beta of rank 3 with update oja, but got none");
  x.beta = Array({1, 1, 2, 3});
  expectRefused("expected beta of rank 3 with update oja, but got 4");
  x.beta = Array({1, 1, 2});
  options.transition = Transition::After;
  expectRefused("expected no transition with update oja, but got one");
  options.transition.reset();
  options.normalize = Normalize();
  expectRefused("expected no normalize with update oja, but got one");
}

TEST_F(ScanErrors, InputGate) {
  x.inputGate = Array({1, 1, 2});
  expectRefused("expected normalize with input gate, but got none");
  options.normalize = Normalize();
  options.featureMap = makeMap(FeatureMapKind::Exp);
  expectRefused("expected no input gate with the exp map, but got one");
  options.normalize->absFloor = 1.0;
  expectRefused("expected no abs_floor with the exp map, but got one");
  options.featureMap = {};
  options.readout = Readout::Exclusive;
  expectRefused(
      "expected readout inclusive with input gate, but got exclusive");
  options.readout = Readout::Inclusive;
  x.decay = Array({1, 1, 2, 4});
  expectRefused("expected decay of rank 1 or 3 with input gate, but got 4");
  x.decay.reset();
  options.update = UpdateRule::Delta;
  expectRefused("expected update add with input gate, but got delta");
  options.update = UpdateRule::Add;
  x.inputGate = Array({1, 2});
  expectRefused("expected input gate to have shape [1, 1, 2], but got [1, 2]");
  x.inputGate = Array({1, 1, 2});
  options.normalize->floor = 1.0;
  expectRefused("expected normalize to have either floor or abs_floor, but got "
                "both");
}

TEST_F(ScanErrors, Sequences) {
  for (std::vector<int64_t> offsets :
       std::vector<std::vector<int64_t>>{{}, {0, 1}, {1, 2}, {0, 2, 1, 2}}) {
    x.cuSeqlens = offsets;
    EXPECT_FALSE(static_cast<bool>(scan(x, options)));
  }
  expectRefused(
      "expected cu_seqlens to rise from 0 to 2, but got [0, 2, 1, 2]");
  x = {Array({2, 1, 2, 4}), Array({2, 1, 2, 4}), Array({2, 1, 2, 3})};
  x.cuSeqlens = std::vector<int64_t>{0, 2};
  expectRefused("expected batch size 1 with cu_seqlens, but got 2");
}

TEST_F(ScanErrors, InitialState) {
  initial = State{Array({1, 1, 3, 4})};
  expectRefused("expected initial state to have shape [1, 1, 4, 3], but got "
                "[1, 1, 3, 4]");
  initial = State{Array({1, 1, 4, 3})};
  options.normalize = Normalize();
  expectRefused("expected initial state to carry z for a normalized read, but "
                "got none");
  initial->z = Array({1, 1, 3});
  expectRefused("expected initial state z to have shape [1, 1, 4], but got [1, "
                "1, 3]");
  initial->z = Array({1, 1, 4});
  options.featureMap = makeMap(FeatureMapKind::Exp);
  expectRefused("expected initial state to carry m for the normalized exp map "
                "or an input gate, but got none");
  initial->m = Array({1, 2});
  expectRefused("expected initial state m to have shape [1, 1], but got [1, "
                "2]");
}
