//===- StateReadTest.cpp - States, reads and the naive loops --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace linattn;
using namespace linattn::test;

namespace {

//===----------------------------------------------------------------------===//
// state and read
//===----------------------------------------------------------------------===//

/// The two ops in a function: keys and values into a given state, queries out
/// of the sum.
std::string getStateReadText(const ScanCase &c) {
  auto tokens = [&](int64_t heads, int64_t size) {
    return getTensorType(c.dtype, {c.batch, heads, c.tokenCount, size},
                         c.extents, 2);
  };
  int64_t heads = c.stateHeads();
  DType type = c.accumulation();
  auto fixed = [&](std::vector<int64_t> shape) {
    return getTensorType(type, shape, Extents::Static, -1);
  };
  std::string q = tokens(c.queryHeads, c.keySize);
  std::string k = tokens(c.keyHeads, c.keySize);
  std::string v = tokens(c.valueHeads, c.valueSize);
  std::string o = tokens(c.outputHeads(), c.valueSize);
  std::string S = fixed({c.batch, heads, c.keySize, c.valueSize});
  std::string z = fixed({c.batch, heads, c.keySize});
  std::string m = fixed({c.batch, heads});

  std::string arguments, states, stateTypes = S, readState = "%r#0",
                                 readTypes = q + ", " + S;
  std::string names = "%r#0";
  if (c.normalize) {
    arguments += ", %z: " + z;
    states += " normalizer(%z)";
    stateTypes += ", " + z;
    readState += " normalizer(%r#1)";
    readTypes += ", " + z;
    names += ", %r#1";
  }
  if (c.isStabilised()) {
    arguments += ", %m: " + m;
    states += " running_max(%m)";
    stateTypes += ", " + m;
    names += ", %r#2";
  }
  // The state knows nothing of the division and the scale.
  ScanCase plain = c;
  plain.normalize.reset();
  plain.scale.reset();
  return llvm::formatv(
             "func.func @f(%q: {0}, %k: {1}, %v: {2}, %S: {4}{5}) "
             "-> ({3}, {6}) {{\n"
             "  %c2 = arith.constant 2 : index\n"
             "  %t = tensor.dim %q, %c2 : {0}\n"
             "  %into = tensor.empty(%t) : {3}\n"
             "  %r:{7} = linattn.state %k, %v init(%S){8}{9} : "
             "({1}, {2}, {6}) -> ({6})\n"
             "  %o = linattn.read %q, {10} into(%into){11} : ({12}, {3}) -> "
             "{3}\n"
             "  return %o, {13} : {3}, {6}\n}\n",
             q, k, v, o, S, arguments, stateTypes,
             1 + c.normalize.has_value() + c.isStabilised(), states,
             plain.getAttributes(), readState, c.getAttributes(), readTypes,
             names)
      .str();
}

void checkStateAndRead(const ScanCase &c) {
  SCOPED_TRACE(c.name);
  std::optional<Kernel> kernel = compile(getStateReadText(c), c.compiler);
  if (!kernel)
    return;
  for (int64_t tokens : {0, 1, 33, 100}) {
    ScanCase sized = c;
    sized.tokens(tokens);
    std::vector<Buffer> inputs = sized.getInputs();
    std::vector<Buffer> outputs = run(*kernel, inputs);
    ASSERT_FALSE(outputs.empty());
    // A scan ends in the same state.
    std::vector<Array> scanned = sized.getExpected(inputs);
    reference::State state{scanned[1]};
    if (c.normalize)
      state.z = scanned[2];
    if (c.isStabilised())
      state.m = scanned[3];
    reference::ReadOptions options;
    options.featureMap = c.getMap();
    options.normalize = c.normalize;
    options.scale = c.scale.value_or(1.0);
    expectClose(outputs[0],
                take(reference::read(inputs[0].toArray(), state, options)),
                "output");
    for (size_t i = 1; i < outputs.size(); ++i)
      expectClose(outputs[i], scanned[i], "state");
  }
}

TEST(StateAndRead, FromAGivenState) {
  for (const char *form : {"state_tile", "token"}) {
    std::string suffix = std::string(", ") + form;
    checkStateAndRead(ScanCase("plain" + suffix).form(form).scaled(0.5));
    checkStateAndRead(ScanCase("normalised" + suffix)
                          .form(form)
                          .sizes(20, 24)
                          .heads(8, 2, 4)
                          .features(FeatureMapKind::Elu1)
                          .normalized());
    checkStateAndRead(ScanCase("running maximum" + suffix)
                          .form(form)
                          .features(FeatureMapKind::Exp)
                          .normalized());
  }
}

//===----------------------------------------------------------------------===//
// Naive loops
//===----------------------------------------------------------------------===//

// The naive loops are linattn-run's reference; here they are tested.
TEST(NaiveLoops, Attention) {
  AttentionCase softmax("softmax");
  softmax.softmax().causal().masked().scaled(0.25);
  AttentionCase grouped("grouped");
  grouped.heads(8, 2, 4).features(FeatureMapKind::Elu1).normalized();
  AttentionCase stabilised("exp, causal");
  stabilised.features(FeatureMapKind::Exp).normalized().causal().masked();
  AttentionCase region("region");
  region.features(Region::Captured).normalized({{}, 0.5, 2.0});
  AttentionCase narrow("bf16");
  narrow.type(DType::BF16).features(FeatureMapKind::SoftmaxKernel).causal();
  for (AttentionCase c : {softmax, grouped, stabilised, region, narrow}) {
    SCOPED_TRACE(c.name);
    c.compiler.target = Target::Reference;
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    for (int64_t count : {0, 1, 33}) {
      std::vector<Buffer> inputs = c.tokens(count).getInputs();
      std::vector<Buffer> outputs = run(*kernel, inputs);
      ASSERT_FALSE(outputs.empty());
      expectClose(outputs[0], c.getExpected(inputs), "output");
    }
  }
}

TEST(NaiveLoops, Scan) {
  ScanCase stabilised("running maximum behind a mask");
  stabilised.features(FeatureMapKind::Exp).normalized().masked().empty();
  ScanCase gated("gates");
  gated.heads(4, 2, 2).decayed(Decay::Channel).valueDecayed().reversed();
  ScanCase bonus("bonus");
  bonus.bonus().decayed(Decay::Token).sequences({0, 0, 1, 20, 33});
  for (ScanCase c : {stabilised, gated, bonus}) {
    SCOPED_TRACE(c.name);
    c.compiler.target = Target::Reference;
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    // Some seeds mask the first token.
    for (uint64_t seed : {1, 2, 3, 4, 5, 6}) {
      std::vector<Buffer> inputs = c.getInputs(seed);
      std::vector<Buffer> outputs = run(*kernel, inputs);
      ASSERT_FALSE(outputs.empty());
      std::vector<Array> expected = c.getExpected(inputs);
      for (size_t i = 0; i < outputs.size(); ++i)
        expectClose(outputs[i], expected[i], "result");
    }
  }
}

} // namespace
