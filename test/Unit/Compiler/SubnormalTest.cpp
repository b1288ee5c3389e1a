//===- SubnormalTest.cpp - The floating-point mode of kernels -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerTestUtils.h"
#include "FloatMode.h"
#include <cfenv>
#include <cmath>

using namespace linattn;
using namespace linattn::test;

namespace {

/// y = x · by in a type, row by row in tasks of their own.
std::string makeProduct(const std::string &type) {
  std::string text = R"mlir(
func.func @product(%x: tensor<8x?x$>, %by: $) -> tensor<8x?x$> {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<8x?x$>
  %e = tensor.empty(%n) : tensor<8x?x$>
  %o = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x?x$>) outs(%e : tensor<8x?x$>) {
  ^bb0(%a: $, %b: $):
    %y = arith.mulf %a, %by : $
    linalg.yield %y : $
  } -> tensor<8x?x$>
  return %o : tensor<8x?x$>
}
)mlir";
  for (size_t at; (at = text.find('$')) != std::string::npos;)
    text.replace(at, 1, type);
  return text;
}

/// A state of each of eight heads and a decay, which may be in a wider type.
std::string makeScan(const std::string &type) {
  std::string text = R"mlir(
func.func @scan(%x: tensor<1x8x1x4x$>, %g: tensor<1x8x1xf64>,
                %s: tensor<1x8x4x4x$>)
    -> (tensor<1x8x1x4x$>, tensor<1x8x4x4x$>) {
  %e = tensor.empty() : tensor<1x8x1x4x$>
  %o, %n = linattn.scan %x, %x, %x decay(%g) into(%e) init(%s)
    : (tensor<1x8x1x4x$>, tensor<1x8x1x4x$>, tensor<1x8x1x4x$>,
       tensor<1x8x1xf64>, tensor<1x8x1x4x$>, tensor<1x8x4x4x$>)
    -> (tensor<1x8x1x4x$>, tensor<1x8x4x4x$>)
  return %o, %n : tensor<1x8x1x4x$>, tensor<1x8x4x4x$>
}
)mlir";
  for (size_t at; (at = text.find('$')) != std::string::npos;)
    text.replace(at, 1, type);
  return text;
}

/// Rounds upwards and flushes, neither of which kernels do or leave behind.
class OddMode {
public:
  OddMode() : former(getFloatMode()) {
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    setFloatMode(getFloatMode() | 0x8040);
#endif
  }
  ~OddMode() {
    fesetround(FE_TONEAREST);
    setFloatMode(former);
  }

private:
  FloatMode former;
};

template <typename T>
BufferView viewOf(std::vector<T> &data) {
  return BufferView(static_cast<void *>(data.data()),
                    sizeof(T) == 4 ? DType::F32 : DType::F64,
                    {8, static_cast<int64_t>(data.size() / 8)});
}

template <typename T>
BufferView scalarOf(T &value) {
  return BufferView(static_cast<void *>(&value),
                    sizeof(T) == 4 ? DType::F32 : DType::F64, {});
}

RunOptions withThreads(int32_t count) {
  RunOptions options;
  options.numThreads = count;
  return options;
}

TEST(SubnormalTest, AreZerosInF32) {
  Kernel kernel = compile(makeProduct("f32"));
  float tiny = 1e-20f, one = 1;
  for (int32_t threads : {1, 4}) {
    std::vector<float> x(8 * 100, 1e-20f), y(x.size(), NAN);
    llvm::cantFail(kernel.run({viewOf(x), scalarOf(tiny)}, {viewOf(y)},
                              withThreads(threads)));
    EXPECT_EQ(y, std::vector<float>(x.size(), 0)) << threads;
    std::fill(x.begin(), x.end(), 1e-40f);
    llvm::cantFail(kernel.run({viewOf(x), scalarOf(one)}, {viewOf(y)},
                              withThreads(threads)));
    EXPECT_EQ(y, std::vector<float>(x.size(), 0)) << threads;
  }
}

TEST(SubnormalTest, AreKeptOnAnEmulatedGPU) {
  CompilerOptions options;
  options.target = Target::NVVMEmulated;
  Kernel kernel = compile(makeProduct("f32"), "", options);
  float tiny = 1e-20f;
  float product = tiny * tiny;
  ASSERT_GT(product, 0);
  std::vector<float> x(8 * 100, 1e-20f), y(x.size(), NAN);
  llvm::cantFail(kernel.run({viewOf(x), scalarOf(tiny)}, {viewOf(y)}));
  EXPECT_EQ(y, std::vector<float>(x.size(), product));
}

TEST(SubnormalTest, AreKeptInF64) {
  Kernel kernel = compile(makeProduct("f64"));
  double tiny = 1e-160;
  for (int32_t threads : {1, 4}) {
    std::vector<double> x(8 * 100, 1e-160), y(x.size(), NAN);
    llvm::cantFail(kernel.run({viewOf(x), scalarOf(tiny)}, {viewOf(y)},
                              withThreads(threads)));
    EXPECT_EQ(y, std::vector<double>(x.size(), 1e-320)) << threads;
  }
}

/// The least normal number decays to a subnormal one. Gates in f64 are rounded
/// to the type that the rest is computed in.
template <typename T>
void testScan(const std::string &type, T expected) {
  Kernel kernel = compile(makeScan(type));
  T tiny = std::numeric_limits<T>::min();
  for (int32_t threads : {1, 4}) {
    std::vector<T> x(8 * 4, 0), o(x.size(), NAN), s(8 * 16, tiny),
        n(s.size(), NAN);
    std::vector<double> g(8, -2);
    DType dtype = viewOf(x).dtype;
    auto tokens = [&](std::vector<T> &data) {
      return BufferView(static_cast<void *>(data.data()), dtype, {1, 8, 1, 4});
    };
    auto state = [&](std::vector<T> &data) {
      return BufferView(static_cast<void *>(data.data()), dtype, {1, 8, 4, 4});
    };
    BufferView gate(static_cast<void *>(g.data()), DType::F64, {1, 8, 1});
    llvm::cantFail(kernel.run({tokens(x), gate, state(s)},
                              {tokens(o), state(n)}, withThreads(threads)));
    for (T value : n)
      ASSERT_NEAR(value, expected, expected * 1e-12) << threads;
  }
}

TEST(SubnormalTest, AreZerosInScansOfF32) { testScan<float>("f32", 0); }

TEST(SubnormalTest, AreKeptInScansOfF64) {
  testScan<double>("f64", std::numeric_limits<double>::min() * std::exp(-2));
}

TEST(SubnormalTest, CallersKeepTheirMode) {
  Kernel narrow = compile(makeProduct("f32"));
  Kernel wide = compile(makeProduct("f64"));
  std::vector<float> x(8 * 100, 1e-20f), y(x.size());
  std::vector<double> wideX(8 * 100, 1e-160), wideY(x.size());
  float by = 1e-20f;
  double wideBy = 1e-160;
  auto runAll = [&] {
    FloatMode before = getFloatMode();
    for (int32_t threads : {1, 4}) {
      llvm::cantFail(narrow.run({viewOf(x), scalarOf(by)}, {viewOf(y)},
                                withThreads(threads)));
      EXPECT_EQ(getFloatMode(), before) << threads;
      llvm::cantFail(wide.run({viewOf(wideX), scalarOf(wideBy)},
                              {viewOf(wideY)}, withThreads(threads)));
      EXPECT_EQ(getFloatMode(), before) << threads;
    }
    // An error: two rows are too few.
    BufferView few(static_cast<void *>(x.data()), DType::F32, {2, 100});
    llvm::Error error = narrow.run({few, scalarOf(by)}, {viewOf(y)});
    EXPECT_TRUE(static_cast<bool>(error));
    llvm::consumeError(std::move(error));
    EXPECT_EQ(getFloatMode(), before);
  };
  runAll();
  OddMode odd;
  runAll();
}

/// Results are the same bits whatever the caller's mode.
TEST(SubnormalTest, CallersModesDoNotMatter) {
  Kernel narrow = compile(makeProduct("f32"));
  Kernel wide = compile(makeProduct("f64"));
  std::vector<float> x(8 * 100, 1.1f), y(x.size()), oddY(x.size());
  std::vector<double> wideX(8 * 100, 1.1e-160), wideY(x.size()),
      oddWideY(x.size());
  float by = 1.3f;
  double wideBy = 1.3e-160;
  llvm::cantFail(narrow.run({viewOf(x), scalarOf(by)}, {viewOf(y)}));
  llvm::cantFail(wide.run({viewOf(wideX), scalarOf(wideBy)}, {viewOf(wideY)}));
  for (int32_t threads : {1, 4}) {
    OddMode odd;
    llvm::cantFail(narrow.run({viewOf(x), scalarOf(by)}, {viewOf(oddY)},
                              withThreads(threads)));
    llvm::cantFail(wide.run({viewOf(wideX), scalarOf(wideBy)},
                            {viewOf(oddWideY)}, withThreads(threads)));
  }
  EXPECT_EQ(y, oddY);
  EXPECT_EQ(wideY, oddWideY);
}

/// LLVM computes constants as the machine would.
TEST(SubnormalTest, ConstantsAreFoldedAlike) {
  constexpr const char *kFlushing =
      "\"denormal-fp-math\"=\"preserve-sign,preserve-sign\"";
  auto getIR = [](const std::string &type) {
    return llvm::cantFail(compile(makeProduct(type)).llvmIR());
  };
  EXPECT_NE(getIR("f32").find(kFlushing), std::string::npos);
  EXPECT_EQ(getIR("f64").find(kFlushing), std::string::npos);
}

} // namespace
