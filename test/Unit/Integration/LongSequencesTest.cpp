//===- LongSequencesTest.cpp - Many tokens: accuracy and memory -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include <fstream>

using namespace linattn;
using namespace linattn::test;

namespace {

/// The oracle's recurrence: its quadratic formula takes minutes for these.
Array scanReference(const AttentionCase &c, const std::vector<Buffer> &inputs) {
  reference::ScanOptions options;
  options.featureMap = c.getMap();
  options.normalize = c.normalize;
  options.scale = 1.0;
  reference::ScanOperands operands{inputs[0].toArray(), inputs[1].toArray(),
                                   inputs[2].toArray()};
  return take(reference::scan(operands, options)).o;
}

Array readReference(const AttentionCase &c, const std::vector<Buffer> &inputs) {
  reference::StateOptions stateOptions;
  stateOptions.featureMap = c.getMap();
  stateOptions.normalize = c.normalize.has_value();
  reference::ReadOptions options;
  options.featureMap = c.getMap();
  options.normalize = c.normalize;
  return take(
      reference::read(inputs[0].toArray(),
                      take(reference::state(inputs[1].toArray(),
                                            inputs[2].toArray(), stateOptions)),
                      options));
}

AttentionCase oneHead(std::string name, int64_t tokens, int64_t size) {
  AttentionCase c(std::move(name));
  return c.heads(1, 1, 1).tokens(tokens).sizes(size, size);
}

TEST(LongSequences, Causal) {
  for (const char *form : {"state_tile", "chunk:64"})
    for (int64_t tokens : {4096, 16384}) {
      SCOPED_TRACE(std::string(form) + ", " + std::to_string(tokens));
      AttentionCase c = oneHead("causal", tokens, 64);
      c.causal().features(FeatureMapKind::Elu1).normalized().form(form);
      std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
      ASSERT_TRUE(kernel);
      std::vector<Buffer> inputs = c.getInputs();
      std::vector<Buffer> outputs = run(*kernel, inputs);
      ASSERT_FALSE(outputs.empty());
      expectClose(outputs[0], scanReference(c, inputs), "output");
    }
}

TEST(LongSequences, NonCausal) {
  AttentionCase c = oneHead("non-causal", 16384, 64);
  c.features(FeatureMapKind::Elu1).normalized();
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  ASSERT_TRUE(kernel);
  std::vector<Buffer> inputs = c.getInputs();
  std::vector<Buffer> outputs = run(*kernel, inputs);
  ASSERT_FALSE(outputs.empty());
  expectClose(outputs[0], readReference(c, inputs), "output");
}

// Some rows only: row i sees the first i + 1 keys.
TEST(LongSequences, CausalSoftmax) {
  AttentionCase c = oneHead("softmax", 4096, 64);
  c.causal().softmax().scaled(0.125);
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  ASSERT_TRUE(kernel);
  std::vector<Buffer> inputs = c.getInputs();
  std::vector<Buffer> outputs = run(*kernel, inputs);
  ASSERT_FALSE(outputs.empty());
  Array q = inputs[0].toArray(), k = inputs[1].toArray(),
        v = inputs[2].toArray(), o = outputs[0].toArray();
  for (int64_t i : {0, 1, 63, 64, 1000, 2047, 4095}) {
    reference::AttentionOptions options;
    options.weights = reference::AttentionWeights::Softmax;
    options.scale = 0.125;
    Array row = take(reference::attention(sliceTokens(q, i, i + 1),
                                          sliceTokens(k, 0, i + 1),
                                          sliceTokens(v, 0, i + 1), options));
    EXPECT_LE(reference::compare(sliceTokens(o, i, i + 1), row), 3e-6) << i;
  }
}

// z grows to a million terms; a sum token by token in f32 loses digits.
TEST(LongSequences, MillionTokens) {
  AttentionCase c = oneHead("million", 1000000, 8);
  c.causal().features(FeatureMapKind::Elu1).normalized();
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  ASSERT_TRUE(kernel);
  std::vector<Buffer> inputs = c.getInputs();
  std::vector<Buffer> outputs = run(*kernel, inputs);
  ASSERT_FALSE(outputs.empty());
  expectClose(outputs[0], scanReference(c, inputs), "output", 1e-5);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A line of /proc/self/status in KiB, or -1.
int64_t readStatus(llvm::StringRef key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    llvm::StringRef text(line);
    int64_t value;
    if (text.consume_front(key) && text.consume_front(":") &&
        !text.trim().split(' ').first.getAsInteger(10, value))
      return value;
  }
  return -1;
}

/// The peak of resident memory, in KiB, above what was resident before `body`.
int64_t measureExtraMemory(llvm::function_ref<void()> body) {
  std::ofstream("/proc/self/clear_refs") << "5\n"; // Forget the former peak.
  int64_t before = readStatus("VmRSS");
  body();
  return readStatus("VmHWM") - before;
}

/// Runs in a process of its own, whose heap has no free memory to reuse.
void checkExtraMemory() {
  AttentionCase c = oneHead("causal", 256, 64);
  c.causal().features(FeatureMapKind::Elu1).normalized();
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  if (!kernel)
    exit(2);
  // Threads and whatever else a first call sets up.
  run(*kernel, c.getInputs());
  c.tokens(131072);
  std::vector<Buffer> inputs = c.getInputs();
  // Buffers are filled when they are made, and so resident.
  Buffer output(DType::F32, {1, 1, 131072, 64});
  int64_t extra = measureExtraMemory([&] {
    if (kernel->run(
            {inputs[0].getView(), inputs[1].getView(), inputs[2].getView()},
            {output.getView()}))
      exit(3);
  });
  // The measure must see memory that is released again.
  int64_t seen = measureExtraMemory([] {
    std::vector<char> block(16 << 20);
    std::fill(block.begin(), block.end(), 1);
    asm volatile("" : : "r"(block.data()) : "memory");
  });
  fprintf(stderr, "extra %ld KiB, of 16 MiB seen %ld KiB\n",
          static_cast<long>(extra), static_cast<long>(seen));
  exit(extra < 4096 && seen > 12 << 10 ? 0 : 1);
}

TEST(LongSequencesDeathTest, MemoryDoesNotGrowWithTheLength) {
  if (readStatus("VmHWM") < 0)
    GTEST_SKIP() << "this system does not tell the peak of resident memory";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(checkExtraMemory(), ::testing::ExitedWithCode(0), "extra");
}

} // namespace
