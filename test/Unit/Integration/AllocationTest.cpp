//===- AllocationTest.cpp - Kernels whose memory is missing ---------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whichever allocation of a call fails, the call says so, leaves nothing behind
// and changes nothing for the next one.
//
//===----------------------------------------------------------------------===//

#include "../FaultyMemory.h"
#include "Cases.h"
#include "linattn/Support/OutOfMemory.h"
#include "llvm/ADT/StringExtras.h"

using namespace linattn;
using namespace linattn::test;

namespace {

std::vector<Buffer> makeOutputs(const Kernel &kernel,
                                std::vector<Buffer> &inputs) {
  llvm::SmallVector<BufferView> views;
  for (Buffer &input : inputs)
    views.push_back(input.getView());
  auto shapes = llvm::cantFail(kernel.resultShapes(views));
  std::vector<Buffer> outputs;
  for (auto [info, shape] : llvm::zip(kernel.signature().results, shapes))
    outputs.emplace_back(info.dtype, shape);
  return outputs;
}

llvm::Error call(const Kernel &kernel, std::vector<Buffer> &inputs,
                 std::vector<Buffer> &outputs, int32_t threads) {
  llvm::SmallVector<BufferView> in, out;
  for (Buffer &input : inputs)
    in.push_back(input.getView());
  for (Buffer &output : outputs)
    out.push_back(output.getView());
  RunOptions options;
  options.numThreads = threads;
  return kernel.run(in, out, options);
}

/// Fails every allocation of a call in turn. Returns how many there are.
int64_t checkFaults(const Kernel &kernel, std::vector<Buffer> inputs) {
  FaultyMemory memory;
  const std::vector<Buffer> given = inputs;
  std::vector<Buffer> expected = makeOutputs(kernel, inputs);
  llvm::cantFail(call(kernel, inputs, expected, 1));
  int64_t count = memory.getCount();
  EXPECT_EQ(memory.getLive(), 0);
  for (int32_t threads : {1, 2})
    for (int64_t n = 1; n <= count; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n) + " of " +
                   std::to_string(count) + ", " + std::to_string(threads) +
                   " threads");
      std::vector<Buffer> outputs = makeOutputs(kernel, inputs);
      memory.failAt(n);
      llvm::Error error = call(kernel, inputs, outputs, threads);
      EXPECT_TRUE(error.isA<OutOfMemoryError>());
      std::string message = llvm::toString(std::move(error));
      EXPECT_NE(message.find("'" + kernel.signature().entry +
                             "': expected memory for a workspace of "),
                std::string::npos)
          << message;
      EXPECT_EQ(memory.getLive(), 0);
      for (size_t i = 0; i < inputs.size(); ++i)
        EXPECT_TRUE(inputs[i].isSame(given[i])) << "input " << i;
      memory.failAt(0);
      llvm::cantFail(call(kernel, inputs, outputs, threads));
      EXPECT_EQ(memory.getLive(), 0);
      for (size_t i = 0; i < outputs.size(); ++i)
        EXPECT_EQ(outputs[i].getBits(), expected[i].getBits())
            << "result " << i;
      if (::testing::Test::HasFailure())
        return count;
    }
  return count;
}

template <typename Case>
void checkCase(const Case &c) {
  SCOPED_TRACE(c.name);
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  ASSERT_TRUE(kernel);
  EXPECT_GT(checkFaults(*kernel, c.getInputs()), 0)
      << "a case without an allocation tests nothing";
}

TEST(Allocation, EveryFormOfAScan) {
  auto named = [](const char *form) {
    // Wide heads: small workspaces are on the stack.
    return ScanCase(form).form(form).tokens(40).sizes(600, 640);
  };
  checkCase(named("token").sizes(24, 1100));
  checkCase(named("state_tile").decayed(Decay::Channel));
  checkCase(named("chunk:16").decayed(Decay::Token));
  checkCase(named("chunk:16").delta().decayed(Decay::Channel));
  checkCase(named("segments:16").decayed(Decay::Head));
  checkCase(named("segments:16").features(FeatureMapKind::Exp).normalized());
}

TEST(Allocation, EveryFormOfAnAttention) {
  auto named = [](const char *name) {
    return AttentionCase(name).tokens(33).sizes(600, 640);
  };
  checkCase(named("quadratic").configured("form = quadratic"));
  checkCase(named("softmax").causal().softmax());
  // The state is the call's own.
  checkCase(named("reassociated").reassociated("always"));
  checkCase(named("scan").causal().form("chunk:16").heads(4, 2, 2));
}

TEST(Allocation, AStep) {
  checkCase(ScanCase("step").tokens(1).sizes(24, 1100).delta());
}

// The bytes of sizes that are only known at run time, and of those that are
// known before, are counted without wrapping around.
TEST(Allocation, BytesDoNotWrapAround) {
  auto check = [](llvm::StringRef text, BufferView input) {
    std::optional<Kernel> kernel = compile(text.str());
    ASSERT_TRUE(kernel);
    std::vector<float> out(4);
    BufferView output(out.data(), DType::F32, {4});
    llvm::Error error = kernel->run({input}, {output});
    EXPECT_TRUE(error.isA<OutOfMemoryError>());
    EXPECT_NE(llvm::toString(std::move(error))
                  .find("expected memory for a workspace of more than "
                        "9223372036854775807 bytes"),
              std::string::npos);
  };
  std::vector<float> one(4);
  // 2^31 tokens in no more memory than one: the workspace has 2^64 bytes.
  check(R"(func.func @f(%x: tensor<?xf32>) -> tensor<4xf32> {
    %c0 = arith.constant 0 : index
    %n = tensor.dim %x, %c0 : tensor<?xf32>
    %zero = arith.constant 1.0 : f32
    %e = tensor.empty(%n, %n) : tensor<?x?xf32>
    %m = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>)
      -> tensor<?x?xf32>
    %s = linalg.exp ins(%m : tensor<?x?xf32>) outs(%m : tensor<?x?xf32>)
      -> tensor<?x?xf32>
    %r = tensor.extract_slice %s[0, 0] [1, 4] [1, 1]
      : tensor<?x?xf32> to tensor<4xf32>
    return %r : tensor<4xf32>
  })",
        BufferView(one.data(), DType::F32, {int64_t(1) << 31}, {0}));
  check(R"(func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    %zero = arith.constant 1.0 : f32
    %e = tensor.empty() : tensor<2147483648x2147483648xf32>
    %m = linalg.fill ins(%zero : f32)
      outs(%e : tensor<2147483648x2147483648xf32>)
      -> tensor<2147483648x2147483648xf32>
    %s = linalg.exp ins(%m : tensor<2147483648x2147483648xf32>)
      outs(%m : tensor<2147483648x2147483648xf32>)
      -> tensor<2147483648x2147483648xf32>
    %r = tensor.extract_slice %s[0, 0] [1, 4] [1, 1]
      : tensor<2147483648x2147483648xf32> to tensor<4xf32>
    return %r : tensor<4xf32>
  })",
        BufferView(one.data(), DType::F32, {4}));
}

} // namespace
