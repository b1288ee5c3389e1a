//===- DeviceTest.cpp - Kernels for a GPU, on a driver that runs none -----===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Compiler/Compiler.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace linattn;

namespace {

constexpr const char *kScan = R"(
func.func @scan(%q: tensor<?x2x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>, %g: tensor<?x2x?xf32>, %s: tensor<?x2x64x64xf32>)
    -> (tensor<?x2x?x64xbf16>, tensor<?x2x64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x2x?x64xbf16>
  %t = tensor.dim %q, %c2 : tensor<?x2x?x64xbf16>
  %e = tensor.empty(%b, %t) : tensor<?x2x?x64xbf16>
  %r:2 = linattn.scan %q, %k, %v decay(%g) into(%e) init(%s)
    : (tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?xf32>, tensor<?x2x?x64xbf16>, tensor<?x2x64x64xf32>)
    -> (tensor<?x2x?x64xbf16>, tensor<?x2x64x64xf32>)
  return %r#0, %r#1 : tensor<?x2x?x64xbf16>, tensor<?x2x64x64xf32>
})";

constexpr const char *kPrefill = R"(
func.func @prefill(%q: tensor<?x2x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>) -> tensor<?x2x?x64xbf16> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %q, %c0 : tensor<?x2x?x64xbf16>
  %t = tensor.dim %q, %c2 : tensor<?x2x?x64xbf16>
  %e = tensor.empty(%b, %t) : tensor<?x2x?x64xbf16>
  %zero = arith.constant 0.0 : f32
  %n = tensor.empty(%b) : tensor<?x2x64x64xf32>
  %s = linalg.fill ins(%zero : f32) outs(%n : tensor<?x2x64x64xf32>) -> tensor<?x2x64x64xf32>
  %r:2 = linattn.scan %q, %k, %v into(%e) init(%s)
    : (tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x64x64xf32>)
    -> (tensor<?x2x?x64xbf16>, tensor<?x2x64x64xf32>)
  return %r#0 : tensor<?x2x?x64xbf16>
})";

/// Memory of the host, which the driver takes for its own.
struct Arrays {
  explicit Arrays(int64_t tokens = 70)
      : bf16(2 * 2 * tokens * 64), out(bf16.size()), gates(2 * 2 * tokens),
        states(2 * 2 * 64 * 64), final(states.size()) {
    BufferView token(bf16.data(), DType::BF16, {2, 2, tokens, 64});
    // [B, T, H] as the function takes it, [B, H, T].
    BufferView gate(gates.data(), DType::F32, {2, 2, tokens},
                    {2 * tokens, 1, 2});
    inputs = {token, token, token, gate,
              BufferView(states.data(), DType::F32, {2, 2, 64, 64})};
    outputs = {BufferView(out.data(), DType::BF16, {2, 2, tokens, 64}),
               BufferView(final.data(), DType::F32, {2, 2, 64, 64})};
  }
  std::vector<uint16_t> bf16, out;
  std::vector<float> gates, states, final;
  llvm::SmallVector<BufferView> inputs, outputs;
};

class DeviceTest : public testing::Test {
protected:
  void SetUp() override {
    setenv("LINATTN_CUDA_DRIVER", LINATTN_FAKE_DRIVER, /*overwrite=*/1);
    setenv("LINATTN_PTXAS", "", /*overwrite=*/1);
    library = dlopen(LINATTN_FAKE_DRIVER, RTLD_NOW);
    ASSERT_TRUE(library);
    find<void (*)()>("fakeCudaReset")();
  }

  template <typename F>
  F find(const char *name) {
    return reinterpret_cast<F>(dlsym(library, name));
  }

  std::string calls() {
    EXPECT_STREQ(find<const char *(*)()>("fakeCudaComplaints")(), "");
    return find<const char *(*)()>("fakeCudaCalls")();
  }

  Kernel compile(llvm::StringRef text, std::string chip = "") {
    CompilerOptions options;
    options.target = Target::NVVM;
    options.chip = std::move(chip);
    options.diskCache = false;
    return llvm::cantFail(Compiler(options).compile(text));
  }

  void *library = nullptr;
};

TEST_F(DeviceTest, RunsInTheStream) {
  Kernel kernel = compile(kScan);
  EXPECT_TRUE(kernel.isForDevice());
  EXPECT_EQ(kernel.signature().arguments[3].name, "g");
  Arrays arrays;
  auto shapes = llvm::cantFail(kernel.resultShapes(arrays.inputs));
  EXPECT_EQ(shapes[0], (Kernel::Shape{2, 2, 70, 64}));
  RunOptions options;
  options.stream = reinterpret_cast<void *>(0xbeef);
  EXPECT_FALSE(bool(kernel.run(arrays.inputs, arrays.outputs, options)));
  std::string text = calls();
  EXPECT_NE(text.find("cuLaunchKernel scan_scan grid 4 1 1"), std::string::npos)
      << text;
  EXPECT_NE(text.find("stream beef"), std::string::npos) << text;
  EXPECT_EQ(text.find("Synchronize"), std::string::npos) << text;
}

TEST_F(DeviceTest, PreparedKernelsCanBeCaptured) {
  Kernel kernel = compile(kScan, "sm_80");
  Arrays arrays;
  RunOptions options;
  options.workspaceBytes =
      llvm::cantFail(kernel.workspaceSize(arrays.inputs, arrays.outputs));
  find<void (*)()>("fakeCudaReset")();
  EXPECT_FALSE(bool(kernel.run(arrays.inputs, arrays.outputs, options)));
  std::string text = calls();
  EXPECT_EQ(text.find("cuMem"), std::string::npos) << text;
  EXPECT_EQ(text.find("cuModule"), std::string::npos) << text;
}

TEST_F(DeviceTest, KeepsAWorkspaceForEveryStream) {
  // The state that is not returned is in memory of the kernel.
  Kernel kernel = compile(kPrefill);
  Arrays arrays;
  arrays.inputs.resize(3);
  arrays.outputs.resize(1);
  auto countAllocations = [&](uintptr_t stream) {
    find<void (*)()>("fakeCudaReset")();
    RunOptions options;
    options.stream = reinterpret_cast<void *>(stream);
    EXPECT_FALSE(bool(kernel.run(arrays.inputs, arrays.outputs, options)));
    llvm::SmallVector<llvm::StringRef> parts;
    std::string text = calls();
    llvm::StringRef(text).split(parts, "cuMemAlloc");
    return parts.size() - 1;
  };
  EXPECT_EQ(countAllocations(1), 1u);
  EXPECT_EQ(countAllocations(1), 0u);
  EXPECT_EQ(countAllocations(2), 1u);
  for (BufferView *view : {&arrays.inputs[0], &arrays.inputs[1],
                           &arrays.inputs[2], &arrays.outputs[0]})
    view->shape[0] = 1;
  EXPECT_EQ(countAllocations(2), 0u);
}

TEST_F(DeviceTest, ErrorsNameTheArgument) {
  Kernel kernel = compile(kScan);
  Arrays arrays, other(71);
  arrays.inputs[1] = other.inputs[1];
  std::string error = llvm::toString(kernel.run(arrays.inputs, arrays.outputs));
  EXPECT_NE(error.find("70 and 71"), std::string::npos) << error;
  arrays.inputs[1] = arrays.inputs[0];
  arrays.inputs[1].strides = {1, 1, 1, 2};
  error = llvm::toString(kernel.run(arrays.inputs, arrays.outputs));
  EXPECT_NE(error.find("argument 1 (%k): expected an innermost stride of 1"),
            std::string::npos)
      << error;
  EXPECT_EQ(calls().find("cuLaunchKernel"), std::string::npos);
}

TEST_F(DeviceTest, FailuresOfTheDriverAreErrors) {
  Kernel kernel = compile(kScan);
  Arrays arrays;
  find<void (*)(const char *, int, int)>("fakeCudaFail")("cuLaunchKernel", 1,
                                                         0);
  std::string error = llvm::toString(kernel.run(arrays.inputs, arrays.outputs));
  EXPECT_NE(error.find("cuLaunchKernel"), std::string::npos) << error;
}

} // namespace
