//===- CompilerTest.cpp - Errors and options of the compiler --------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompilerTestUtils.h"
#include <cstdlib>

using namespace linattn;
using namespace linattn::test;

namespace {

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(CompilerErrors, ParseErrorsAreLocated) {
  EXPECT_EQ(getCompileError("func.func @f() {\n  %0 = nonsense\n}"),
            "test.mlir:2:8: error: custom op 'nonsense' is unknown (tried "
            "'func.nonsense' as well)");
  EXPECT_EQ(getCompileError(""),
            "test.mlir: error: expected a public function, but the module has "
            "none");
}

TEST(CompilerErrors, VerifierErrorsAreLocated) {
  EXPECT_EQ(getCompileError(R"mlir(func.func @f(%x: f32) -> f64 {
  return %x : f32
})mlir"),
            "test.mlir:2:3: error: type of return operand 0 ('f32') doesn't "
            "match function result type ('f64') in function @f");
}

TEST(CompilerErrors, EntrySelection) {
  const char *two = R"mlir(
    func.func @f(%x: f32) -> f32 { return %x : f32 }
    func.func @g(%x: f32) -> f32 { return %x : f32 }
    func.func private @h(%x: f32) -> f32 { return %x : f32 }
    func.func private @declared(%x: f32) -> f32
  )mlir";
  EXPECT_EQ(getCompileError(two),
            "test.mlir: error: expected an entry to be named, since there are "
            "several public functions: @f, @g");
  EXPECT_EQ(getCompileError(two, "k"),
            "test.mlir: error: no function is called 'k'; there are @f, @g");
  EXPECT_EQ(getCompileError(two, "declared"),
            "test.mlir:5:5: error: expected 'declared' to have a body");
  EXPECT_EQ(getCompileError(two, "g"), "no error");
  EXPECT_EQ(getCompileError(two, "h"), "no error");
}

TEST(CompilerErrors, UnsupportedTypes) {
  auto rest = [](llvm::StringRef what, llvm::StringRef type) {
    return ("test.mlir:1:1: error: " + what +
            ": expected a ranked tensor or scalar of f16, bf16, f32, f64, i1, "
            "i8, i16, i32, i64 or index, but got " +
            type)
        .str();
  };
  EXPECT_EQ(getCompileError("func.func @f(%x: tensor<*xf32>) { return }"),
            rest("argument 0 (%x)", "tensor<*xf32>"));
  EXPECT_EQ(getCompileError("func.func @f(%m: memref<2xf32>) { return }"),
            rest("argument 0 (%m)", "memref<2xf32>"));
  EXPECT_EQ(getCompileError("func.func @f(%v: vector<2xf32>) -> vector<2xf32> "
                            "{ return %v : vector<2xf32> }"),
            rest("argument 0 (%v)", "vector<2xf32>"));
}

TEST(CompilerErrors, CallsThatCannotBeInlined) {
  EXPECT_EQ(getCompileError(R"mlir(func.func @f(%x: f32) -> f32 {
  %0 = call @f(%x) : (f32) -> f32
  return %0 : f32
})mlir"),
            "test.mlir:2:8: error: recursive call of 'f' cannot be compiled "
            "into a kernel");
  EXPECT_EQ(getCompileError(R"mlir(func.func private @ext(f32) -> f32
func.func @f(%x: f32) -> f32 {
  %0 = call @ext(%x) : (f32) -> f32
  return %0 : f32
})mlir"),
            "test.mlir:3:8: error: expected a callee with a body, but 'ext' is "
            "only declared\ntest.mlir:1:1: note: declared here");
}

TEST(CompilerErrors, MissingFile) {
  auto kernel = Compiler().compileFile("/nonexistent/f.mlir");
  ASSERT_FALSE(static_cast<bool>(kernel));
  EXPECT_EQ(llvm::toString(kernel.takeError()),
            "/nonexistent/f.mlir: error: cannot be read: No such file or "
            "directory");
}

TEST(CompilerErrors, UnknownChoicesOfKernelsAreRefused) {
  auto errorOf = [](const CompilerOptions &options) {
    auto kernel = Compiler(options).compile("module {}");
    return kernel ? "" : llvm::toString(kernel.takeError());
  };
  CompilerOptions options;
  options.copy = "dma";
  EXPECT_EQ(errorOf(options),
            "expected copy to be cp_async or tma, but got 'dma'");
  for (std::string scanMma : {"fma", "tcgen05"}) {
    options = {};
    options.scanMma = scanMma;
    EXPECT_EQ(errorOf(options), "expected the products of scans to be mma_sync "
                                "or wgmma, but got '" +
                                    scanMma + "'");
  }
}

//===----------------------------------------------------------------------===//
// Arithmetic and optimization
//===----------------------------------------------------------------------===//

const char *kSum = R"mlir(
func.func @sum(%x: tensor<?xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %s = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.reduce ins(%x : tensor<?xf32>) outs(%s : tensor<f32>) dimensions = [0]
    (%in: f32, %acc: f32) { %t = arith.addf %in, %acc : f32  linalg.yield %t : f32 }
  return %r : tensor<f32>
}
)mlir";

/// A text of the kernel of kSum, or an error's message.
std::string getSumText(CompilerOptions options,
                       llvm::Expected<std::string> (Kernel::*getText)() const) {
  options.diskCache = options.memoryCache = false;
  auto kernel = Compiler(options).compile(kSum);
  if (!kernel)
    return llvm::toString(kernel.takeError());
  return llvm::cantFail(((*kernel).*getText)());
}

std::string getSumIR(std::optional<Math> math) {
  CompilerOptions options;
  options.math = math;
  return getSumText(options, &Kernel::llvmIR);
}

std::string getSumAssembly(std::optional<Optimization> optimization) {
  CompilerOptions options;
  options.optimization = optimization;
  return getSumText(options, &Kernel::assembly);
}

TEST(CompilerMath, OnlyFastReassociates) {
  EXPECT_EQ(getSumIR(Math::Strict).find("reassoc"), std::string::npos);
  std::string fast = getSumIR(Math::Fast);
  EXPECT_NE(fast.find("reassoc"), std::string::npos) << fast;
  // Masks and running maxima need them.
  EXPECT_EQ(fast.find("ninf"), std::string::npos);
  EXPECT_EQ(fast.find("nnan"), std::string::npos);
}

TEST(CompilerMath, TheEnvironmentSaysUnlessTheCallerDoes) {
  setenv("LINATTN_MATH", "fast", 1);
  EXPECT_NE(getSumIR(std::nullopt).find("reassoc"), std::string::npos);
  EXPECT_EQ(getSumIR(Math::Strict).find("reassoc"), std::string::npos);
  setenv("LINATTN_MATH", "sloppy", 1);
  EXPECT_EQ(getSumIR(std::nullopt),
            "expected LINATTN_MATH to be strict or fast, but got sloppy");
  unsetenv("LINATTN_MATH");
  EXPECT_EQ(getSumIR(std::nullopt).find("reassoc"), std::string::npos);
}

TEST(CompilerOptimization, TheEnvironmentSaysUnlessTheCallerDoes) {
  std::string full = getSumAssembly(Optimization::Full);
  std::string quick = getSumAssembly(Optimization::Quick);
  EXPECT_NE(full, quick);
  EXPECT_EQ(getSumAssembly(std::nullopt), full);
  setenv("LINATTN_OPTIMIZATION", "quick", 1);
  EXPECT_EQ(getSumAssembly(std::nullopt), quick);
  EXPECT_EQ(getSumAssembly(Optimization::Full), full);
  setenv("LINATTN_OPTIMIZATION", "best", 1);
  EXPECT_EQ(getSumAssembly(std::nullopt),
            "expected LINATTN_OPTIMIZATION to be full or quick, but got best");
  unsetenv("LINATTN_OPTIMIZATION");
}

TEST(CompilerRemarks, ReportDecisions) {
  Kernel kernel = test::compile(R"mlir(
    func.func @f(%q: tensor<1x1x?x16xf32>, %k: tensor<1x1x?x16xf32>,
                 %v: tensor<1x1x?x16xf32>) -> tensor<1x1x?x16xf32> {
      %o = linattn.attention %q, %k, %v {causal}
          : (tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>, tensor<1x1x?x16xf32>)
          -> tensor<1x1x?x16xf32>
      return %o : tensor<1x1x?x16xf32>
    })mlir");
  EXPECT_TRUE(llvm::any_of(kernel.explain(), [](llvm::StringRef line) {
    return line.starts_with("passed: causal-to-scan: ");
  }));
}

TEST(CompilerRemarks, ReportCostsAndLayouts) {
  constexpr llvm::StringLiteral text = R"mlir(
    func.func @f(%q: tensor<1x1x?x256xf32>, %b: tensor<1x1x?xf32>,
                 %s: tensor<1x1x256x256xf32>) -> tensor<1x1x?x256xf32> {
      %c2 = arith.constant 2 : index
      %n = tensor.dim %q, %c2 : tensor<1x1x?x256xf32>
      %e = tensor.empty(%n) : tensor<1x1x?x256xf32>
      %o, %t = linattn.scan %q, %q, %q beta(%b) update(delta) into(%e) init(%s)
          : (tensor<1x1x?x256xf32>, tensor<1x1x?x256xf32>,
             tensor<1x1x?x256xf32>, tensor<1x1x?xf32>, tensor<1x1x?x256xf32>,
             tensor<1x1x256x256xf32>)
          -> (tensor<1x1x?x256xf32>, tensor<1x1x256x256xf32>)
      return %o : tensor<1x1x?x256xf32>
    })mlir";
  Kernel kernel = test::compile(text);
  auto count = [&](llvm::ArrayRef<std::string> lines, llvm::StringRef part) {
    return llvm::count_if(
        lines, [&](llvm::StringRef line) { return line.contains(part); });
  };
  EXPECT_EQ(count(kernel.explain(), "passed: select-form: chunks of "), 1);
  EXPECT_EQ(count(kernel.explain(), "per token and head"), 1);
  EXPECT_EQ(count(kernel.explain(), "missed: select-form: not state_tile"), 1);

  std::vector<float> q(2 * 40 * 256), b(40), s(256 * 256);
  BufferView near(q.data(), DType::F32, {1, 1, 40, 256});
  BufferView far(q.data(), DType::F32, {1, 1, 40, 256}, {0, 0, 512, 2});
  BufferView beta = view(b, {1, 1, 40}), state = view(s, {1, 1, 256, 256});
  EXPECT_EQ(llvm::cantFail(kernel.explain({near, beta, state})),
            kernel.explain());
  std::vector<std::string> lines =
      llvm::cantFail(kernel.explain({far, beta, state}));
  ASSERT_EQ(lines.size(), kernel.explain().size() + 1);
  EXPECT_EQ(lines.back(),
            "missed: layout: argument 0 (%q) has the innermost stride 2: the "
            "call runs in code for any strides, which loads elements one by "
            "one");
  EXPECT_EQ(
      count({llvm::toString(kernel.explain({near}).takeError())}, "expected 3"),
      1);
}

} // namespace
