//===- DeterminismTest.cpp - The same bits, whatever the circumstances ----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splitting a sequence, later tokens, threads, the rest of the batch, memory
// layout: none of them changes a bit.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"

using namespace linattn;
using namespace linattn::test;

namespace {

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

/// Runs the first tokens, then the others from the state the first left behind.
/// Returns the output of all tokens and the final state.
std::vector<Array> runInTwo(const ScanCase &c, const Kernel &kernel,
                            const std::vector<Buffer> &inputs, int64_t split) {
  std::vector<std::string> names = c.getNames();
  std::vector<Buffer> states;
  std::vector<Array> parts;
  std::pair<int64_t, int64_t> ranges[] = {{0, split}, {split, c.tokenCount}};
  for (auto [begin, end] : ranges) {
    std::vector<Buffer> some;
    size_t state = 0;
    for (auto [name, input] : llvm::zip(names, inputs)) {
      bool isState = name == "S" || name == "z" || name == "m";
      Array array = input.toArray();
      if (isState && begin > 0)
        array = states[state++].toArray();
      else if (name == "mask")
        array = sliceTokens(array, begin, end, 1);
      else if (array.rank() >= 3 && !isState)
        array = sliceTokens(array, begin, end);
      some.emplace_back(input.getDType(), array);
    }
    std::vector<Buffer> outputs = run(kernel, some);
    if (outputs.empty())
      return {};
    parts.push_back(outputs[0].toArray());
    states.assign(outputs.begin() + 1, outputs.end());
  }
  // One head of one batch element at a time: tokens of both parts in a row.
  Array whole({c.batch, c.outputHeads(), c.tokenCount, c.valueSize});
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < c.outputHeads(); ++h) {
      int64_t first = split * c.valueSize;
      int64_t second = (c.tokenCount - split) * c.valueSize;
      std::copy_n(parts[0].row({b, h}), first, whole.row({b, h}));
      std::copy_n(parts[1].row({b, h}), second, whole.row({b, h}) + first);
    }
  std::vector<Array> results{whole};
  for (const Buffer &state : states)
    results.push_back(state.toArray());
  return results;
}

void checkSplits(ScanCase c, bool isBitwise) {
  SCOPED_TRACE(c.name + " " + c.compiler.form);
  c.tokens(101);
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  if (!kernel)
    return;
  std::vector<Buffer> inputs = c.getInputs();
  std::vector<Buffer> whole = run(*kernel, inputs);
  ASSERT_FALSE(whole.empty());
  for (int64_t split : {0, 1, 15, 32, 50, 64, 77, 100, 101}) {
    SCOPED_TRACE("split at " + std::to_string(split));
    std::vector<Array> parts = runInTwo(c, *kernel, inputs, split);
    ASSERT_EQ(parts.size(), whole.size());
    for (auto [result, unsplit] : llvm::zip(parts, whole)) {
      if (isBitwise)
        EXPECT_EQ(result.data, unsplit.toArray().data);
      else
        expectClose(unsplit, result, "split");
    }
  }
}

TEST(Determinism, SplitsOfASequence) {
  auto plain = [](const char *form) { return ScanCase("plain").form(form); };
  auto normalised = [](const char *form) {
    return ScanCase("normalised")
        .form(form)
        .sizes(20, 24)
        .features(FeatureMapKind::Elu1)
        .normalized();
  };
  auto stabilised = [](const char *form) {
    return ScanCase("running maximum")
        .form(form)
        .features(FeatureMapKind::Exp)
        .normalized();
  };
  auto gated = [](const char *form) {
    return ScanCase("gates and mask")
        .form(form)
        .decayed(Decay::Channel)
        .valueDecayed()
        .masked()
        .heads(4, 2, 2);
  };
  for (const char *form : {"state_tile", "token"}) {
    checkSplits(plain(form), /*isBitwise=*/true);
    checkSplits(normalised(form), true);
    checkSplits(stabilised(form), true);
    checkSplits(gated(form), true);
  }
  checkSplits(plain("chunk:64"), /*isBitwise=*/false);
  checkSplits(normalised("chunk:16"), false);
  for (const char *form : {"token", "chunk:16"}) {
    bool isBitwise = llvm::StringRef(form) == "token";
    checkSplits(ScanCase("delta").delta().decayed(Decay::Token).form(form),
                isBitwise);
    checkSplits(ScanCase("dplr")
                    .dplr(reference::Transition::Before)
                    .decayed(Decay::Channel)
                    .sizes(20, 24)
                    .form(form),
                isBitwise);
    checkSplits(ScanCase("bonus")
                    .dplr(reference::Transition::After)
                    .bonus()
                    .heads(4, 2, 2)
                    .sizes(20, 24)
                    .form(form),
                isBitwise);
  }
}

// The token form is what runs after a prompt, and the tile what reads it.
TEST(Determinism, TokenAndTileFormsAgree) {
  ScanCase c("forms");
  c.sizes(20, 24).features(FeatureMapKind::Elu1).normalized();
  std::optional<Kernel> tile =
      compile(c.getText(), c.form("state_tile").compiler);
  std::optional<Kernel> token = compile(c.getText(), c.form("token").compiler);
  ASSERT_TRUE(tile && token);
  std::vector<Buffer> inputs = c.getInputs();
  std::vector<Buffer> one = run(*tile, inputs), other = run(*token, inputs);
  ASSERT_FALSE(one.empty() || other.empty());
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(one[i].getBits(), other[i].getBits()) << "result " << i;
}

//===----------------------------------------------------------------------===//
// Causality
//===----------------------------------------------------------------------===//

/// The bits of the first outputs, whatever the later tokens are.
void checkCausality(AttentionCase c, int64_t tokens = 100) {
  SCOPED_TRACE(c.name);
  c.tokens(tokens).causal();
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  if (!kernel)
    return;
  std::vector<Buffer> inputs = c.getInputs();
  std::vector<Buffer> before = run(*kernel, inputs);
  ASSERT_FALSE(before.empty());
  for (int64_t changed : {1, 2, 17, 40, 63, 64, 99})
    for (double value : {1000.0, double(NAN)}) {
      if (changed >= tokens)
        continue;
      SCOPED_TRACE("token " + std::to_string(changed) + " becomes " +
                   std::to_string(value));
      std::vector<Buffer> others;
      for (size_t i = 0; i < inputs.size(); ++i) {
        Array array = inputs[i].toArray();
        for (int64_t h = 0; i < 3 && h < array.dim(1); ++h)
          std::fill_n(array.row({0, h, changed}), array.dim(3), value);
        others.emplace_back(inputs[i].getDType(), array);
      }
      std::vector<Buffer> after = run(*kernel, others);
      ASSERT_FALSE(after.empty());
      EXPECT_EQ(sliceTokens(after[0].toArray(), 0, changed).data,
                sliceTokens(before[0].toArray(), 0, changed).data);
    }
}

TEST(Determinism, LaterTokensDoNotMatter) {
  auto mapped = [](const char *name) {
    return AttentionCase(name).features(FeatureMapKind::Elu1).normalized();
  };
  checkCausality(mapped("state_tile").form("state_tile"));
  checkCausality(mapped("token").form("token"));
  checkCausality(
      AttentionCase("exp").features(FeatureMapKind::Exp).normalized());
  checkCausality(AttentionCase("softmax").softmax());
  checkCausality(AttentionCase("few").softmax().open(Extents::Static),
                 /*tokens=*/4);
  checkCausality(mapped("chunk").form("chunk:16"));
}

//===----------------------------------------------------------------------===//
// Threads, batch, repetition, layout
//===----------------------------------------------------------------------===//

std::vector<AttentionCase> someAttentions() {
  auto mapped = [](const char *name) {
    return AttentionCase(name)
        .batches(3)
        .tokens(101)
        .sizes(20, 24)
        .features(FeatureMapKind::Elu1)
        .normalized();
  };
  AttentionCase softmax("softmax");
  softmax.batches(3).tokens(101).sizes(20, 24).softmax();
  return {mapped("causal").causal(),
          mapped("chunk").causal().form("chunk:16"),
          mapped("reassociated").reassociated("always"),
          mapped("quadratic").configured("form = quadratic"),
          mapped("grouped").causal().heads(4, 2, 2),
          softmax};
}

TEST(Determinism, ThreadsAndRepetition) {
  for (AttentionCase &c : someAttentions()) {
    SCOPED_TRACE(c.name);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<uint64_t> bits;
    for (int threads : {1, 2, 4, 1, 4}) {
      std::vector<Buffer> outputs =
          run(*kernel, inputs, Layout::Contiguous, threads);
      ASSERT_FALSE(outputs.empty());
      if (bits.empty())
        bits = outputs[0].getBits();
      EXPECT_EQ(outputs[0].getBits(), bits) << threads << " threads";
    }
  }
}

TEST(Determinism, TheRestOfTheBatch) {
  for (AttentionCase &c : someAttentions()) {
    SCOPED_TRACE(c.name);
    c.open(Extents::Dynamic);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<Buffer> outputs = run(*kernel, inputs);
    ASSERT_FALSE(outputs.empty());
    for (int64_t b = 0; b < c.batch; ++b) {
      std::vector<Buffer> alone;
      for (Buffer &input : inputs)
        alone.emplace_back(c.dtype, sliceTokens(input.toArray(), b, b + 1, 0));
      std::vector<Buffer> one = run(*kernel, alone);
      ASSERT_FALSE(one.empty());
      EXPECT_EQ(one[0].toArray().data,
                sliceTokens(outputs[0].toArray(), b, b + 1, 0).data)
          << "batch element " << b;
    }
  }
}

TEST(Determinism, MemoryLayout) {
  for (AttentionCase &c : someAttentions()) {
    SCOPED_TRACE(c.name);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    std::vector<uint64_t> bits;
    for (Layout layout :
         {Layout::Contiguous, Layout::TokensFirst, Layout::Packed,
          Layout::Backwards, Layout::AllBackwards, Layout::EveryOther}) {
      std::vector<Buffer> outputs =
          run(*kernel, c.laidOut(layout).getInputs(), layout);
      ASSERT_FALSE(outputs.empty());
      if (bits.empty())
        bits = outputs[0].getBits();
      EXPECT_EQ(outputs[0].getBits(), bits) << test::getName(layout);
    }
  }
}

} // namespace
