//===- AttentionErrorsTest.cpp - Operands the oracle refuses --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReferenceTestUtils.h"

using namespace linattn::reference;
using namespace linattn::reference::test;

static void expectRefused(const Array &q, const Array &k, const Array &v,
                          const AttentionOptions &options,
                          const std::string &message) {
  expectError(attention(q, k, v, options), message);
}

TEST(AttentionErrors, Operands) {
  Array x({1, 1, 2, 4});
  AttentionOptions options;
  expectRefused(x, Array({1, 1, 128, 4}), Array({1, 1, 64, 4}), options,
                "expected key and value to have the same sequence length, but "
                "got 128 and 64");
  expectRefused(Array({2, 4}), x, x, options,
                "expected query to have rank 4, but got 2");
  expectRefused(x, Array({1, 1, 2, 3}), x, options,
                "expected query and key to have the same number of features, "
                "but got 4 and 3");
  expectRefused(x, Array({2, 1, 2, 4}), x, options,
                "expected query and key to have the same batch size, but got 1 "
                "and 2");
  expectRefused(x, x, Array({3, 1, 2, 4}), options,
                "expected key and value to have the same batch size, but got 1 "
                "and 3");
  expectRefused(x, x, Array({1, 0, 2, 4}), options,
                "expected value to have at least one head and one feature, but "
                "got [1, 0, 2, 4]");
  expectRefused(x, x, Array({1, 1, 2, 4}, std::vector<double>{1}), options,
                "expected value of shape [1, 1, 2, 4] to hold 8 elements, but "
                "got 1");
  expectRefused(x, x, Array({1, 1, -2, 4}, std::vector<double>{}), options,
                "expected value to have no negative size, but got [1, 1, -2, "
                "4]");
  expectRefused(x, Array({1, 2, 2, 4}), Array({1, 3, 2, 4}), options,
                "expected key and value to have the same number of heads, or "
                "one a multiple of the other, but got 2 and 3");
  expectRefused(Array({1, 3, 2, 4}), Array({1, 2, 2, 4}), x, options,
                "expected query and state to have the same number of heads, or "
                "one a multiple of the other, but got 3 and 2");
}

TEST(AttentionErrors, Options) {
  Array x({1, 1, 2, 4});
  AttentionOptions options;
  options.causal = true;
  expectRefused(Array({1, 1, 3, 4}), x, x, options,
                "expected query and key to have the same sequence length, but "
                "got 3 and 2");
  options = AttentionOptions();
  options.mask = Array({2, 1});
  expectRefused(x, x, x, options,
                "expected mask to have shape [1, 2], but got [2, 1]");
  options = softmax();
  options.featureMap = makeMap(FeatureMapKind::Elu1);
  expectRefused(x, x, x, options,
                "expected feature map identity with softmax weights, but got "
                "elu");
  options = softmax();
  options.normalize = Normalize();
  expectRefused(x, x, x, options,
                "expected no normalize with softmax weights, which sum to one "
                "already, but got one");
  options = linear(FeatureMapKind::Custom);
  expectRefused(x, x, x, options,
                "expected feature map custom to have a function, but got none");
  expectError(weights(x, x, options),
              "expected feature map custom to have a function, but got none");
}

TEST(AttentionErrors, NormalizeNumbers) {
  Array x({1, 1, 2, 4});
  AttentionOptions options;
  options.normalize = Normalize{1e-6, 1e-4, std::nullopt};
  expectRefused(x, x, x, options,
                "expected normalize to have either eps or floor, but got both");
  options.normalize = Normalize{-1.0, std::nullopt, std::nullopt};
  expectRefused(x, x, x, options,
                "expected normalize eps of at least 0, but got -1.000000");
  options.normalize = Normalize{std::nullopt, 0.0, std::nullopt};
  expectRefused(x, x, x, options,
                "expected normalize floor above 0, but got 0.000000");
  options.normalize = Normalize{std::nullopt, std::nullopt, -2.0};
  expectRefused(x, x, x, options,
                "expected normalize clamp above 0, but got -2.000000");
  options.normalize = {std::nullopt, std::nullopt, std::nullopt, -3.0};
  expectRefused(x, x, x, options,
                "expected normalize abs_floor above 0, but got -3.000000");
  options.normalize->absFloor = 1.0;
  options.featureMap = makeMap(FeatureMapKind::Exp);
  expectRefused(x, x, x, options,
                "expected no abs_floor with the exp map, but got one");
}

TEST(StateErrors, StateAndRead) {
  Array x({1, 1, 2, 4});
  StateOptions options;
  expectError(state(x, Array({1, 1, 3, 4}), options),
              "expected key and value to have the same sequence length, but "
              "got 2 and 3");
  options.mask = Array({2});
  expectError(state(x, x, options),
              "expected mask to have shape [1, 2], but got [2]");

  State sums{Array({1, 1, 4, 3})};
  expectError(read(Array({1, 1, 2, 3}), sums, {}),
              "expected query and state to have the same number of features, "
              "but got 3 and 4");
  expectError(read(Array({2, 1, 2, 4}), sums, {}),
              "expected query and state to have the same batch size, but got 2 "
              "and 1");
  ReadOptions normalized;
  normalized.normalize = Normalize();
  expectError(read(x, sums, normalized),
              "expected state to carry z for a normalized read, but got none");
  sums.z = Array({1, 1, 4});
  expectError(read(x, sums, {}),
              "expected state without z for a read that is not normalized, but "
              "got one");
  normalized.featureMap = makeMap(FeatureMapKind::Exp);
  expectError(
      read(x, sums, normalized),
      "expected state to carry m for the normalized exp map or an input "
      "gate, but got none");
  normalized.featureMap = {};
  sums.m = Array({1, 1});
  expectError(read(x, sums, normalized),
              "expected state without m unless the exp map is normalized or a "
              "gate is given, but got one");
  sums.m.reset();
  sums.z = Array({1, 4});
  expectError(read(x, sums, normalized),
              "expected state z to have shape [1, 1, 4], but got [1, 4]");
}
