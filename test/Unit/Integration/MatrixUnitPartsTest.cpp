//===- MatrixUnitPartsTest.cpp - The same bits however calls are divided --===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a matrix unit, too, the bits of a sequence depend on its tokens alone.
//
//===----------------------------------------------------------------------===//

#include "MatrixUnitCases.h"

#include "linattn/CodeGen/CodeGen.h"
#include "llvm/ADT/STLExtras.h"

using namespace linattn;
using namespace linattn::test;

namespace {

template <typename CaseTy>
void checkThreads(const CaseTy &c) {
  SCOPED_TRACE(c.name);
  std::vector<Buffer> inputs = c.getInputs();
  auto kernel = compile(c.getText(), optionsFor(MatrixUnit::EmulatedAMX));
  ASSERT_TRUE(kernel);
  std::vector<Buffer> one = run(*kernel, inputs, Layout::Contiguous, 1);
  std::vector<Buffer> three = run(*kernel, inputs, Layout::Contiguous, 3);
  for (auto [x, y] : llvm::zip_equal(one, three))
    EXPECT_TRUE(x.isSame(y));
}

TEST(MatrixUnit, GivesTheSameBitsWithAnyThreads) {
  checkThreads(named("linear").batches(3));
  checkThreads(softmaxOf("softmax", 64).batches(2));
}

Array firstOf(const Array &batch) {
  Array first = batch;
  first.shape[0] = 1;
  first.data.resize(batch.data.size() / batch.shape[0]);
  return first;
}

/// One head of one sequence alone, whose columns several cores share, and
/// beside as many others as there are cores.
void checkColumns(ScanCase c) {
  SCOPED_TRACE(c.name);
  c.heads(1, 1, 1).batches(getVectorTarget().cores);
  std::vector<Buffer> inputs = c.getInputs(), own;
  for (const Buffer &input : inputs)
    own.emplace_back(input.getDType(), firstOf(input.toArray()));
  auto beside = compile(c.getText(), optionsFor(MatrixUnit::EmulatedAMX));
  auto alone =
      compile(c.batches(1).getText(), optionsFor(MatrixUnit::EmulatedAMX));
  ASSERT_TRUE(alone && beside);
  auto isDivided = [](const std::string &remark) {
    return llvm::StringRef(remark).contains("columns of its values in each");
  };
  EXPECT_TRUE(llvm::any_of(alone->explain(), isDivided));
  EXPECT_FALSE(llvm::any_of(beside->explain(), isDivided));
  for (auto [x, y] : llvm::zip_equal(run(*alone, own), run(*beside, inputs)))
    EXPECT_EQ(x.toArray().data, firstOf(y.toArray()).data);
}

TEST(MatrixUnit, GivesTheSameBitsInPartsOfColumns) {
  if (getVectorTarget().cores < 2)
    GTEST_SKIP() << "one core takes all columns";
  checkColumns(named("linear"));
  checkColumns(named("gated delta").delta(4).decayed(Decay::Token));
}

enum class Start { Given, Zeros, ZerosUnread };

/// A scan from zeros in the place of the state, which its function returns
/// afterwards or does not.
std::string startAt(Start start, std::string text) {
  if (start == Start::Given)
    return text;
  auto replace = [&](llvm::StringRef old, const std::string &by) {
    size_t place = text.find(old.str());
    ASSERT_NE(place, std::string::npos);
    text.replace(place, old.size(), by);
  };
  size_t begin = text.find("%S: ") + 4;
  std::string type = text.substr(begin, text.find('>', begin) + 1 - begin);
  replace("init(%S)", "init(%zeros)");
  replace("  %r:", "  %nil = arith.constant 0.0 : f32\n  %zeros = linalg.fill "
                   "ins(%nil : f32) outs(%S : " +
                       type + ") -> " + type + "\n  %r:");
  if (start == Start::ZerosUnread) {
    replace(", " + type + ") {", ") {");
    replace("return %r#0, %r#1", "return %r#0");
    text.erase(text.rfind(", " + type), type.size() + 2);
  }
  return text;
}

/// The bits of a sequence packed behind another one of 70 tokens, alone with a
/// length that is known, with one that is not, and with a hint.
void checkLengths(ScanCase c, int64_t tokens, Start start) {
  SCOPED_TRACE(c.name + ", " + std::to_string(tokens) + " tokens, start " +
               std::to_string(static_cast<int>(start)));
  constexpr int64_t before = 70;
  c.tokens(before + tokens);
  ScanCase packed = c;
  packed.sequences({0, before, before + tokens});
  std::vector<Buffer> inputs = packed.getInputs(), own;
  auto second = [&](const Array &states) {
    Array last = states;
    last.shape[0] = 1;
    last.data.erase(last.data.begin(),
                    last.data.begin() + int64_t(states.data.size()) / 2);
    return last;
  };
  for (auto [name, input] : llvm::zip_equal(packed.getNames(), inputs)) {
    Array array = input.toArray();
    if (name == "cu_seqlens")
      continue;
    bool hasTokens = array.shape.size() > 2;
    own.emplace_back(input.getDType(),
                     name == "S" ? second(array)
                     : hasTokens ? sliceTokens(array, before, before + tokens)
                                 : array);
  }
  c.tokens(tokens);
  auto results = [&](const ScanCase &some, std::vector<Buffer> from,
                     int64_t hint = 0) {
    CompilerOptions options = optionsFor(MatrixUnit::EmulatedAMX);
    options.hints.tokens = hint;
    auto kernel = compile(startAt(start, some.getText()), options);
    std::vector<Array> arrays;
    if (kernel)
      for (Buffer &result : run(*kernel, from))
        arrays.push_back(result.toArray());
    return arrays;
  };
  ScanCase open = c;
  open.open(Extents::DynamicTokens);
  std::vector<Array> known = results(c, own), beside = results(packed, inputs);
  ASSERT_EQ(known.size(), start == Start::ZerosUnread ? 1u : 2u);
  ASSERT_EQ(beside.size(), known.size());
  for (int64_t hint : {int64_t(0), tokens}) {
    std::vector<Array> other = results(open, own, hint);
    ASSERT_EQ(other.size(), known.size());
    for (auto [x, y] : llvm::zip_equal(known, other))
      EXPECT_EQ(x.data, y.data) << "hint " << hint;
  }
  EXPECT_EQ(known[0].data,
            sliceTokens(beside[0], before, before + tokens).data);
  if (known.size() > 1)
    EXPECT_EQ(known[1].data, second(beside[1]).data);
}

TEST(MatrixUnit, GivesTheSameBitsWhateverIsKnownOfLengths) {
  // Few tokens, a remainder, and a chunk that zeros fill up. From a given state
  // one such chunk may be all.
  ScanCase linear = named("linear"),
           delta = named("gated delta").delta().decayed(Decay::Token);
  for (int64_t tokens : {5, 40, 84, 120})
    checkLengths(linear, tokens, Start::Given);
  for (int64_t tokens : {20, 84, 120})
    checkLengths(delta, tokens, Start::Given);
  checkLengths(named("a decay per head").decayed(Decay::Head), 120,
               Start::Given);
  for (const ScanCase &c : {linear, delta}) {
    for (int64_t tokens : {5, 120})
      checkLengths(c, tokens, Start::Zeros);
    for (int64_t tokens : {5, 150})
      checkLengths(c, tokens, Start::ZerosUnread);
  }
}

} // namespace
