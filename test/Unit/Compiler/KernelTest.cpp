//===- KernelTest.cpp - Calling compiled functions ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerTestUtils.h"
#include "linattn/Support/Elements.h"
#include "linattn/Support/Interrupted.h"
#include <atomic>
#include <cmath>
#include <thread>

using namespace linattn;
using namespace linattn::test;

namespace {

class MatmulTest : public ::testing::Test {
protected:
  static Kernel getKernel() {
    static Kernel kernel = compile(kMatmul);
    return kernel;
  }

  MatmulTest() : a(8), b(12), c(6) {
    for (size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<float>(i) - 3;
    for (size_t i = 0; i < b.size(); ++i)
      b[i] = static_cast<float>(i % 5) + 0.5f;
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j) {
        float sum = 0;
        for (int k = 0; k < 4; ++k)
          sum += a[i * 4 + k] * b[k * 3 + j];
        expected.push_back(sum);
      }
  }

  std::string run(llvm::ArrayRef<BufferView> inputs,
                  llvm::ArrayRef<BufferView> outputs) {
    return llvm::toString(getKernel().run(inputs, outputs));
  }

  BufferView viewA() { return view(a, {2, 4}); }
  BufferView viewB() { return view(b, {4, 3}); }
  BufferView viewC() { return view(c, {2, 3}); }

  std::vector<float> a, b, c, expected;
};

TEST_F(MatmulTest, Signature) {
  const Signature &signature = getKernel().signature();
  EXPECT_EQ(signature.entry, "matmul");
  ASSERT_EQ(signature.arguments.size(), 2u);
  EXPECT_EQ(signature.arguments[0].name, "a");
  EXPECT_EQ(signature.arguments[0].getTypeString(), "tensor<?x4xf32>");
  EXPECT_EQ(signature.arguments[1].getTypeString(), "tensor<4x3xf32>");
  ASSERT_EQ(signature.results.size(), 1u);
  EXPECT_EQ(signature.results[0].getTypeString(), "tensor<?x3xf32>");
}

TEST_F(MatmulTest, Runs) {
  EXPECT_EQ(run({viewA(), viewB()}, {viewC()}), "");
  EXPECT_EQ(c, expected);
}

TEST_F(MatmulTest, ResultShapes) {
  auto shapes = getKernel().resultShapes({viewA(), viewB()});
  ASSERT_TRUE(static_cast<bool>(shapes));
  ASSERT_EQ(shapes->size(), 1u);
  EXPECT_EQ((*shapes)[0], (Kernel::Shape{2, 3}));
}

TEST_F(MatmulTest, Deadlines) {
  auto run = [&](std::chrono::seconds left) {
    RunOptions options;
    options.deadline = std::chrono::steady_clock::now() + left;
    return getKernel().run({viewA(), viewB()}, {viewC()}, options);
  };
  llvm::handleAllErrors(
      run(std::chrono::seconds(-1)), [](const InterruptedError &error) {
        EXPECT_EQ(error.getReason(), InterruptedError::Deadline);
        EXPECT_EQ(error.message(),
                  "'matmul': ended by its deadline before it was done");
      });
  EXPECT_FALSE(llvm::errorToBool(run(std::chrono::seconds(3600))));
  EXPECT_EQ(c, expected);
}

TEST_F(MatmulTest, EmptyTensors) {
  BufferView none(static_cast<void *>(nullptr), DType::F32, {0, 4});
  BufferView result(static_cast<void *>(nullptr), DType::F32, {0, 3});
  EXPECT_EQ(run({none, viewB()}, {result}), "");
}

TEST_F(MatmulTest, RowStridesAndOffsets) {
  std::vector<float> wide(2 * 10, NAN), padded(2 * 7, -1);
  for (int i = 0; i < 2; ++i)
    for (int k = 0; k < 4; ++k)
      wide[i * 10 + 5 + k] = a[i * 4 + k];
  BufferView strided(static_cast<void *>(wide.data() + 5), DType::F32, {2, 4},
                     {10, 1});
  BufferView result(static_cast<void *>(padded.data() + 2), DType::F32, {2, 3},
                    {7, 1});
  EXPECT_EQ(run({strided, viewB()}, {result}), "");
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 7; ++j)
      EXPECT_EQ(padded[i * 7 + j],
                j >= 2 && j < 5 ? expected[i * 3 + j - 2] : -1);
}

/// A result that is small beside the input has any strides at no cost to the
/// input's loads: it is computed elsewhere and copied.
TEST(Kernel, SmallStridedResultsAreCopied) {
  Kernel kernel = test::compile(R"mlir(
    func.func @sums(%x: tensor<2x3x64xf32>) -> tensor<2x3xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<2x3xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x3xf32>)
          -> tensor<2x3xf32>
      %o = linalg.reduce { arith.addf }
          ins(%x : tensor<2x3x64xf32>) outs(%f : tensor<2x3xf32>)
          dimensions = [2]
      return %o : tensor<2x3xf32>
    })mlir");
  std::vector<float> x(2 * 3 * 64), padded(2 * 3 * 4, -1), backwards(6);
  for (auto [i, value] : llvm::enumerate(x))
    value = static_cast<float>(i / 64 + 1);
  BufferView input(x.data(), DType::F32, {2, 3, 64});
  BufferView strided(padded.data(), DType::F32, {2, 3}, {4, 8});
  EXPECT_FALSE(llvm::errorToBool(kernel.run({input}, {strided})));
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      EXPECT_EQ(padded[i * 4 + j * 8], 64.f * (i * 3 + j + 1));
  EXPECT_EQ(llvm::count(padded, -1.f), 18);
  BufferView negative(backwards.data() + 5, DType::F32, {2, 3}, {-3, -1});
  EXPECT_FALSE(llvm::errorToBool(kernel.run({input}, {negative})));
  EXPECT_EQ(backwards, (std::vector<float>{384, 320, 256, 192, 128, 64}));
  // A refused call leaves its memory as it was.
  BufferView wrong(padded.data(), DType::F32, {3, 2}, {4, 8});
  EXPECT_TRUE(llvm::errorToBool(kernel.run({input}, {wrong})));
  EXPECT_EQ(llvm::count(padded, -1.f), 18);
}

TEST_F(MatmulTest, InnermostAndNegativeStrides) {
  // Column-major, and with the rows in reverse order.
  std::vector<float> transposed(8), reversed(6);
  for (int i = 0; i < 2; ++i)
    for (int k = 0; k < 4; ++k)
      transposed[k * 2 + i] = a[i * 4 + k];
  BufferView columns(static_cast<void *>(transposed.data()), DType::F32, {2, 4},
                     {1, 2});
  BufferView backwards(static_cast<void *>(reversed.data() + 5), DType::F32,
                       {2, 3}, {-3, -1});
  EXPECT_EQ(run({columns, viewB()}, {backwards}), "");
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(reversed, expected);
}

TEST_F(MatmulTest, BroadcastInputs) {
  std::vector<float> row(a.begin(), a.begin() + 4);
  BufferView repeated(static_cast<void *>(row.data()), DType::F32, {2, 4},
                      {0, 1});
  EXPECT_EQ(run({repeated, viewB()}, {viewC()}), "");
  for (int j = 0; j < 3; ++j) {
    EXPECT_EQ(c[j], expected[j]);
    EXPECT_EQ(c[3 + j], expected[j]);
  }
}

TEST_F(MatmulTest, ErrorsNameTheArgument) {
  EXPECT_EQ(run({viewA()}, {viewC()}),
            "'matmul': expected 2 arguments, but got 1");
  EXPECT_EQ(run({viewA(), viewB()}, {}),
            "'matmul': expected 1 outputs, but got 0");
  EXPECT_EQ(run({viewA(), view(b, {3, 4})}, {viewC()}),
            "argument 1 (%b): expected shape 4x3, but got 3x4");
  EXPECT_EQ(run({view(a, {8}), viewB()}, {viewC()}),
            "argument 0 (%a): expected shape ?x4, but got 8");
  EXPECT_EQ(run({viewA(), viewB()}, {view(c, {1, 3})}),
            "result 0: expected shape 2x3, but got 1x3");
  BufferView wrongType = viewB();
  wrongType.dtype = DType::F64;
  EXPECT_EQ(run({viewA(), wrongType}, {viewC()}),
            "argument 1 (%b): expected elements of type f32, but got f64");
  BufferView null = viewA();
  null.data = nullptr;
  EXPECT_EQ(run({null, viewB()}, {viewC()}),
            "argument 0 (%a): expected a buffer of shape 2x4, but got a null "
            "pointer");
  BufferView odd = viewA();
  odd.data = reinterpret_cast<char *>(odd.data) + 2;
  EXPECT_EQ(run({odd, viewB()}, {viewC()}),
            "argument 0 (%a): expected a pointer aligned to 4 bytes");
  BufferView flat = viewA();
  flat.strides.pop_back();
  EXPECT_EQ(run({flat, viewB()}, {viewC()}),
            "argument 0 (%a): expected 2 strides, but got 1");
}

TEST_F(MatmulTest, OutputErrors) {
  BufferView readOnly = viewC();
  readOnly.readOnly = true;
  EXPECT_EQ(run({viewA(), viewB()}, {readOnly}),
            "result 0: expected a writable buffer, but got a read-only one");
  BufferView aliased(static_cast<void *>(b.data() + 6), DType::F32, {2, 3});
  EXPECT_EQ(run({viewA(), viewB()}, {aliased}),
            "result 0: expected a buffer of its own, but it overlaps argument "
            "1 (%b)");
  BufferView repeated(static_cast<void *>(c.data()), DType::F32, {2, 3},
                      {0, 1});
  EXPECT_EQ(run({viewA(), viewB()}, {repeated}),
            "result 0: expected strides that give every element its own place "
            "in memory");
  EXPECT_EQ(
      llvm::toString(getKernel().run({viewA(), viewB()}, {viewC()}, {-1})),
      "expected a number of threads that is not negative, but got -1");
}

// Expanded arrays have as many elements as they like, and no memory.
TEST_F(MatmulTest, SizesThatOverflow) {
  constexpr int64_t many = int64_t(1) << 60;
  std::vector<float> row(4, 1.0f);
  auto expanded = [&](int64_t rows) {
    return BufferView(row.data(), DType::F32, {rows, 4}, {0, 1});
  };
  auto shapesOf = [&](const BufferView &a) {
    auto shapes = getKernel().resultShapes({a, viewB()});
    return shapes ? "" : llvm::toString(shapes.takeError());
  };
  // The 2^64 bytes of %a wrap around to none.
  for (int64_t rows : {many, many / 2})
    EXPECT_EQ(shapesOf(expanded(rows)),
              "argument 0 (%a): expected an array of at most "
              "9223372036854775807 bytes, but got shape " +
                  std::to_string(rows) + "x4 with elements of 4 bytes");
  EXPECT_EQ(shapesOf(expanded(many / 4)), "");
  // Two rows, so far apart that their distance in bytes overflows.
  BufferView apart(row.data(), DType::F32, {2, 4}, {many * 2, 1});
  EXPECT_EQ(run({apart, viewB()}, {viewC()}),
            "argument 0 (%a): expected an array of at most "
            "9223372036854775807 bytes, but got shape 2x4 and strides "
            "2305843009213693952, 1 with elements of 4 bytes");
}

TEST(Kernel, ResultsThatOverflow) {
  Kernel kernel = compile(R"(
    func.func @outer(%x: tensor<?xf32>) -> tensor<?x?x4xf32> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %e = tensor.empty(%n, %n) : tensor<?x?x4xf32>
      %zero = arith.constant 0.0 : f32
      %r = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x4xf32>)
        -> tensor<?x?x4xf32>
      return %r : tensor<?x?x4xf32>
    })");
  float one = 1;
  auto call = [&](int64_t n) {
    auto shapes = kernel.resultShapes({BufferView(&one, DType::F32, {n}, {0})});
    return shapes ? "" : llvm::toString(shapes.takeError());
  };
  EXPECT_EQ(call(int64_t(1) << 30),
            "result 0: expected an array of at most 9223372036854775807 bytes, "
            "but got shape 1073741824x1073741824x4 with elements of 4 bytes");
  EXPECT_EQ(call(int64_t(1) << 29), "");
}

TEST_F(MatmulTest, ManyThreadsShareAKernel) {
  Kernel kernel = getKernel();
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        std::vector<float> mine(6);
        // Half of them need the second layout, which compiles meanwhile.
        BufferView out = i % 2 ? view(mine, {2, 3})
                               : BufferView(static_cast<void *>(mine.data()),
                                            DType::F32, {2, 3}, {1, 2});
        if (kernel.run({viewA(), viewB()}, {out}))
          continue;
        good += i % 2 ? mine == expected : mine[2] == expected[1];
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 400);
}

TEST(Kernel, ScalarsAndUsersNamesOfLibraryFunctions) {
  Kernel kernel = compile(R"mlir(
    func.func @exp(%x: tensor<3xf32>, %s: f32, %n: index, %b: i1)
        -> (tensor<3xf32>, f32, index, i1) {
      %r = linalg.exp ins(%x : tensor<3xf32>) outs(%x : tensor<3xf32>)
          -> tensor<3xf32>
      %t = math.exp %s : f32
      return %r, %t, %n, %b : tensor<3xf32>, f32, index, i1
    })mlir");
  std::vector<float> x{0, 1, 2}, y(3);
  float s = 1, t = 0;
  int64_t n = 42, m = 0;
  uint8_t b = 1, d = 0;
  auto scalar = [](void *data, DType dtype) {
    return BufferView(data, dtype, {});
  };
  EXPECT_EQ(llvm::toString(
                kernel.run({view(x, {3}), scalar(&s, DType::F32),
                            scalar(&n, DType::Index), scalar(&b, DType::I1)},
                           {view(y, {3}), scalar(&t, DType::F32),
                            scalar(&m, DType::Index), scalar(&d, DType::I1)})),
            "");
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(y[i], std::exp(x[i]), 1e-6 * std::exp(x[i]));
  EXPECT_NEAR(t, std::exp(1.0f), 1e-6);
  EXPECT_EQ(m, 42);
  EXPECT_EQ(d, 1);
}

TEST(Kernel, InputsAreNotUpdatedInPlace) {
  Kernel kernel = compile(R"mlir(
    func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %r = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>)
          outs(%x : tensor<4xf32>) -> tensor<4xf32>
      return %r, %x : tensor<4xf32>, tensor<4xf32>
    })mlir");
  std::vector<float> x{1, 2, 3, 4}, y(4), z(4);
  EXPECT_EQ(
      llvm::toString(kernel.run({view(x, {4})}, {view(y, {4}), view(z, {4})})),
      "");
  EXPECT_EQ(x, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(z, x);
  EXPECT_EQ(
      llvm::toString(kernel.run({view(x, {4})}, {view(y, {4}), view(y, {4})})),
      "result 1: expected a buffer of its own, but it overlaps result 0");
}

// Large inputs keep their vectors where a small one has no neighbours: no code
// is compiled for that, and the result is the same.
TEST(Kernel, SmallStridedInputsAreCopied) {
  llvm::Expected<Kernel> kernel = Compiler().compile(R"(
    #rows = affine_map<(t, d) -> (t, d)>
    #gate = affine_map<(t, d) -> (t)>
    func.func @scale(%x: tensor<?x32xf32>, %g: tensor<?xf32>)
        -> tensor<?x32xf32> {
      %y = linalg.generic {indexing_maps = [#gate, #rows],
                           iterator_types = ["parallel", "parallel"]}
          ins(%g : tensor<?xf32>) outs(%x : tensor<?x32xf32>) {
        ^bb0(%a: f32, %b: f32):
          %p = arith.mulf %a, %b : f32
          linalg.yield %p : f32
      } -> tensor<?x32xf32>
      return %y : tensor<?x32xf32>
    })");
  ASSERT_TRUE(static_cast<bool>(kernel)) << llvm::toString(kernel.takeError());
  std::vector<float> x(3 * 32, 1.5f), y(3 * 32), g{2, -1, 3, -1, 4};
  BufferView strided(g.data() + 4, DType::F32, {3}, {-2});
  uint64_t before = Compiler::getCacheStats().misses;
  llvm::Error error =
      kernel->run({BufferView(x.data(), DType::F32, {3, 32}), strided},
                  {BufferView(y.data(), DType::F32, {3, 32})});
  ASSERT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
  EXPECT_EQ(Compiler::getCacheStats().misses, before);
  for (int t = 0; t < 3; ++t)
    for (int d = 0; d < 32; ++d)
      EXPECT_EQ(y[t * 32 + d], 1.5f * float(4 - t)) << t << ", " << d;
}

// Elements of every size, in two dimensions: [T, H] seen as [H, T].
template <typename T>
static void checkCopies(DType dtype, llvm::StringRef product) {
  std::string text = R"(
    #rows = affine_map<(h, t, d) -> (h, t, d)>
    #gate = affine_map<(h, t, d) -> (h, t)>
    func.func @scale(%x: tensor<2x?x32x$T>, %g: tensor<2x?x$T>)
        -> tensor<2x?x32x$T> {
      %y = linalg.generic {indexing_maps = [#gate, #rows],
                           iterator_types = ["parallel", "parallel",
                                             "parallel"]}
          ins(%g : tensor<2x?x$T>) outs(%x : tensor<2x?x32x$T>) {
        ^bb0(%a: $T, %b: $T):
          %p = $product %a, %b : $T
          linalg.yield %p : $T
      } -> tensor<2x?x32x$T>
      return %y : tensor<2x?x32x$T>
    })";
  Kernel kernel = compile(
      replaced(replaced(text, "$T", getName(dtype)), "$product", product));
  constexpr int64_t heads = 2, tokens = 3, size = 32;
  std::vector<T> x(heads * tokens * size, T(3)), y(x.size()),
      g{T(1), T(2), T(3), T(4), T(5), T(6)};
  llvm::Error error =
      kernel.run({BufferView(x.data(), dtype, {heads, tokens, size}),
                  BufferView(g.data(), dtype, {heads, tokens}, {1, heads})},
                 {BufferView(y.data(), dtype, {heads, tokens, size})});
  ASSERT_FALSE(static_cast<bool>(error)) << llvm::toString(std::move(error));
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t d = 0; d < size; ++d)
        EXPECT_EQ(y[(h * tokens + t) * size + d], T(3 * (t * heads + h + 1)));
}

TEST(Kernel, SmallStridedInputsOfAllElementSizesAreCopied) {
  checkCopies<int8_t>(DType::I8, "arith.muli");
  checkCopies<int16_t>(DType::I16, "arith.muli");
  checkCopies<float>(DType::F32, "arith.mulf");
  checkCopies<double>(DType::F64, "arith.mulf");
}

TEST(Kernel, Introspection) {
  Kernel kernel = compile(kMatmul);
  auto stages = kernel.stages();
  ASSERT_TRUE(static_cast<bool>(stages));
  EXPECT_EQ(stages->front(), "input");
  EXPECT_EQ(stages->back(), "llvm");
  EXPECT_NE(llvm::cantFail(kernel.mlir()).find("linalg.matmul"),
            std::string::npos);
  EXPECT_NE(llvm::cantFail(kernel.mlir("llvm")).find("llvm.func"),
            std::string::npos);
  EXPECT_NE(llvm::cantFail(kernel.llvmIR()).find("matmul__packed"),
            std::string::npos);
  EXPECT_NE(llvm::cantFail(kernel.assembly()).find("matmul__packed"),
            std::string::npos);
  auto unknown = kernel.mlir("nonsense");
  ASSERT_FALSE(static_cast<bool>(unknown));
  EXPECT_EQ(llvm::StringRef(llvm::toString(unknown.takeError()))
                .starts_with("expected a stage among input, "),
            true);
}

} // namespace
