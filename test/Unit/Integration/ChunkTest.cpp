//===- ChunkTest.cpp - Scans in chunks against the oracle -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every family in form chunk: tails of tokens and of rows, element types, what
// is hard for the triangular solve and for decays, and the same bits for any
// number of threads and any batch.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"

using namespace linattn;
using namespace linattn::test;
using reference::Transition;

namespace {

constexpr int64_t kChunk = 16;

ScanCase chunks(std::string name) {
  return ScanCase(std::move(name)).form("chunk:" + std::to_string(kChunk));
}

ScanCase gdn(std::string name) {
  return chunks(std::move(name)).delta().decayed(Decay::Token);
}

ScanCase kda(std::string name) {
  return chunks(std::move(name)).delta().decayed(Decay::Channel);
}

/// GDN-2: decays per channel, a gate of what is erased and one of what is
/// written.
ScanCase gated(std::string name) {
  return kda(std::move(name)).erased().written();
}

ScanCase dplr(std::string name, Transition transition) {
  return chunks(std::move(name)).dplr(transition).decayed(Decay::Channel);
}

/// None, one, one less and one more than a chunk, and with a short last one.
const int64_t chunkLengths[] = {0, 1, kChunk - 1, kChunk, kChunk + 1, 63, 500};

/// Runs the compiled case once on these inputs.
void check(const ScanCase &c, const Kernel &kernel, std::vector<Buffer> &inputs,
           double tolerance = -1) {
  SCOPED_TRACE(c.name);
  std::vector<Buffer> outputs = run(kernel, inputs);
  std::vector<Array> expected = c.getExpected(inputs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    expectClose(outputs[i], expected[i], i ? "state" : "output", tolerance);
}

TEST(Chunks, Families) {
  for (ScanCase c : {chunks("plain").sizes(3, 100),
                     chunks("per head").decayed(Decay::Head).sizes(60, 64),
                     chunks("per token").decayed(Decay::Token).batches(2),
                     chunks("per channel").decayed(Decay::Channel).sizes(64, 3),
                     chunks("beta per value").delta(4).sizes(60, 60),
                     gdn("gated delta").sizes(100, 100), kda("KDA").sizes(3, 3),
                     gated("GDN-2").sizes(60, 20),
                     dplr("before", Transition::Before).sizes(64, 64),
                     dplr("after", Transition::After).sizes(20, 60)})
    checkScan(c.heads(1, 1, 1), chunkLengths);
  checkScan(chunks("chunk of 13").delta().form("chunk:13"), {63});
  checkScan(kda("chunk of 64").sizes(20, 24).form("chunk:64"), {63, 150});
}

TEST(Chunks, Reads) {
  checkScans({chunks("bonus").bonus(), gdn("exclusive delta").exclusive(),
              dplr("dplr, bonus", Transition::Before).bonus().scaled(0.125)},
             {1, kChunk + 1, 63});
}

TEST(Chunks, Reverse) {
  checkScans({gdn("gated delta").reversed(),
              chunks("bonus").reversed().bonus().decayed(Decay::Channel)},
             {0, 1, kChunk + 1, 63});
}

TEST(Chunks, PackedSequences) {
  // Empty at the start, in the middle and at the end; one token; many.
  const std::vector<int64_t> offsets = {0, 0, 1, 34, 34, 50, 100, 100};
  checkScans({gdn("gated delta").sequences(offsets).masked().reversed(),
              dplr("dplr", Transition::Before).sequences(offsets),
              chunks("no tokens").sequences({0, 0})});
}

TEST(Chunks, GroupedHeads) {
  checkScans({gdn("values").heads(2, 2, 4), kda("KDA, both").heads(8, 2, 4),
              kda("many queries, exclusive").heads(12, 2, 2).exclusive()},
             {kChunk + 1, 63});
}

// Operands of masked tokens are NaN.
TEST(Chunks, Masks) {
  checkScans({chunks("delta").masked().delta(4).batches(2),
              gated("GDN-2").masked(),
              dplr("dplr", Transition::Before).masked()},
             {1, kChunk, 63});
}

TEST(Chunks, ElementTypes) {
  checkScans({gdn("f64").type(DType::F64).within(1e-12),
              gated("f16").type(DType::F16).within(2.5e-3).sizes(20, 24),
              dplr("bf16", Transition::Before).type(DType::BF16).within(2.5e-3),
              gdn("wide state").wide().within(1e-6)},
             {63});
  checkScan(kda("backwards").laidOut(Layout::AllBackwards), {63});
}

TEST(Chunks, LongSequences) {
  for (ScanCase c : {chunks("plain"), chunks("delta").delta(), kda("KDA"),
                     dplr("dplr", Transition::Before)})
    checkScan(c.heads(1, 1, 1).within(3e-6), {16384});
}

// Powers of A grow and cancel when keys are alike; substitution forms none.
TEST(Chunks, KeysThatAreAlike) {
  ScanCase c = chunks("delta").delta().form("chunk:64").tokens(256);
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  ASSERT_TRUE(kernel);
  std::vector<Buffer> inputs = c.getInputs();
  Array base = randomArray({16}, 5);
  Array keys(inputs[c.find("k")].toArray().shape);
  // As wide as normal noise of deviation 0.05.
  Array noise = randomArray(keys.shape, 6, -0.0866, 0.0866);
  for (size_t row = 0; row < keys.data.size(); row += 16) {
    double sum = 0;
    for (size_t d = 0; d < 16; ++d) {
      keys.data[row + d] = base.data[d] + noise.data[row + d];
      sum += keys.data[row + d] * keys.data[row + d];
    }
    for (size_t d = 0; d < 16; ++d)
      keys.data[row + d] /= std::sqrt(sum);
  }
  inputs[c.find("k")] = Buffer(c.dtype, keys);
  Buffer &beta = inputs[c.find("beta")];
  for (auto [low, high] : {std::pair(0.95, 0.95), std::pair(0.0, 2.0)}) {
    SCOPED_TRACE("beta up to " + std::to_string(high));
    beta = Buffer(c.dtype, randomArray(beta.toArray().shape, 7, low, high));
    check(c, *kernel, inputs, 3e-6);
  }
}

// Nothing overflows, and a strong decay leaves its neighbours exact.
TEST(Chunks, StrongDecays) {
  for (ScanCase c :
       {gdn("gated delta"), kda("KDA"), dplr("before", Transition::Before),
        chunks("bonus").bonus().decayed(Decay::Channel)}) {
    c.tokens(100).sizes(20, 24);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    std::vector<Buffer> inputs = c.getInputs();
    Buffer &decay = inputs[c.find("decay")];
    const Array logs = decay.toArray();
    auto checkWith = [&](double log, size_t step, double scale) {
      SCOPED_TRACE(log);
      Array changed = logs;
      for (double &x : changed.data)
        x *= scale;
      for (size_t i = 0; i < changed.data.size(); i += step)
        changed.data[i] = log;
      decay = Buffer(c.dtype, changed);
      check(c, *kernel, inputs);
    };
    checkWith(-300, 7, 1);
    checkWith(-300, 7, 600);
    checkWith(-std::numeric_limits<double>::infinity(), 7, 1);
  }
}

//===----------------------------------------------------------------------===//
// Bits
//===----------------------------------------------------------------------===//

TEST(Chunks, ThreadsAndBatchesChangeNoBit) {
  // A state that is alone is divided among tasks.
  for (ScanCase c : {gdn("gated delta"), kda("KDA").sizes(20, 24),
                     gdn("one state").heads(1, 1, 1).sizes(24, 72)}) {
    SCOPED_TRACE(c.name);
    c.tokens(100).batches(3).open(Extents::Dynamic);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<Buffer> whole =
        run(*kernel, inputs, Layout::Contiguous, /*numThreads=*/1);
    ASSERT_EQ(whole.size(), 2u);
    for (int threads : {2, 3}) {
      std::vector<Buffer> outputs =
          run(*kernel, inputs, Layout::Contiguous, threads);
      ASSERT_EQ(outputs.size(), 2u);
      for (size_t i = 0; i < 2; ++i)
        EXPECT_EQ(outputs[i].getBits(), whole[i].getBits())
            << threads << " threads";
    }
    for (int64_t b = 0; b < c.batch; ++b) {
      std::vector<Buffer> alone;
      for (Buffer &input : inputs)
        alone.emplace_back(c.dtype, sliceTokens(input.toArray(), b, b + 1, 0));
      std::vector<Buffer> one = run(*kernel, alone);
      ASSERT_EQ(one.size(), 2u);
      for (size_t i = 0; i < 2; ++i)
        EXPECT_EQ(one[i].toArray().data,
                  sliceTokens(whole[i].toArray(), b, b + 1, 0).data)
            << "batch element " << b;
    }
  }
}

// Two calls, the state handed over, are one: where the chunks begin differs.
TEST(Chunks, SplitIsWhole) {
  for (ScanCase c : {gdn("gated delta"), gated("GDN-2").sizes(20, 24)}) {
    SCOPED_TRACE(c.name);
    c.tokens(100);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<Buffer> whole = run(*kernel, inputs);
    ASSERT_EQ(whole.size(), 2u);
    Buffer state = inputs.back();
    for (auto [begin, end] : {std::pair<int64_t, int64_t>(0, 37), {37, 100}}) {
      std::vector<Buffer> part;
      for (const Buffer &input : llvm::ArrayRef(inputs).drop_back())
        part.emplace_back(c.dtype, sliceTokens(input.toArray(), begin, end));
      part.push_back(state);
      std::vector<Buffer> outputs = run(*kernel, part);
      ASSERT_EQ(outputs.size(), 2u);
      expectClose(outputs[0], sliceTokens(whole[0].toArray(), begin, end),
                  "output");
      state = outputs[1];
    }
    expectClose(state, whole[1].toArray(), "state");
  }
}

} // namespace
