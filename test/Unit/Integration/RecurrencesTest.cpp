//===- RecurrencesTest.cpp - Small recurrences against the oracle ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RecurrenceCases.h"

using namespace linattn;
using namespace linattn::test;

namespace {

void expectAll(const RecurrenceCase &c, const std::vector<Buffer> &outputs,
               const std::vector<Array> &expected) {
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string what = c.name + ", result " + std::to_string(i);
    DType dtype = outputs[i].getDType();
    Array result = outputs[i].toArray();
    if (c.comparable)
      result = c.comparable(i, std::move(result), expected[i]);
    expectClose(result, dtype, expected[i], what.c_str(),
                dtype == DType::F32 ? c.tolerance : -1);
  }
}

void check(const Kernel &kernel, const RecurrenceCase &c,
           Layout layout = Layout::Contiguous) {
  SCOPED_TRACE(c.name + ", " + std::to_string(c.tokens()) + " tokens, " +
               getName(layout));
  std::vector<Buffer> inputs = c.getInputs(layout);
  std::vector<Buffer> outputs = run(kernel, inputs, layout);
  if (!outputs.empty())
    expectAll(c, outputs, c.getExpected(inputs));
}

bool areSame(const std::vector<Buffer> &x, const std::vector<Buffer> &y) {
  if (x.size() != y.size())
    return false;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i].getBits() != y[i].getBits())
      return false;
  return true;
}

} // namespace

// No token, one, a block and one more or less, several blocks.
TEST(Recurrences, AgreeWithTheOracle) {
  for (CaseMaker make : allRecurrences) {
    std::optional<Kernel> kernel = compile(make(1, DType::F32).getText());
    if (!kernel)
      continue;
    for (int64_t tokens : {0, 1, 31, 32, 33, 70})
      check(*kernel, make(tokens, DType::F32));
  }
}

TEST(Recurrences, NaiveLoopsAgreeWithTheOracle) {
  CompilerOptions reference;
  reference.target = Target::Reference;
  for (CaseMaker make : allRecurrences)
    if (auto kernel = compile(make(1, DType::F32).getText(), reference))
      for (int64_t tokens : {0, 37})
        check(*kernel, make(tokens, DType::F32));
}

TEST(Recurrences, TakeEveryElementType) {
  for (CaseMaker make : allRecurrences)
    for (DType dtype : {DType::F64, DType::F16, DType::BF16})
      if (auto kernel = compile(make(1, dtype).getText()))
        check(*kernel, make(35, dtype));
}

// [B, C, T], the layout of the original Mamba kernels, among them.
TEST(Recurrences, TakeEveryLayout) {
  for (CaseMaker make : allRecurrences)
    if (auto kernel = compile(make(1, DType::F32).getText()))
      for (Layout layout : {Layout::TokensFirst, Layout::Packed,
                            Layout::Backwards, Layout::EveryOther})
        check(*kernel, make(35, DType::F32), layout);
}

TEST(Recurrences, TakeDynamicShapes) {
  for (CaseMaker make : {selectiveScanCase, s4dCase, diagonalCase}) {
    RecurrenceCase c = make(35, DType::F32);
    c.extents = Extents::Dynamic;
    if (auto kernel = compile(c.getText()))
      check(*kernel, c);
  }
}

// A sequence cut anywhere goes on where it stopped, bit by bit.
TEST(Recurrences, SplitIsWhole) {
  constexpr int64_t total = 45;
  for (CaseMaker make :
       {selectiveScanCase, s4dCase, diagonalCase, wkv4Case, logLinearCase}) {
    RecurrenceCase c = make(total, DType::F32);
    bool hasLevels = c.op == "log_linear";
    if (hasLevels)
      c.operands.push_back({"position", DType::I64, Array({2})});
    std::optional<Kernel> kernel = compile(c.getText());
    if (!kernel)
      continue;
    std::vector<Buffer> whole = run(*kernel, c.getInputs());
    for (int64_t cut : {1, 7, 32, 44}) {
      SCOPED_TRACE(c.name + " cut at " + std::to_string(cut));
      std::vector<Buffer> head = run(*kernel, c.sliced(0, cut).getInputs());
      RecurrenceCase rest = c.sliced(cut, total);
      for (size_t i = 0; i < rest.states.size(); ++i)
        rest.states[i].array = head[c.outputs.size() + i].toArray();
      if (hasLevels)
        rest.operands.back().array = Array({2}, double(cut));
      std::vector<Buffer> tail = run(*kernel, rest.getInputs());
      ASSERT_EQ(tail.size(), whole.size());
      for (size_t i = 0; i < tail.size(); ++i) {
        Array expected = whole[i].toArray();
        bool isOutput = i < c.outputs.size();
        if (isOutput)
          expected = sliceTokens(expected, cut, total, c.tokenDim());
        EXPECT_EQ(tail[i].toArray().data, expected.data) << "result " << i;
      }
    }
  }
}

TEST(Recurrences, DoNotDependOnThreads) {
  for (CaseMaker make : allRecurrences) {
    RecurrenceCase c = make(40, DType::F32);
    if (auto kernel = compile(c.getText()))
      EXPECT_TRUE(areSame(run(*kernel, c.getInputs(), Layout::Contiguous, 1),
                          run(*kernel, c.getInputs(), Layout::Contiguous, 2)))
          << c.name;
  }
}

// Sequences in one row are sequences of their own; one of them is empty.
TEST(Recurrences, PackedSequencesAreOnTheirOwn) {
  const std::vector<double> offsets{0, 5, 5, 6, 40};
  constexpr int64_t total = 40, sequences = 4;
  for (CaseMaker make :
       {selectiveScanCase, complexDiagonalCase, wkv4Case, logLinearCase}) {
    RecurrenceCase alone = make(total, DType::F32), packed = alone;
    auto firstOfBatch = [&](RecurrenceCase &c) {
      for (auto &operand : c.operands)
        if (operand.tokenDim > 0)
          operand.array = sliceTokens(operand.array, 0, 1, 0);
      c.outputShape[0] = 1;
    };
    firstOfBatch(alone);
    firstOfBatch(packed);
    for (size_t i = 0; i < packed.states.size(); ++i) {
      std::vector<int64_t> shape = packed.states[i].array.shape;
      shape[0] = sequences;
      packed.states[i].array = randomArray(shape, 90 + i, 0.1, 1);
    }
    packed.operands.push_back(
        {"cu_seqlens", DType::I32, Array({sequences + 1}, offsets)});
    for (auto &state : alone.states)
      state.array = sliceTokens(state.array, 0, 1, 0);
    auto whole = compile(packed.getText()), single = compile(alone.getText());
    if (!whole || !single)
      continue;
    std::vector<Buffer> results = run(*whole, packed.getInputs());
    for (int64_t n = 0; n < sequences; ++n) {
      SCOPED_TRACE(alone.name + ", sequence " + std::to_string(n));
      int64_t begin = offsets[n], end = offsets[n + 1];
      RecurrenceCase one = alone.sliced(begin, end);
      for (size_t i = 0; i < one.states.size(); ++i)
        one.states[i].array = sliceTokens(packed.states[i].array, n, n + 1, 0);
      std::vector<Buffer> expected = run(*single, one.getInputs());
      ASSERT_EQ(results.size(), expected.size());
      for (size_t i = 0; i < results.size(); ++i) {
        bool isOutput = i < one.outputs.size();
        Array part = isOutput ? sliceTokens(results[i].toArray(), begin, end,
                                            one.tokenDim())
                              : sliceTokens(results[i].toArray(), n, n + 1, 0);
        EXPECT_EQ(part.data, expected[i].toArray().data) << "result " << i;
      }
    }
  }
}

TEST(Recurrences, RefuseBadOffsets) {
  RecurrenceCase c = diagonalCase(6, DType::F32);
  for (auto &operand : c.operands)
    operand.array = sliceTokens(operand.array, 0, 1, 0);
  c.outputShape[0] = 1;
  c.operands.push_back({"cu_seqlens", DType::I32, Array({3}, {0, 9, 6})});
  auto kernel = compile(c.getText());
  ASSERT_TRUE(kernel);
  std::vector<Buffer> inputs = c.getInputs();
  llvm::SmallVector<BufferView> views;
  for (Buffer &input : inputs)
    views.push_back(input.getView());
  auto shapes = kernel->resultShapes(views);
  ASSERT_FALSE(static_cast<bool>(shapes));
  EXPECT_EQ(
      llvm::toString(shapes.takeError()),
      "'f': expected cu_seqlens not to decrease, but offset 2 is 6 after 9");
}

//===----------------------------------------------------------------------===//
// Stress
//===----------------------------------------------------------------------===//

// Decays down to e^-300 per token leave nothing but the token itself.
TEST(Recurrences, StrongDecays) {
  RecurrenceCase mamba = selectiveScanCase(50);
  mamba.operands[2].array =
      randomArray(mamba.operands[2].array.shape, 3, -300, 0);
  mamba.operands[1].array =
      randomArray(mamba.operands[1].array.shape, 2, -3, 1);
  RecurrenceCase diagonal = diagonalCase(50);
  diagonal.operands[1].array =
      randomArray(diagonal.operands[1].array.shape, 2, -300, 0);
  RecurrenceCase levels = logLinearCase(50);
  levels.operands[3].array =
      randomArray(levels.operands[3].array.shape, 4, -300, 0);
  for (const RecurrenceCase &c : {mamba, diagonal, levels})
    if (auto kernel = compile(c.getText()))
      check(*kernel, c);
}

// Keys beyond the range of e^x, from an empty state whose maximum is −∞ or the
// lowest number; one channel has no weight at all.
TEST(Recurrences, LargeKeys) {
  RecurrenceCase c = wkv4Case(50);
  c.operands[0].array = randomArray(c.operands[0].array.shape, 1, -1000, 1000);
  // The difference of two logarithms of that size is known to 6e-5.
  c.tolerance = 2e-4;
  auto kernel = compile(c.getText());
  ASSERT_TRUE(kernel);
  Array &start = c.states[0].array;
  start = Array(start.shape);
  double starts[] = {-std::numeric_limits<double>::infinity(),
                     std::numeric_limits<float>::lowest()};
  for (double lowest : starts) {
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < 37; ++i)
        start.at({b, 2, i}) = lowest;
    check(*kernel, c);
  }
  for (int64_t t = 0; t < 50; ++t)
    c.operands[0].array.at({0, t, 0}) = starts[0];
  std::vector<Buffer> outputs = run(*kernel, c.getInputs());
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].toArray().at({0, 49, 0}), 0.0);
}

// A state that turns for thousands of tokens: in f32 the rounding of the factor
// shows, and a state in f64 is there for who minds.
TEST(Recurrences, LongSequences) {
  RecurrenceCase c = s4dCase(4096);
  c.operands[2].array = Array(c.operands[2].array.shape, -0.01);
  c.tolerance = 5e-4;
  if (auto kernel = compile(c.getText()))
    check(*kernel, c);
  for (auto &state : c.states)
    state.dtype = DType::F64;
  if (auto kernel = compile(c.getText()))
    check(*kernel, c);
}
