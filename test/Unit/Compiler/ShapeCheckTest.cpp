//===- ShapeCheckTest.cpp - Arguments whose sizes do not agree ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerTestUtils.h"
#include <cmath>
#include <limits>

using namespace linattn;
using namespace linattn::test;

namespace {

constexpr const char *kAttend = R"mlir(
func.func @attend(%q: tensor<1x2x?x4xf32>, %k: tensor<1x2x?x4xf32>,
                  %v: tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> {
  %o = linattn.attention %q, %k, %v {causal}
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>)
    -> tensor<1x2x?x4xf32>
  return %o : tensor<1x2x?x4xf32>
}
)mlir";

/// Runs a function of [1, 2, T, 4] tensors that returns one of T = 8.
std::string runWith(const Kernel &kernel, llvm::ArrayRef<int64_t> tokens) {
  std::vector<std::vector<float>> data;
  llvm::SmallVector<BufferView> views;
  for (int64_t count : tokens)
    views.push_back(
        view(data.emplace_back(1 * 2 * count * 4, 1.0f), {1, 2, count, 4}));
  std::vector<float> out(1 * 2 * 8 * 4);
  return llvm::toString(kernel.run(views, {view(out, {1, 2, 8, 4})}));
}

TEST(ShapeCheck, AttentionNamesItsOperands) {
  for (Target target : {Target::CPU, Target::Reference}) {
    CompilerOptions options;
    options.target = target;
    Kernel kernel = compile(kAttend, "", options);
    EXPECT_EQ(runWith(kernel, {8, 8, 8}), "");
    EXPECT_EQ(runWith(kernel, {8, 8, 5}),
              "'attend': expected key and value to have the same sequence "
              "length, but got 8 and 5");
    EXPECT_EQ(runWith(kernel, {8, 9, 9}),
              "'attend': expected query and key to have the same sequence "
              "length, but got 8 and 9");
    // The first relation that fails is the one that is told.
    EXPECT_EQ(runWith(kernel, {8, 9, 7}),
              "'attend': expected key and value to have the same sequence "
              "length, but got 9 and 7");
  }
}

TEST(ShapeCheck, SurvivesEveryForm) {
  for (const char *form : {"token", "state_tile", "chunk:3"}) {
    CompilerOptions options;
    options.form = form;
    Kernel kernel = compile(kAttend, "", options);
    EXPECT_EQ(runWith(kernel, {8, 8, 8}), "") << form;
    EXPECT_EQ(runWith(kernel, {8, 8, 5}),
              "'attend': expected key and value to have the same sequence "
              "length, but got 8 and 5")
        << form;
  }
}

TEST(ShapeCheck, ResultShapesChecksToo) {
  Kernel kernel = compile(kAttend);
  std::vector<float> data(64);
  auto shapes =
      kernel.resultShapes({view(data, {1, 2, 8, 4}), view(data, {1, 2, 8, 4}),
                           view(data, {1, 2, 5, 4})});
  ASSERT_FALSE(static_cast<bool>(shapes));
  EXPECT_EQ(llvm::toString(shapes.takeError()),
            "'attend': expected key and value to have the same sequence "
            "length, but got 8 and 5");
}

TEST(ShapeCheck, BothLayoutsAndTheDiskCacheKnowTheChecks) {
  TemporaryDirectory directory;
  for (int round = 0; round < 2; ++round) {
    CompilerOptions options;
    options.memoryCache = false;
    options.cacheDir = directory / "cache";
    Kernel kernel = llvm::cantFail(Compiler(options).compile(kAttend));
    EXPECT_EQ(runWith(kernel, {8, 8, 5}),
              "'attend': expected key and value to have the same sequence "
              "length, but got 8 and 5");
    std::vector<float> data(128), out(64);
    BufferView strided(static_cast<void *>(data.data()), DType::F32,
                       {1, 2, 8, 4}, {0, 64, 8, 2});
    EXPECT_EQ(
        llvm::toString(kernel.run({strided, strided, view(data, {1, 2, 5, 4})},
                                  {view(out, {1, 2, 8, 4})})),
        "'attend': expected key and value to have the same sequence "
        "length, but got 8 and 5");
  }
}

TEST(ShapeCheck, OperandsOfStaticResultsAreChecked) {
  Kernel kernel = compile(R"mlir(
    func.func @state(%k: tensor<1x2x?x4xf32>, %v: tensor<1x2x?x4xf32>,
                     %s: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
      %r = linattn.state %k, %v init(%s)
        : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
        -> tensor<1x2x4x4xf32>
      return %r : tensor<1x2x4x4xf32>
    })mlir");
  std::vector<float> k(64), v(40), s(32), out(32);
  EXPECT_EQ(
      llvm::toString(kernel.run(
          {view(k, {1, 2, 8, 4}), view(v, {1, 2, 5, 4}), view(s, {1, 2, 4, 4})},
          {view(out, {1, 2, 4, 4})})),
      "'state': expected key and value to have the same sequence length, "
      "but got 8 and 5");
}

TEST(ShapeCheck, GroupedHeads) {
  Kernel kernel = compile(R"mlir(
    func.func @heads(%q: tensor<1x?x2x4xf32>, %k: tensor<1x?x2x4xf32>)
        -> tensor<1x?x2x4xf32> {
      %o = linattn.attention %q, %k, %k
        : (tensor<1x?x2x4xf32>, tensor<1x?x2x4xf32>, tensor<1x?x2x4xf32>)
        -> tensor<1x?x2x4xf32>
      return %o : tensor<1x?x2x4xf32>
    })mlir");
  std::vector<float> q(64), k(64);
  auto shapesOf = [&](int64_t queryHeads, int64_t keyHeads) {
    auto shapes = kernel.resultShapes(
        {view(q, {1, queryHeads, 2, 4}), view(k, {1, keyHeads, 2, 4})});
    if (!shapes)
      return llvm::toString(shapes.takeError());
    return formatShape(shapes->front());
  };
  EXPECT_EQ(shapesOf(4, 2), "1x4x2x4");
  EXPECT_EQ(shapesOf(1, 3), "1x3x2x4");
  EXPECT_EQ(shapesOf(0, 0), "1x0x2x4");
  EXPECT_EQ(shapesOf(3, 2), "'heads': expected head counts of query and key to "
                            "divide one another, but got 3 and 2");
  EXPECT_EQ(shapesOf(3, 0), "'heads': expected head counts of query and key to "
                            "divide one another, but got 3 and 0");
}

TEST(ShapeCheck, OtherDialects) {
  Kernel kernel = compile(R"mlir(
    func.func private @double(%x: tensor<?xf32>, %y: tensor<?xf32>)
        -> tensor<?xf32> {
      %0 = arith.addf %x, %y : tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %n: index)
        -> tensor<2xf32> {
      %0 = call @double(%x, %y)
          : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      %1 = tensor.extract_slice %0[%n] [2] [1]
          : tensor<?xf32> to tensor<2xf32>
      return %1 : tensor<2xf32>
    })mlir");
  std::vector<float> x{1, 2, 3, 4}, out(2);
  auto run = [&](int64_t sizeX, int64_t sizeY, int64_t n) {
    return llvm::toString(kernel.run(
        {view(x, {sizeX}), view(x, {sizeY}), BufferView(&n, DType::Index, {})},
        {view(out, {2})}));
  };
  EXPECT_EQ(run(4, 4, 1), "");
  EXPECT_EQ(out, (std::vector<float>{4, 6}));
  EXPECT_EQ(run(4, 3, 1),
            "'main': arith.addf: expected dimension 0 of operand 0 and "
            "dimension 0 of operand 1 to have the same size, but got 4 and 3");
  EXPECT_EQ(run(4, 4, 3),
            "'main': tensor.extract_slice: expected a slice inside dimension 0 "
            "of size 4, but got offset 3, size 2 and stride 1");
  EXPECT_EQ(run(4, 4, -1),
            "'main': tensor.extract_slice: expected a slice inside dimension 0 "
            "of size 4, but got offset -1, size 2 and stride 1");
}

TEST(ShapeCheck, OffsetsOfPackedSequences) {
  Kernel kernel = compile(R"mlir(
    func.func @packed(%x: tensor<1x1x?x2xf32>, %cu: tensor<?xi32>,
                      %o: tensor<1x1x?x2xf32>, %s: tensor<?x1x2x2xf32>)
        -> (tensor<1x1x?x2xf32>, tensor<?x1x2x2xf32>) {
      %r:2 = linattn.scan %x, %x, %x cu_seqlens(%cu) into(%o) init(%s)
        : (tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>, tensor<1x1x?x2xf32>,
           tensor<?xi32>, tensor<1x1x?x2xf32>, tensor<?x1x2x2xf32>)
        -> (tensor<1x1x?x2xf32>, tensor<?x1x2x2xf32>)
      return %r#0, %r#1 : tensor<1x1x?x2xf32>, tensor<?x1x2x2xf32>
    })mlir");
  auto run = [&](std::vector<int32_t> offsets, int64_t states) {
    std::vector<float> x(16, 1.0f), out(16), s(16), end(16);
    auto count = static_cast<int64_t>(offsets.size());
    return llvm::toString(kernel.run(
        {view(x, {1, 1, 8, 2}),
         BufferView(static_cast<void *>(offsets.data()), DType::I32, {count}),
         view(x, {1, 1, 8, 2}), view(s, {states, 1, 2, 2})},
        {view(out, {1, 1, 8, 2}), view(end, {states, 1, 2, 2})}));
  };
  EXPECT_EQ(run({0, 3, 3, 8}, 3), "");
  EXPECT_EQ(run({0, 8}, 2),
            "'packed': expected the batch size of state to be one less than "
            "the length of cu_seqlens (2), but got 2");
  EXPECT_EQ(run({1, 3, 8}, 2),
            "'packed': expected cu_seqlens to start at 0, but got 1");
  EXPECT_EQ(run({0, 5, 3, 8}, 3),
            "'packed': expected cu_seqlens not to decrease, but offset 2 is 3 "
            "after 5");
  EXPECT_EQ(run({0, 3, 9}, 2),
            "'packed': expected cu_seqlens to end at the sequence length 8, "
            "but got 9");
}

TEST(ShapeCheck, NegativeSizes) {
  Kernel kernel = compile(R"mlir(
    func.func @splat(%x: f32, %n: index) -> tensor<?xf32> {
      %0 = tensor.splat %x[%n] : tensor<?xf32>
      return %0 : tensor<?xf32>
    })mlir");
  float x = 1;
  int64_t n = -3;
  auto shapes = kernel.resultShapes(
      {BufferView(&x, DType::F32, {}), BufferView(&n, DType::Index, {})});
  ASSERT_FALSE(static_cast<bool>(shapes));
  EXPECT_EQ(llvm::toString(shapes.takeError()),
            "result 0: expected sizes that are not negative, but got -3");
}

TEST(ShapeCheck, ComesBeforeShapesThatDependOnData) {
  Kernel kernel = compile(R"mlir(
    func.func @data(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %c0 = arith.constant 0 : index
      %0 = arith.addf %x, %y : tensor<?xf32>
      %1 = tensor.extract %0[%c0] : tensor<?xf32>
      %2 = arith.fptosi %1 : f32 to i64
      %3 = arith.index_cast %2 : i64 to index
      %4 = tensor.splat %1[%3] : tensor<?xf32>
      return %4 : tensor<?xf32>
    })mlir");
  std::vector<float> x{1, 2}, y{2, 3, 4};
  auto shapes = kernel.resultShapes({view(x, {2}), view(y, {2})});
  ASSERT_TRUE(static_cast<bool>(shapes));
  EXPECT_EQ(shapes->front(), (Kernel::Shape{3}));
  shapes = kernel.resultShapes({view(x, {2}), view(y, {3})});
  ASSERT_FALSE(static_cast<bool>(shapes));
  EXPECT_EQ(llvm::toString(shapes.takeError()),
            "'data': arith.addf: expected dimension 0 of operand 0 and "
            "dimension 0 of operand 1 to have the same size, but got 2 and 3");
}

constexpr const char *kDecay = R"(
func.func @fade(%x: tensor<1x2x?x4xf32>, %g: tensor<1x2x?xf32>, %s: tensor<1x2x4x4xf32>) -> tensor<1x2x?x4xf32> {
  %c2 = arith.constant 2 : index
  %t = tensor.dim %x, %c2 : tensor<1x2x?x4xf32>
  %o = tensor.empty(%t) : tensor<1x2x?x4xf32>
  %r:2 = linattn.scan %x, %x, %x decay(%g) into(%o) init(%s)
    : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?xf32>, tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>) -> (tensor<1x2x?x4xf32>, tensor<1x2x4x4xf32>)
  return %r#0 : tensor<1x2x?x4xf32>
}
)";

// A decay of −∞ forgets all; above 0 there is none, nor does NaN compare.
TEST(ShapeCheck, DecaysAreCheckedOnRequest) {
  constexpr int64_t tokens = 6;
  std::vector<float> x(2 * tokens * 4), gates(2 * tokens), state(2 * 4 * 4),
      out(2 * tokens * 4);
  auto runWithGate = [&](bool isAsked, float gate) {
    CompilerOptions options;
    options.checkDecays = isAsked;
    Kernel kernel = compile(kDecay, "", options);
    std::fill(gates.begin(), gates.end(), -0.5f);
    gates[tokens + 4] = gate;
    return llvm::toString(
        kernel.run({view(x, {1, 2, tokens, 4}), view(gates, {1, 2, tokens}),
                    view(state, {1, 2, 4, 4})},
                   {view(out, {1, 2, tokens, 4})}));
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::string expected = "'fade': linattn.scan: expected decay to be "
                               "natural logarithms of at most 0, but got ";
  EXPECT_EQ(runWithGate(true, 0.25f),
            expected + "a positive number at [0, 1, 4]");
  EXPECT_EQ(runWithGate(true, infinity),
            expected + "a positive number at [0, 1, 4]");
  EXPECT_EQ(runWithGate(true, std::nanf("")), expected + "NaN at [0, 1, 4]");
  EXPECT_EQ(runWithGate(true, -infinity), "");
  EXPECT_EQ(runWithGate(true, -0.0f), "");
  EXPECT_EQ(runWithGate(false, 0.25f), "");
}

} // namespace
