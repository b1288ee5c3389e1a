//===- KernelCodeTest.cpp - Numbers that compiled code computes -----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerTestUtils.h"
#include "linattn/Support/Elements.h"

#include <cmath>

using namespace linattn;
using namespace linattn::test;

namespace {

/// Every bit pattern of a narrow float, there and back, and doubled.
void checkNarrowFloat(DType dtype) {
  std::string text = R"mlir(
    #id = affine_map<(i) -> (i)>
    func.func @f(%x: tensor<?x$T>, %y: tensor<?xf32>)
        -> (tensor<?xf32>, tensor<?x$T>, tensor<?x$T>) {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?x$T>
      %e0 = tensor.empty(%n) : tensor<?xf32>
      %e1 = tensor.empty(%n) : tensor<?x$T>
      %r:3 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id],
                             iterator_types = ["parallel"]}
          ins(%x, %y : tensor<?x$T>, tensor<?xf32>)
          outs(%e0, %e1, %e1 : tensor<?xf32>, tensor<?x$T>, tensor<?x$T>) {
      ^bb0(%a: $T, %b: f32, %0: f32, %1: $T, %2: $T):
        %wide = arith.extf %a : $T to f32
        %narrow = arith.truncf %b : f32 to $T
        %sum = arith.addf %a, %a : $T
        linalg.yield %wide, %narrow, %sum : f32, $T, $T
      } -> (tensor<?xf32>, tensor<?x$T>, tensor<?x$T>)
      return %r#0, %r#1, %r#2 : tensor<?xf32>, tensor<?x$T>, tensor<?x$T>
    })mlir";
  Kernel kernel = compile(replaced(text, "$T", getName(dtype)));
  constexpr int64_t n = 65536;
  std::vector<uint16_t> x(n), narrow(n), sum(n);
  std::vector<float> y(n), wide(n);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = static_cast<uint16_t>(i);
    // Between two representable numbers, ties included.
    y[i] = static_cast<float>(loadElement(dtype, x.data(), i)) *
           (1.0f + static_cast<float>(i % 9) * 0x1.0p-11f);
  }
  auto narrowView = [&](std::vector<uint16_t> &data) {
    return BufferView(static_cast<void *>(data.data()), dtype, {n});
  };
  ASSERT_EQ(llvm::toString(kernel.run(
                {narrowView(x), view(y, {n})},
                {view(wide, {n}), narrowView(narrow), narrowView(sum)})),
            "");
  std::vector<uint16_t> expected(2);
  for (int64_t i = 0; i < n; ++i) {
    double value = loadElement(dtype, x.data(), i);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(wide[i])) << i;
      EXPECT_TRUE(std::isnan(loadElement(dtype, narrow.data(), i))) << i;
      continue;
    }
    ASSERT_EQ(wide[i], value) << i;
    storeElement(dtype, expected.data(), 0, y[i]);
    // Conversions move bits; arithmetic takes subnormal numbers for zeros.
    if (std::fpclassify(static_cast<float>(value)) == FP_SUBNORMAL)
      value = std::copysign(0.0, value);
    storeElement(dtype, expected.data(), 1, value + value);
    ASSERT_EQ(narrow[i], expected[0]) << i << " " << y[i];
    ASSERT_EQ(sum[i], expected[1]) << i;
  }
}

TEST(KernelCode, EveryBFloat16) { checkNarrowFloat(DType::BF16); }
TEST(KernelCode, EveryHalf) { checkNarrowFloat(DType::F16); }

TEST(KernelCode, VectorExpAndLogAreAccurate) {
  Kernel kernel = compile(R"mlir(
    func.func @f(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %n = arith.constant 1024 : index
      %pad = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<1024xf32>
      %r:2 = scf.for %i = %c0 to %n step %c16 iter_args(%o = %e, %p = %e)
          -> (tensor<1024xf32>, tensor<1024xf32>) {
        %v = vector.transfer_read %x[%i], %pad {in_bounds = [true]}
            : tensor<1024xf32>, vector<16xf32>
        %exp = math.exp %v : vector<16xf32>
        %log = math.log %exp : vector<16xf32>
        %w = vector.transfer_write %exp, %o[%i] {in_bounds = [true]}
            : vector<16xf32>, tensor<1024xf32>
        %z = vector.transfer_write %log, %p[%i] {in_bounds = [true]}
            : vector<16xf32>, tensor<1024xf32>
        scf.yield %w, %z : tensor<1024xf32>, tensor<1024xf32>
      }
      return %r#0, %r#1 : tensor<1024xf32>, tensor<1024xf32>
    })mlir");
  std::vector<float> x(1024), e(1024), l(1024);
  for (int i = 0; i < 1024; ++i)
    x[i] = static_cast<float>(i - 512) / 6.0f;
  ASSERT_EQ(llvm::toString(kernel.run({view(x, {1024})},
                                      {view(e, {1024}), view(l, {1024})})),
            "");
  for (int i = 0; i < 1024; ++i) {
    double exact = std::exp(static_cast<double>(x[i]));
    EXPECT_NEAR(e[i], exact, 3e-7 * exact) << x[i];
    EXPECT_NEAR(l[i], x[i], 2e-6 * std::abs(x[i]) + 1e-6) << x[i];
  }
}

#if defined(__x86_64__)
// The products and sums of a scan are fused, as vector.fma says.
TEST(KernelCode, MultiplyAddsAreFused) {
  if (!__builtin_cpu_supports("fma") || !__builtin_cpu_supports("avx2"))
    GTEST_SKIP() << "this CPU has no fused multiply-add";
  llvm::Expected<Kernel> kernel = Compiler().compile(R"(
    func.func @f(%x: tensor<1x2x256x64xf32>) -> tensor<1x2x256x64xf32> {
      %o = linattn.attention %x, %x, %x {causal}
        : (tensor<1x2x256x64xf32>, tensor<1x2x256x64xf32>,
           tensor<1x2x256x64xf32>) -> tensor<1x2x256x64xf32>
      return %o : tensor<1x2x256x64xf32>
    })");
  ASSERT_TRUE(static_cast<bool>(kernel)) << llvm::toString(kernel.takeError());
  llvm::Expected<std::string> assembly = kernel->assembly();
  ASSERT_TRUE(static_cast<bool>(assembly));
  EXPECT_NE(assembly->find("vfmadd"), std::string::npos);
  EXPECT_EQ(assembly->find("vmulps"), std::string::npos);
}
#endif

TEST(KernelCode, ThreadsDoNotChangeBits) {
  Kernel kernel = compile(R"mlir(
    func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?x64xf32>
      %e = tensor.empty(%n) : tensor<?x64xf32>
      %r = scf.forall (%i, %j) in (%n, 4) shared_outs(%o = %e)
          -> tensor<?x64xf32> {
        %jj = affine.apply affine_map<(d) -> (d * 16)>(%j)
        %s = tensor.extract_slice %x[%i, %jj] [1, 16] [1, 1]
            : tensor<?x64xf32> to tensor<1x16xf32>
        %t = tensor.extract_slice %o[%i, %jj] [1, 16] [1, 1]
            : tensor<?x64xf32> to tensor<1x16xf32>
        %v = linalg.tanh ins(%s : tensor<1x16xf32>) outs(%t : tensor<1x16xf32>)
            -> tensor<1x16xf32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %v into %o[%i, %jj] [1, 16] [1, 1]
              : tensor<1x16xf32> into tensor<?x64xf32>
        }
      }
      return %r : tensor<?x64xf32>
    })mlir");
  constexpr int64_t rows = 37;
  std::vector<float> x(rows * 64), one(rows * 64), many(rows * 64);
  fillRandom(DType::F32, x.data(), rows * 64, 1, 0);
  ASSERT_FALSE(static_cast<bool>(
      kernel.run({view(x, {rows, 64})}, {view(one, {rows, 64})}, {1})));
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(one[i], std::tanh(x[i]), 1e-6);
  for (int threads : {2, 3, 8}) {
    ASSERT_FALSE(static_cast<bool>(kernel.run(
        {view(x, {rows, 64})}, {view(many, {rows, 64})}, {threads})));
    EXPECT_EQ(one, many);
  }
}

} // namespace
