//===- SegmentsTest.cpp - Scans in segments against the oracle ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every family that has the form: what the segments are merged from, and the
// same bits for any number of threads.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"

using namespace linattn;
using namespace linattn::test;

namespace {

ScanCase segments(std::string name) {
  return ScanCase(std::move(name)).form("segments:16");
}

/// Compiles the case once and compares every result with the oracle's.
void check(ScanCase c, llvm::ArrayRef<int64_t> lengths) {
  if (!isDrawn())
    return;
  SCOPED_TRACE(c.name);
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  ASSERT_TRUE(kernel);
  for (int64_t length : lengths) {
    SCOPED_TRACE(std::to_string(length) + " tokens");
    c.tokens(length);
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<Buffer> outputs = run(*kernel, inputs, c.layout);
    std::vector<Array> expected = c.getExpected(inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      expectClose(outputs[i], expected[i],
                  ("result " + std::to_string(i)).c_str(), c.tolerance);
  }
}

/// None, one, a whole segment, one token more, many with a short last one.
const int64_t segmentLengths[] = {0, 1, 16, 17, 100};

TEST(Segments, AdditiveFamilies) {
  for (const ScanCase &c :
       {segments("plain"), segments("batch").batches(2),
        segments("per head").decayed(Decay::Head),
        segments("per token").decayed(Decay::Token).batches(2),
        segments("per channel").decayed(Decay::Channel).sizes(20, 24),
        segments("value").valueDecayed(),
        segments("value and channel").valueDecayed().decayed(Decay::Channel),
        segments("bonus").bonus().decayed(Decay::Channel),
        segments("masked").masked().decayed(Decay::Token),
        segments("grouped").heads(6, 2, 2).decayed(Decay::Token),
        segments("more values than keys").heads(2, 2, 4)})
    check(c, segmentLengths);
}

TEST(Segments, Normalizers) {
  for (const ScanCase &c :
       {segments("elu").features(FeatureMapKind::Elu1).normalized(),
        segments("decay")
            .features(FeatureMapKind::Elu1)
            .normalized()
            .decayed(Decay::Channel),
        segments("running maximum").features(FeatureMapKind::Exp).normalized(),
        segments("running maximum from nothing")
            .features(FeatureMapKind::Exp)
            .normalized()
            .masked()
            .empty(),
        segments("running maximum and decay")
            .features(FeatureMapKind::Exp)
            .normalized()
            .decayed(Decay::Token)})
    check(c, segmentLengths);
}

TEST(Segments, Reverse) {
  for (const ScanCase &c :
       {segments("plain").reversed(),
        segments("per head").reversed().decayed(Decay::Head),
        segments("per channel").reversed().decayed(Decay::Channel),
        segments("delta").reversed().delta().decayed(Decay::Token)})
    check(c, segmentLengths);
}

TEST(Segments, RankOneTransitions) {
  using reference::Transition;
  for (const ScanCase &c :
       {segments("delta").delta(),
        segments("gated delta").delta().decayed(Decay::Token).batches(2),
        segments("KDA").delta().decayed(Decay::Channel).sizes(20, 24),
        segments("gates").delta().decayed(Decay::Head).erased().written(),
        segments("grouped delta").delta().heads(8, 2, 4),
        segments("more keys than values").delta().heads(4, 4, 2),
        segments("dplr").dplr(Transition::Before).decayed(Decay::Channel),
        segments("dplr after").dplr(Transition::After).decayed(Decay::Token)})
    check(c, {0, 1, 16, 17, 60});
}

TEST(Segments, ElementTypesAndShapes) {
  for (DType dtype : {DType::F64, DType::F16, DType::BF16}) {
    std::string name(linattn::getName(dtype));
    check(segments(name).type(dtype).decayed(Decay::Channel), {60});
    check(segments(name + " delta")
              .type(dtype)
              .delta()
              .within(dtype == DType::F64 ? 1e-12 : 2.5e-3),
          {60});
  }
  check(segments("static").open(Extents::Static).decayed(Decay::Token), {33});
  check(segments("fits one").open(Extents::Static).form("segments:64"), {33});
  check(segments("dynamic").open(Extents::Dynamic).decayed(Decay::Token),
        segmentLengths);
  check(segments("backwards")
            .laidOut(Layout::AllBackwards)
            .decayed(Decay::Token)
            .valueDecayed(),
        {60});
}

// A decay of −∞ forgets everything, in whichever segment it stands.
TEST(Segments, InfiniteDecay) {
  for (Decay decay : {Decay::Token, Decay::Channel}) {
    ScanCase c = segments("reset").decayed(decay).tokens(100);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    std::vector<Buffer> inputs = c.getInputs();
    Array logs = inputs[3].toArray();
    for (size_t i = 0; i < logs.data.size(); i += 37)
      logs.data[i] = -std::numeric_limits<double>::infinity();
    inputs[3] = Buffer(c.dtype, logs);
    std::vector<Buffer> outputs = run(*kernel, inputs);
    std::vector<Array> expected = c.getExpected(inputs);
    ASSERT_EQ(outputs.size(), expected.size());
    for (size_t i = 0; i < outputs.size(); ++i)
      expectClose(outputs[i], expected[i], "result");
  }
}

// The default length of segments follows from the number of tokens.
TEST(Segments, ChosenLength) {
  check(ScanCase("chosen")
            .form("segments")
            .decayed(Decay::Token)
            .open(Extents::Dynamic)
            .sizes(4, 4),
        {0, 1, 512, 513, 1500, 33000});
}

TEST(Segments, ThreadsChangeNoBit) {
  for (ScanCase c : {segments("gate").decayed(Decay::Channel).sizes(20, 24),
                     segments("delta").delta().decayed(Decay::Token)}) {
    SCOPED_TRACE(c.name);
    c.tokens(200);
    std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
    ASSERT_TRUE(kernel);
    std::vector<Buffer> inputs = c.getInputs();
    std::vector<std::vector<uint64_t>> bits;
    for (int threads : {1, 2, 3, 4}) {
      std::vector<Buffer> outputs =
          run(*kernel, inputs, Layout::Contiguous, threads);
      ASSERT_FALSE(outputs.empty());
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (threads == 1)
          bits.push_back(outputs[i].getBits());
        EXPECT_EQ(outputs[i].getBits(), bits[i]) << threads << " threads";
      }
    }
  }
}

TEST(Segments, RefusesRulesWithoutAMerge) {
  for (auto [c, why] :
       {std::pair(segments("packed").sequences({0, 20, 33}),
                  "its sequences are packed already and run in parallel"),
        std::pair(segments("beta").delta(4),
                  "a beta per value column gives every column a transition of "
                  "its own")}) {
    llvm::Expected<Kernel> kernel =
        Compiler(c.compiler).compile(c.getText(), "scan");
    ASSERT_FALSE(bool(kernel));
    std::string message = llvm::toString(kernel.takeError());
    EXPECT_NE(message.find("cannot run in form segments: " + std::string(why)),
              std::string::npos)
        << message;
  }
}

} // namespace
