//===- PollTest.cpp - How often compiled code can be ended ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One task of a long call looks at the flag of interrupts after a bounded
// number of multiply-adds, however the form divides its work. Counted, since
// times say more about a machine than about a program.
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "linattn-c/Runtime.h"

using namespace linattn;
using namespace linattn::test;

namespace {

/// A core that makes 10^8 multiply-adds in a second, as one without vectors
/// does, looks every 20 ms.
constexpr int64_t kMostOperations = 2000000;

int64_t numPolls = 0;

/// Has itself called again at the next opportunity.
int32_t countPoll() {
  ++numPolls;
  linattn_interrupt();
  return 0;
}

/// Runs the case, one head of one sequence, and counts how often it looks.
template <typename Case>
void checkPolls(const Case &c, int64_t operations) {
  SCOPED_TRACE(c.name);
  ASSERT_GT(operations, 10 * kMostOperations) << "a long call";
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  ASSERT_TRUE(kernel);
  std::vector<Buffer> inputs = c.getInputs();
  numPolls = 0;
  linattn_set_interrupt_check(countPoll);
  linattn_interrupt();
  run(*kernel, inputs, Layout::Contiguous, /*numThreads=*/1);
  linattn_set_interrupt_check(nullptr);
  EXPECT_GE(numPolls * kMostOperations, operations) << numPolls << " polls";
  ::testing::Test::RecordProperty(c.name,
                                  std::to_string(operations / numPolls));
}

ScanCase scan(const char *name, const char *form, int64_t tokens,
              int64_t size) {
  return ScanCase(name).form(form).tokens(tokens).heads(1, 1, 1).sizes(size,
                                                                       size);
}

/// Of an update of the state and a read.
int64_t countOperations(const ScanCase &c, int64_t passes = 2) {
  return passes * c.tokenCount * c.keySize * c.valueSize;
}

TEST(Poll, FormsOfAScan) {
  for (const char *form : {"state_tile", "token", "chunk:16", "segments:64"}) {
    ScanCase c = scan(form, form, 3000, 64).decayed(Decay::Token);
    checkPolls(c, countOperations(c));
  }
}

TEST(Poll, DeltaRule) {
  ScanCase c = scan("delta", "chunk:16", 2000, 64).delta();
  checkPolls(c, countOperations(c, 3));
}

TEST(Poll, WideHeads) {
  for (const char *form : {"state_tile", "token", "chunk:16"}) {
    ScanCase c = scan(form, form, 40, 1024);
    checkPolls(c, countOperations(c));
  }
}

TEST(Poll, SoftmaxAttention) {
  AttentionCase c = AttentionCase("softmax").causal().softmax().tokens(1000);
  // Scores and weighted values of half of the pairs.
  checkPolls(c.heads(1, 1, 1).sizes(64, 64), 1000 * 1000 / 2 * 2 * 64);
}

} // namespace
