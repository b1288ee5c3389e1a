//===- CudaTest.cpp - Every call of the driver, in order ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunnerTestUtils.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace linattn::test;

namespace {

using CudaTest = RunnerTest;
using Calls = std::vector<std::string>;

std::string hex(const void *address) {
  std::ostringstream text;
  text << std::hex << reinterpret_cast<uintptr_t>(address);
  return text.str();
}

std::string prepare(const KernelPtr &kernel) {
  return take(linattn_kernel_prepare(kernel.get()));
}

size_t getWorkspaceSize(const KernelPtr &kernel,
                        const std::vector<Operand> &operands) {
  std::vector<linattn_view> views = getViews(operands);
  size_t bytes = 12345;
  EXPECT_EQ(take(linattn_kernel_workspace_size(kernel.get(), views.data(),
                                               views.size(), &bytes)),
            "");
  return bytes;
}

TEST_F(CudaTest, PrepareThenLaunch) {
  // Opens the driver, if this is the first test that does.
  void *memory = nullptr;
  ASSERT_EQ(take(linattn_device_allocate(1, &memory)), "");
  ASSERT_EQ(take(linattn_device_free(memory)), "");
  fake.reset();
  KernelPtr kernel = loadNamed("layer");
  ASSERT_EQ(prepare(kernel), "");
  EXPECT_EQ(fake.takeCalls(),
            (Calls{"cuDeviceGetAttribute 75", "cuDeviceGetAttribute 76",
                   "cuModuleLoadDataEx ptx", "cuModuleGetFunction layer_scan",
                   "cuDeviceGetAttribute 97", "cuFuncSetAttribute 8 65536"}));
  ASSERT_EQ(prepare(kernel), "");
  EXPECT_EQ(fake.takeCalls(), Calls{});

  std::vector<Operand> x = makeOperands(kernel.get(), 100);
  EXPECT_EQ(getWorkspaceSize(kernel, x), 0u);
  EXPECT_EQ(fake.takeCalls(), Calls{});
  auto *stream = reinterpret_cast<void *>(0xabc0);
  ASSERT_EQ(launch(kernel.get(), x, nullptr, 0, stream), "");
  // Tokens; addresses and strides of query, key, value, outputs and the state
  // before and after. Hexadecimal.
  std::string strides = " c800 1900 40", state = " 8000 1000 40";
  EXPECT_EQ(fake.takeCalls(),
            Calls{"cuLaunchKernel layer_scan grid 16 1 1 block 128 1 1 shared "
                  "65536 stream abc0 args 64 " +
                  hex(x[0].data) + strides + " " + hex(x[1].data) + strides +
                  " " + hex(x[2].data) + strides + " " + hex(x[4].data) +
                  strides + " " + hex(x[3].data) + state + " " +
                  hex(x[5].data) + state});
  kernel.reset();
  EXPECT_EQ(fake.takeCalls(),
            (Calls{"cuCtxPushCurrent", "cuModuleUnload", "cuCtxPopCurrent"}));
}

TEST_F(CudaTest, WithoutTokensTheStateIsCopied) {
  KernelPtr kernel = loadNamed("layer");
  ASSERT_EQ(prepare(kernel), "");
  fake.reset();
  EXPECT_EQ(launch(kernel.get(), makeOperands(kernel.get(), 0)), "");
  Calls calls = fake.takeCalls();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_NE(calls[0].find("args 0 "), std::string::npos);
}

TEST_F(CudaTest, WorkspaceIsTheCallers) {
  KernelPtr kernel = loadNamed("attention");
  ASSERT_EQ(prepare(kernel), "");
  std::vector<Operand> x = makeOperands(kernel.get(), 5);
  size_t bytes = getWorkspaceSize(kernel, x);
  // A state and its normalizer.
  EXPECT_EQ(bytes, 2u * 8 * 64 * 64 * 4 + 2 * 8 * 64 * 4);
  fake.reset();
  EXPECT_EQ(launch(kernel.get(), x),
            "'attention': expected a workspace of 266240 bytes, but got 0");
  Operand workspace(LINATTN_I8, {static_cast<int64_t>(bytes) + 1});
  EXPECT_EQ(launch(kernel.get(), x, workspace.data, bytes - 1),
            "'attention': expected a workspace of 266240 bytes, but got "
            "266239");
  EXPECT_EQ(launch(kernel.get(), x, workspace.data + 1, bytes),
            "'attention': expected a workspace aligned to 256 bytes");
  EXPECT_EQ(fake.takeCalls(), Calls{});
  EXPECT_EQ(launch(kernel.get(), x, workspace.data, bytes), "");
  Calls calls = fake.takeCalls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_NE(calls[0].find(hex(workspace.data + 262144)), std::string::npos)
      << calls[0];
  for (const std::string &call : calls)
    EXPECT_EQ(call.rfind("cuLaunchKernel ", 0), 0u) << call;
}

TEST_F(CudaTest, TensorMapsAreInTheWorkspace) {
  KernelPtr kernel = loadNamed("softmax");
  ASSERT_EQ(prepare(kernel), "");
  // Three maps for each of the blocks, which have 128 queries of a head.
  std::vector<Operand> x = makeOperands(kernel.get(), 300);
  size_t bytes = 2 * 8 * 3 * 3 * 128;
  EXPECT_EQ(getWorkspaceSize(kernel, x), bytes);
  Operand workspace(LINATTN_I8, {static_cast<int64_t>(bytes)});
  fake.takeCalls();
  ASSERT_EQ(launch(kernel.get(), x, workspace.data, bytes), "");
  Calls calls = fake.takeCalls();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].rfind("cuLaunchKernel softmax_quadratic grid 48 1 1", 0),
            0u)
      << calls[0];
  EXPECT_NE(calls[0].find(" " + hex(workspace.data) + " "), std::string::npos)
      << calls[0];
}

TEST_F(CudaTest, ConstantsAreThereOncePrepared) {
  KernelPtr kernel = loadNamed("retention");
  ASSERT_EQ(prepare(kernel), "");
  Calls calls = fake.takeCalls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuMemcpyHtoD 8"), 1);
  std::vector<Operand> x = makeOperands(kernel.get(), 7);
  size_t bytes = getWorkspaceSize(kernel, x);
  Operand workspace(LINATTN_I8, {static_cast<int64_t>(bytes) + 1});
  EXPECT_EQ(launch(kernel.get(), x, workspace.data, bytes), "");
  for (const std::string &call : fake.takeCalls())
    EXPECT_EQ(call.rfind("cuLaunchKernel ", 0), 0u) << call;
  kernel.reset();
  calls = fake.takeCalls();
  EXPECT_GE(std::count(calls.begin(), calls.end(), "cuMemFree"), 1);
}

TEST_F(CudaTest, BuffersThatAreNotUsedAtOnceShareMemory) {
  KernelPtr kernel = loadNamed("chain");
  ASSERT_EQ(prepare(kernel), "");
  std::vector<Operand> operands = makeOperands(kernel.get(), 5);
  // Three of 1280 bytes, in two places.
  EXPECT_EQ(getWorkspaceSize(kernel, operands), 2 * 1280u);
  alignas(256) char workspace[2 * 1280];
  fake.takeCalls();
  EXPECT_EQ(launch(kernel.get(), operands, workspace, sizeof(workspace)), "");
  Calls launches;
  for (const std::string &call : fake.takeCalls())
    if (call.find("cuLaunchKernel") == 0)
      launches.push_back(call + " ");
  ASSERT_EQ(launches.size(), 4u);
  auto uses = [&](size_t i, const char *address) {
    return launches[i].find(" " + hex(address) + " ") != std::string::npos;
  };
  const char *first = workspace, *second = workspace + 1280;
  EXPECT_TRUE(uses(0, first) && !uses(0, second));
  EXPECT_TRUE(uses(1, first) && uses(1, second));
  EXPECT_TRUE(uses(2, first) && uses(2, second));
  EXPECT_TRUE(uses(3, first) && !uses(3, second));
}

TEST_F(CudaTest, LoopsRepeatTheirLaunches) {
  KernelPtr kernel = loadNamed("loops");
  ASSERT_EQ(prepare(kernel), "");
  // Chunks of at most 3 tokens: what the largest needs.
  EXPECT_EQ(getWorkspaceSize(kernel, makeOperands(kernel.get(), 100)), 256u);
  alignas(256) char workspace[256];
  auto run = [&](int64_t tokens) {
    fake.takeCalls();
    std::vector<Operand> operands = makeOperands(kernel.get(), tokens);
    EXPECT_EQ(launch(kernel.get(), operands, workspace, sizeof(workspace)), "");
    std::string order;
    Calls launches;
    for (const std::string &call : fake.takeCalls())
      if (call.find("cuLaunchKernel") == 0) {
        launches.push_back(call);
        auto has = [&](const std::string &number) {
          return (call + " ").find(" " + number + " ") != std::string::npos;
        };
        // Chunks of three tokens, or fewer, are squared into the workspace.
        order += has(hex(operands[0].data)) ? (has("3") ? "c" : "r")
                 : has(hex(workspace))      ? "t"
                                            : "h";
      }
    // A token goes to its place in the result.
    for (size_t i = 0, token = 0; i < order.size(); ++i)
      if (order[i] == 't') {
        EXPECT_NE(launches[i].find(" " + hex(operands[1].data) + " "),
                  std::string::npos)
            << launches[i];
        EXPECT_EQ(launches[i].substr(launches[i].rfind(' ') + 1),
                  hex(reinterpret_cast<void *>(token++)))
            << launches[i];
      }
    return order;
  };
  EXPECT_EQ(run(7), "ctttctttrt");
  EXPECT_EQ(run(3), "cttt");
  EXPECT_EQ(run(0), "");
  // Beyond 100 tokens the branch is taken.
  std::string order = run(101);
  EXPECT_EQ(order.size(), 34u + 101 + 1);
  EXPECT_EQ(order.back(), 'h');
}

TEST_F(CudaTest, LaunchNeedsPrepareInEveryContext) {
  KernelPtr kernel = loadNamed("layer");
  std::vector<Operand> x = makeOperands(kernel.get(), 3);
  std::string unprepared =
      "'layer': expected the kernel to be prepared in this context";
  EXPECT_EQ(launch(kernel.get(), x), unprepared);
  ASSERT_EQ(prepare(kernel), "");
  EXPECT_EQ(launch(kernel.get(), x), "");
  fake.setContext(2);
  EXPECT_EQ(launch(kernel.get(), x), unprepared);
  ASSERT_EQ(prepare(kernel), "");
  EXPECT_EQ(launch(kernel.get(), x), "");
  fake.setContext(1);
  EXPECT_EQ(launch(kernel.get(), x), "");
}

TEST_F(CudaTest, WithoutAContextThePrimaryOneServes) {
  fake.setContext(0);
  KernelPtr kernel = loadNamed("layer");
  ASSERT_EQ(prepare(kernel), "");
  Calls calls = fake.takeCalls();
  // Retained once in the life of the process, so perhaps already.
  if (calls[0] == "cuDeviceGet 0")
    calls.erase(calls.begin(), calls.begin() + 2);
  EXPECT_EQ(calls.front(), "cuCtxPushCurrent");
  EXPECT_EQ(calls.back(), "cuCtxPopCurrent");
  ASSERT_EQ(launch(kernel.get(), makeOperands(kernel.get(), 3)), "");
  calls = fake.takeCalls();
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0], "cuCtxPushCurrent");
  EXPECT_EQ(calls[2], "cuCtxPopCurrent");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_F(CudaTest, EveryCallThatFailsIsReported) {
  struct Case {
    const char *function, *message;
  } cases[] = {
      {"cuDeviceGetAttribute",
       "cuDeviceGetAttribute: CUDA_ERROR_INVALID_VALUE (1): invalid argument"},
      {"cuModuleLoadDataEx",
       "cuModuleLoadDataEx: CUDA_ERROR_INVALID_VALUE (1): invalid argument\n"
       "ptxas fatal : a fake driver was told to fail"},
      {"cuModuleGetFunction",
       "cuModuleGetFunction: CUDA_ERROR_INVALID_VALUE (1): invalid "
       "argument\nkernel 'retention_"},
      {"cuMemAlloc", "cuMemAlloc: CUDA_ERROR_INVALID_VALUE (1): invalid "
                     "argument\nfor constants"},
      {"cuMemcpyHtoD",
       "cuMemcpyHtoD: CUDA_ERROR_INVALID_VALUE (1): invalid argument"},
  };
  for (const Case &it : cases) {
    KernelPtr kernel = loadNamed("retention");
    fake.reset();
    fake.fail(it.function, 1, 0);
    std::string error = prepare(kernel);
    EXPECT_EQ(error.rfind(it.message, 0), 0u) << error;
    // Modules loaded before the failure are unloaded, and the next try
    // succeeds.
    Calls calls = fake.takeCalls();
    int64_t loads =
        std::count(calls.begin(), calls.end(), "cuModuleLoadDataEx ptx");
    loads -= !strcmp(it.function, "cuModuleLoadDataEx");
    EXPECT_EQ(std::count(calls.begin(), calls.end(), "cuModuleUnload"), loads);
    EXPECT_EQ(prepare(kernel), "");
  }
}

TEST_F(CudaTest, FailuresOfLaunchNameTheKernel) {
  KernelPtr kernel = loadNamed("layer");
  fake.fail("cuFuncSetAttribute", 1, 0);
  EXPECT_EQ(prepare(kernel),
            "cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE (1): invalid "
            "argument\nkernel 'layer_scan'");
  EXPECT_EQ(prepare(kernel), "");
  fake.fail("cuLaunchKernel", 701, 0);
  EXPECT_EQ(launch(kernel.get(), makeOperands(kernel.get(), 3)),
            "cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701): too "
            "many resources requested for launch\nkernel 'layer_scan'");
  // Numbers that the driver has no words for.
  fake.fail("cuLaunchKernel", 4242, 0);
  EXPECT_EQ(launch(kernel.get(), makeOperands(kernel.get(), 3)),
            "cuLaunchKernel: an unknown error (4242): no "
            "description\nkernel 'layer_scan'");
  fake.fail("cuCtxGetCurrent", 100, 0);
  EXPECT_EQ(launch(kernel.get(), makeOperands(kernel.get(), 3)),
            "cuCtxGetCurrent: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable "
            "device is detected");
}

TEST_F(CudaTest, TheBestCodeForTheDeviceIsTaken) {
  auto prepareOn = [&](int major, int minor, int shared) {
    KernelPtr kernel = loadNamed("layer");
    fake.setDevice(major, minor, shared);
    return prepare(kernel);
  };
  EXPECT_EQ(prepareOn(8, 0, 163 * 1024), "");
  EXPECT_EQ(prepareOn(8, 9, 99 * 1024), "");
  EXPECT_EQ(prepareOn(12, 0, 99 * 1024), "");
  EXPECT_EQ(prepareOn(7, 5, 64 * 1024),
            "'layer': expected a device for sm_80, sm_90a, but got sm_75");
  EXPECT_EQ(prepareOn(8, 0, 48 * 1024),
            "kernel 'layer_scan': expected a device with 65536 bytes of shared "
            "memory for a block, but got 49152");
}

TEST_F(CudaTest, MachineCodeComesFirst) {
  if (readBundle("cubin").empty())
    GTEST_SKIP() << "there was no ptxas";
  auto prepareOn = [&](int major, int minor, bool fails) {
    KernelPtr kernel = loadNamed("cubin");
    fake.reset();
    fake.setDevice(major, minor, 227 * 1024);
    if (fails)
      fake.fail("cuModuleLoadDataEx", 209, 0);
    EXPECT_EQ(prepare(kernel), "");
    std::string kinds;
    for (const std::string &call : fake.takeCalls())
      if (call.rfind("cuModuleLoadDataEx ", 0) == 0)
        kinds += call.substr(18);
    return kinds;
  };
  EXPECT_EQ(prepareOn(9, 0, false), " cubin cubin");
  // Of another generation, or refused: PTX serves.
  EXPECT_EQ(prepareOn(12, 0, false), " ptx ptx");
  EXPECT_EQ(prepareOn(9, 0, true), " cubin ptx cubin");
}

TEST_F(CudaTest, DeviceMemory) {
  void *memory = nullptr;
  EXPECT_EQ(take(linattn_device_allocate(1000, &memory)), "");
  EXPECT_NE(memory, nullptr);
  EXPECT_EQ(take(linattn_device_free(memory)), "");
  EXPECT_EQ(take(linattn_device_free(nullptr)), "");
  fake.fail("cuMemAlloc", 2, 0);
  EXPECT_EQ(take(linattn_device_allocate(1000, &memory)),
            "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory\n"
            "for 1000 bytes");
  for (auto [result, kind] : {std::pair(2, LINATTN_ERROR_OUT_OF_MEMORY),
                              std::pair(1, LINATTN_ERROR_OTHER)}) {
    fake.fail("cuMemAlloc", result, 0);
    linattn_error *error = linattn_device_allocate(1000, &memory);
    ASSERT_TRUE(error);
    EXPECT_EQ(linattn_error_get_kind(error), kind);
    linattn_error_free(error);
  }
}

// Tokens that cost no memory, and products of their number that do not fit.
TEST_F(CudaTest, SizesThatOverflow) {
  KernelPtr kernel = loadNamed("layer");
  ASSERT_TRUE(kernel);
  ASSERT_EQ(take(linattn_kernel_prepare(kernel.get())), "");
  std::vector<Operand> x = makeOperands(kernel.get(), 4);
  std::vector<linattn_view> views = getViews(x);
  std::vector<std::vector<int64_t>> shapes;
  for (linattn_view &view : views)
    shapes.emplace_back(view.shape, view.shape + view.rank);
  std::vector<int64_t> strides(8, 0);
  for (int64_t tokens : {int64_t(1) << 58, int64_t(1) << 61}) {
    for (size_t i = 0; i < views.size(); ++i) {
      std::replace(shapes[i].begin(), shapes[i].end(), x[0].shape[2], tokens);
      views[i].shape = shapes[i].data();
      views[i].strides = strides.data() + 8 - views[i].rank;
    }
    size_t bytes = 0;
    EXPECT_NE(take(linattn_kernel_workspace_size(
                       kernel.get(), views.data(),
                       static_cast<int32_t>(views.size()), &bytes))
                  .find("expected an array of at most 9223372036854775807"),
              std::string::npos);
  }
}

//===----------------------------------------------------------------------===//
// Threads and time
//===----------------------------------------------------------------------===//

TEST_F(CudaTest, ThreadsAndStreams) {
  KernelPtr kernel = loadNamed("layer");
  constexpr int kThreads = 4, kLaunches = 500;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      // Two contexts, and a stream for each thread; all prepare at once.
      fake.setContext(1 + i % 2);
      std::vector<Operand> x = makeOperands(kernel.get(), 10 + i);
      failures += !prepare(kernel).empty();
      for (int n = 0; n < kLaunches; ++n)
        failures += !launch(kernel.get(), x, nullptr, 0,
                            reinterpret_cast<void *>(uintptr_t(0x100 + i)))
                         .empty();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  int loads = 0, launches[kThreads] = {};
  for (const std::string &call : fake.takeCalls()) {
    loads += call == "cuModuleLoadDataEx ptx";
    for (int i = 0; i < kThreads; ++i) {
      std::ostringstream mine;
      mine << " stream 10" << i << " args " << std::hex << 10 + i << " ";
      launches[i] += call.find(mine.str()) != std::string::npos;
    }
  }
  EXPECT_EQ(loads, 2);
  for (int count : launches)
    EXPECT_EQ(count, kLaunches);
}

TEST_F(CudaTest, LaunchesAllocateNothing) {
  KernelPtr kernel = loadNamed("layer");
  ASSERT_EQ(prepare(kernel), "");
  std::vector<Operand> x = makeOperands(kernel.get(), 100);
  std::vector<linattn_view> views = getViews(x);
  // The driver's record of calls would be memory, too.
  fake.record(0);
  int64_t before = getAllocations();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(linattn_kernel_launch(kernel.get(), views.data(), views.size(),
                                    nullptr, 0, nullptr),
              nullptr);
  EXPECT_EQ(getAllocations(), before);
  fake.record(1);
  fake.takeCalls();
  EXPECT_EQ(launch(kernel.get(), x), "");
  EXPECT_EQ(fake.takeCalls().size(), 1u);
}

//===----------------------------------------------------------------------===//
// Drivers
//===----------------------------------------------------------------------===//

/// In a process of its own, where no driver is open yet.
void prepareWithDriver(const char *path, const char *proc) {
  setenv("LINATTN_CUDA_DRIVER", path, 1);
  setenv("FAKE_CUDA_PROC", proc, 1);
  KernelPtr kernel = loadNamed("layer");
  std::string error = prepare(kernel);
  fprintf(stderr, "<%s>", error.c_str());
  _exit(error.empty() ? 0 : 3);
}

TEST(DriverTest, NoDriver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(prepareWithDriver("/no/such/libcuda.so.1", "on"),
              testing::ExitedWithCode(3),
              "<no CUDA driver: expected to open /no/such/libcuda.so.1, but "
              "got: .*cannot open shared object file");
}

TEST(DriverTest, SomethingElse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(prepareWithDriver("libm.so.6", "on"), testing::ExitedWithCode(3),
              "<the CUDA driver is too old: expected libm.so.6 to have "
              "cuInit>");
}

TEST(DriverTest, AnOldOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(prepareWithDriver(LINATTN_FAKE_DRIVER, "off"),
              testing::ExitedWithCode(0), "<>");
}

} // namespace
