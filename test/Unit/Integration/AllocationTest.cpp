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

#include <numeric>

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

/// Operands for a function of static shapes: numbers between -1 and 1, rows of
/// a pool in order.
std::vector<Buffer> makeInputs(const Kernel &kernel) {
  std::vector<Buffer> inputs;
  for (const ValueInfo &info : kernel.signature().arguments) {
    std::vector<int64_t> shape(info.shape.begin(), info.shape.end());
    Array array = randomArray(shape, inputs.size());
    if (!isFloat(info.dtype))
      std::iota(array.data.begin(), array.data.end(), 0);
    inputs.emplace_back(info.dtype, array);
  }
  return inputs;
}

void checkText(const char *text, CompilerOptions options = {}) {
  SCOPED_TRACE(text);
  std::optional<Kernel> kernel = compile(text, std::move(options));
  ASSERT_TRUE(kernel);
  EXPECT_GT(checkFaults(*kernel, makeInputs(*kernel)), 0)
      << "a case without an allocation tests nothing";
}

TEST(Allocation, EveryFormOfAScan) {
  auto named = [](const char *form) {
    // Wide heads: small workspaces are on the stack.
    return ScanCase(form).form(form).tokens(40).sizes(300, 320);
  };
  checkCase(named("token").sizes(24, 1100));
  checkCase(named("state_tile").decayed(Decay::Channel));
  checkCase(named("chunk:16").decayed(Decay::Token));
  checkCase(named("chunk:16").delta().decayed(Decay::Channel));
  checkCase(named("segments:16").decayed(Decay::Head));
  checkCase(named("segments:16").features(FeatureMapKind::Exp).normalized());
  checkCase(named("state_tile").features(FeatureMapKind::Exp).normalized());
}

TEST(Allocation, EveryKindOfAScan) {
  auto named = [](const char *form) {
    return ScanCase(form).form(form).tokens(40).sizes(300, 320);
  };
  checkCase(named("chunk:16").sequences({0, 7, 7, 40}));
  checkCase(named("state_tile").valueDecayed());
  checkCase(named("chunk:16").type(DType::BF16).decayed(Decay::Token));
}

// Its rows are updated where they lie: a call cannot run out of memory.
TEST(Allocation, OjaTakesNone) {
  ScanCase c = ScanCase("oja").form("token").tokens(40).sizes(300, 320).oja();
  std::optional<Kernel> kernel = compile(c.getText(), c.compiler);
  ASSERT_TRUE(kernel);
  EXPECT_EQ(checkFaults(*kernel, c.getInputs()), 0);
}

TEST(Allocation, RowsOfAPool) {
  CompilerOptions options;
  options.form = "chunk:16";
  checkText(R"(
func.func @pool(%q: tensor<2x1x40x300xf32>, %v: tensor<2x1x40x320xf32>,
                %i: tensor<2xi32>, %s: tensor<3x1x300x320xf32>)
    -> (tensor<2x1x40x320xf32>, tensor<3x1x300x320xf32>) {
  %e = tensor.empty() : tensor<2x1x40x320xf32>
  %r:2 = linattn.scan %q, %q, %v state_indices(%i) into(%e) init(%s)
    : (tensor<2x1x40x300xf32>, tensor<2x1x40x300xf32>, tensor<2x1x40x320xf32>,
       tensor<2xi32>, tensor<2x1x40x320xf32>, tensor<3x1x300x320xf32>)
    -> (tensor<2x1x40x320xf32>, tensor<3x1x300x320xf32>)
  return %r#0, %r#1 : tensor<2x1x40x320xf32>, tensor<3x1x300x320xf32>
})",
            options);
}

TEST(Allocation, Snapshots) {
  CompilerOptions options;
  options.form = "chunk:16";
  checkText(R"(
func.func @snapshots(%q: tensor<1x2x40x300xf32>, %v: tensor<1x2x40x320xf32>,
                     %s: tensor<1x2x300x320xf32>)
    -> (tensor<1x2x40x320xf32>, tensor<1x2x2x300x320xf32>) {
  %e = tensor.empty() : tensor<1x2x40x320xf32>
  %p = tensor.empty() : tensor<1x2x2x300x320xf32>
  %r:3 = linattn.scan %q, %q, %v into(%e) init(%s) snapshots(%p) {every = 16}
    : (tensor<1x2x40x300xf32>, tensor<1x2x40x300xf32>, tensor<1x2x40x320xf32>,
       tensor<1x2x40x320xf32>, tensor<1x2x300x320xf32>,
       tensor<1x2x2x300x320xf32>)
    -> (tensor<1x2x40x320xf32>, tensor<1x2x300x320xf32>,
        tensor<1x2x2x300x320xf32>)
  return %r#0, %r#2 : tensor<1x2x40x320xf32>, tensor<1x2x2x300x320xf32>
})",
            options);
}

TEST(Allocation, ASweep) {
  checkText(R"(
func.func @sweep(%q: tensor<1x2x40x300xf32>, %v: tensor<1x2x40x320xf32>,
                 %s: tensor<1x2x300x320xf32>)
    -> (tensor<1x2x40x320xf32>, tensor<1x2x40x300xf32>) {
  %o = tensor.empty() : tensor<1x2x40x320xf32>
  %p = tensor.empty() : tensor<1x2x40x300xf32>
  %r:3 = linattn.sweep %q, %q, %v value_query(%v) into(%o, %p) init(%s)
    : (tensor<1x2x40x300xf32>, tensor<1x2x40x300xf32>, tensor<1x2x40x320xf32>,
       tensor<1x2x40x320xf32>, tensor<1x2x40x320xf32>, tensor<1x2x40x300xf32>,
       tensor<1x2x300x320xf32>)
    -> (tensor<1x2x40x320xf32>, tensor<1x2x40x300xf32>,
        tensor<1x2x300x320xf32>)
  return %r#0, %r#1 : tensor<1x2x40x320xf32>, tensor<1x2x40x300xf32>
})");
}

TEST(Allocation, ACausalConvolution) {
  checkText(R"(
func.func @conv(%x: tensor<2x40x600xbf16>, %w: tensor<600x4xbf16>)
    -> tensor<2x40x600xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<2x40x600xbf16>
  %s = tensor.empty() : tensor<2x600x3xbf16>
  %z = linalg.fill ins(%zero : bf16) outs(%s : tensor<2x600x3xbf16>)
    -> tensor<2x600x3xbf16>
  %r:2 = linattn.causal_conv %x, %w into(%e) init(%z)
    : (tensor<2x40x600xbf16>, tensor<600x4xbf16>, tensor<2x40x600xbf16>,
       tensor<2x600x3xbf16>) -> (tensor<2x40x600xbf16>, tensor<2x600x3xbf16>)
  return %r#0 : tensor<2x40x600xbf16>
})");
}

TEST(Allocation, AGradient) {
  ScanCase c =
      ScanCase("gradient").decayed(Decay::Token).tokens(60).sizes(64, 80);
  CompilerOptions options;
  options.differentiate.emplace();
  checkText(c.open(Extents::Static).getText().c_str(), options);
}

TEST(Allocation, EveryFormOfAnAttention) {
  auto named = [](const char *name) {
    return AttentionCase(name).tokens(33).sizes(300, 320);
  };
  checkCase(named("quadratic").configured("form = quadratic"));
  checkCase(named("softmax").causal().softmax());
  // The state is the call's own.
  checkCase(named("reassociated").reassociated("always"));
  checkCase(named("scan").causal().form("chunk:16").heads(4, 2, 2));
}

TEST(Allocation, AStep) {
  // A step has a workspace for its keys alone: the stack holds shorter ones.
  // LLVM's quick mode takes quadratic time for the prefetches of this row.
  ScanCase step = ScanCase("step").tokens(1).sizes(20000, 24).delta();
  step.compiler.optimization = Optimization::Full;
  checkCase(step);
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
