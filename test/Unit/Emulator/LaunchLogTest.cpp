//===- LaunchLogTest.cpp - Launches of host code --------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Emulator/LaunchLog.h"
#include "EmulatorTestUtils.h"
#include "LaunchRecord.h"

using namespace linattn;
using namespace linattn::emulator;
using namespace linattn::emulator::test;

namespace {

/// A launch of one block of 64 threads with one buffer, as host code does it.
void launch(llvm::StringRef text, const char *name, std::vector<float> &data,
            int64_t threads = 64) {
  struct {
    LaunchRecord record;
    LaunchArgument argument;
  } launch = {{{1, 1, 1}, {threads, 1, 1}, 256, 1},
              {int64_t(LaunchArgument::Kind::Buffer),
               reinterpret_cast<int64_t>(data.data()),
               int64_t(data.size() * sizeof(float))}};
  forEachLaunchFunction([&](llvm::StringRef symbol, void *address) {
    EXPECT_EQ(symbol, kLaunchSymbol);
    reinterpret_cast<void (*)(const char *, const char *,
                              const LaunchRecord *)>(address)(
        text.str().c_str(), name, &launch.record);
  });
}

/// Turns an array around through shared memory.
std::string makeReverse(llvm::StringRef barrier) {
  return makeKernel("%p: !llvm.ptr<1>", (R"(
    %c63 = arith.constant 63 : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %r = arith.subi %c63, %t : i32
    %s = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %mine = llvm.getelementptr %p[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.load %mine : !llvm.ptr<1> -> f32
    %to = llvm.getelementptr %s[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    llvm.store %x, %to : f32, !llvm.ptr<3>
    )" + barrier + R"(
    %from = llvm.getelementptr %s[%r] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
    %y = llvm.load %from : !llvm.ptr<3> -> f32
    llvm.store %y, %mine : f32, !llvm.ptr<1>
  )")
                                            .str());
}

TEST(LaunchLogTest, FindingsBecomeAnError) {
  std::vector<float> data(64);
  for (unsigned i = 0; i < 64; ++i)
    data[i] = i;
  LaunchLog log;
  launch(makeReverse("nvvm.barrier0"), "k", data);
  EXPECT_EQ(log.getLaunches().size(), 1u);
  EXPECT_FALSE(bool(log.takeError()));
  EXPECT_EQ(data[0], 63);
  launch(makeReverse(""), "k", data);
  std::string error = llvm::toString(log.takeError());
  EXPECT_EQ(error.find("k: shared-race: "), 0u) << error;
}

TEST(LaunchLogTest, LaunchesThatFailAreErrors) {
  std::vector<float> data(64);
  LaunchLog log;
  launch(makeReverse("nvvm.barrier0"), "missing", data);
  launch(makeReverse("nvvm.barrier0"), "k", data, /*threads=*/2048);
  ASSERT_EQ(log.getLaunches().size(), 2u);
  EXPECT_EQ(log.getLaunches()[0].problem, "expected a kernel named 'missing'");
  EXPECT_NE(log.getLaunches()[1].problem.find("2048"), std::string::npos);
  std::string error = llvm::toString(log.takeError());
  EXPECT_NE(error.find("missing: expected a kernel named"), std::string::npos);
}

TEST(LaunchLogTest, InnerLogsGoToTheOuter) {
  std::vector<float> data(64);
  LaunchLog outer;
  {
    LaunchLog inner;
    EXPECT_EQ(LaunchLog::getCurrent(), &inner);
    launch(makeReverse(""), "k", data);
    EXPECT_TRUE(outer.getLaunches().empty());
    EXPECT_NE(llvm::toString(inner.takeError()), "");
  }
  EXPECT_EQ(outer.getLaunches().size(), 1u);
  EXPECT_NE(llvm::toString(outer.takeError()), "");
}

TEST(LaunchLogTest, KernelsOfOneModuleAreDistinguished) {
  std::string text = R"(
    gpu.module @m {
      llvm.func @one(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
        %x = llvm.mlir.constant(1.0 : f32) : f32
        llvm.store %x, %p : f32, !llvm.ptr<1>
        llvm.return
      }
      llvm.func @two(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
        %x = llvm.mlir.constant(2.0 : f32) : f32
        llvm.store %x, %p : f32, !llvm.ptr<1>
        llvm.return
      }
    })";
  std::vector<float> data(1);
  LaunchLog log;
  launch(text, "one", data, /*threads=*/1);
  EXPECT_EQ(data[0], 1);
  launch(text, "two", data, /*threads=*/1);
  EXPECT_EQ(data[0], 2);
  EXPECT_FALSE(bool(log.takeError()));
}

} // namespace
