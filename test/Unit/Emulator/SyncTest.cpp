//===- SyncTest.cpp - Races, barriers and asynchronous copies -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatorTestUtils.h"

using namespace linattn;
using namespace linattn::emulator;
using namespace linattn::emulator::test;

namespace {

/// Thread t has its word of shared memory at %mine, its neighbour's (t ^ 1) at
/// %next, that of thread t ^ 32 at %far, and thread 0's at %zero.
std::string makeExchange(llvm::StringRef body) {
  return makeKernel("%out: !llvm.ptr<1>, %in: !llvm.ptr<1>", (R"(
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %all = arith.constant -1 : i32
    %zero = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %u = arith.xori %t, %c1 : i32
    %w = arith.xori %t, %c32 : i32
    %mine = llvm.getelementptr %zero[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %next = llvm.getelementptr %zero[%u] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %far = llvm.getelementptr %zero[%w] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %first = arith.cmpi eq, %t, %c0 : i32
    %low = arith.cmpi ult, %t, %c32 : i32
  )" + body)
                                                                 .str());
}

Report exchange(llvm::StringRef body, unsigned threads = 64) {
  std::vector<uint32_t> output(512), input(512, 42);
  return run(makeExchange(body), {out(output), in(input)}, threads, 4096);
}

constexpr const char *kStore = "llvm.store %t, %mine : i32, !llvm.ptr<3>\n";
constexpr const char *kLoadNext =
    "%x = llvm.load %next : !llvm.ptr<3> -> i32\n";
constexpr const char *kLoadFar = "%y = llvm.load %far : !llvm.ptr<3> -> i32\n";

TEST(RaceTest, ReadAfterWrite) {
  expectClean(exchange(std::string(kStore) + "nvvm.barrier0\n" + kLoadFar));
  Report report = exchange(std::string(kStore) + kLoadFar);
  EXPECT_GT(report[Check::SharedRace].count, 0u);
}

TEST(RaceTest, WriteAfterRead) {
  std::string read = std::string(kStore) + "nvvm.barrier0\n" + kLoadFar;
  expectClean(exchange(read + "nvvm.barrier0\n" + kStore));
  expectOnly(exchange(read + kStore), {Check::SharedRace});
}

TEST(RaceTest, WriteAfterReadsByManyFindsOneThatIsNotTheLast) {
  // All threads read word 0; then thread 0, which has synchronised with its own
  // warp only, overwrites it.
  std::string text = R"(
    scf.if %first { llvm.store %t, %mine : i32, !llvm.ptr<3> }
    nvvm.barrier0
    %x = llvm.load %zero : !llvm.ptr<3> -> i32
  )";
  std::string write = "scf.if %first { llvm.store %t, %mine : i32, "
                      "!llvm.ptr<3> }";
  expectOnly(exchange(text + "scf.if %low { nvvm.bar.warp.sync %all : i32 }\n" +
                      write),
             {Check::SharedRace});
  expectClean(
      exchange(text + "scf.if %low { nvvm.bar.warp.sync %all : i32 }\n" + write,
               /*threads=*/32));
  expectClean(exchange(text + "nvvm.barrier0\n" + write));
}

TEST(RaceTest, WarpSyncOrdersTheWarpOnly) {
  std::string sync = "nvvm.bar.warp.sync %all : i32\n";
  expectClean(exchange(kStore + sync + kLoadNext));
  EXPECT_GT(exchange(kStore + sync + kLoadFar)[Check::SharedRace].count, 0u);
}

TEST(RaceTest, ShufflesDoNotOrderMemory) {
  EXPECT_GT(exchange(std::string(kStore) +
                     "%s = nvvm.shfl.sync bfly %all, %t, %c1, %c0 : i32 -> "
                     "i32\n" +
                     kLoadNext)[Check::SharedRace]
                .count,
            0u);
}

TEST(RaceTest, NeighbouringHalvesOfAWordDoNotRace) {
  expectClean(exchange(R"(
    %h = llvm.getelementptr %zero[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i16
    %v = arith.trunci %t : i32 to i16
    llvm.store %v, %h : i16, !llvm.ptr<3>
  )"));
}

constexpr const char *kStoreByte = R"(
    %b = llvm.getelementptr %zero[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %v = arith.trunci %t : i32 to i8
    llvm.store %v, %b : i8, !llvm.ptr<3>
)";

TEST(RaceTest, NeighbouringBytesDoNotRace) {
  expectClean(exchange(kStoreByte));
  std::string next = R"(
    %bn = llvm.getelementptr %zero[%u] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %x = llvm.load %bn : !llvm.ptr<3> -> i8
  )";
  expectClean(exchange(kStoreByte + ("nvvm.barrier0\n" + next)));
  EXPECT_GT(exchange(kStoreByte + next)[Check::SharedRace].count, 0u);
}

TEST(RaceTest, BytesRaceWithWordsBeforeThem) {
  // A byte is part of the word that another thread has written or read.
  EXPECT_GT(exchange(std::string(kStore) + kStoreByte)[Check::SharedRace].count,
            0u);
  std::string read = std::string(kStore) + "nvvm.barrier0\n" + kLoadFar;
  EXPECT_GT(exchange(read + kStoreByte)[Check::SharedRace].count, 0u);
  expectClean(exchange(read + "nvvm.barrier0\n" + kStoreByte));
}

TEST(BarrierTest, NamedBarriersOrderThoseWhoTakePart) {
  // Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2.
  std::string body = std::string(kStore) + R"(
    %in0 = arith.cmpi ult, %t, %c64 : i32
    scf.if %in0 { nvvm.barrier id = %c1 number_of_threads = %c64 }
    else { %c2 = arith.constant 2 : i32
      nvvm.barrier id = %c2 number_of_threads = %c64 }
  )";
  expectClean(exchange(body + kLoadFar, 128));
  // A word of the other pair of warps.
  std::string other = R"(
    %o = arith.xori %t, %c64 : i32
    %po = llvm.getelementptr %zero[%o] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %z = llvm.load %po : !llvm.ptr<3> -> i32
  )";
  EXPECT_GT(exchange(body + other, 128)[Check::SharedRace].count, 0u);
}

TEST(BarrierTest, ArriveReleasesWithoutWaiting) {
  // Warp 1 produces and goes on, warp 0 waits and consumes.
  std::string body = R"(
    scf.if %low {
      nvvm.barrier id = %c1 number_of_threads = %c64
      %y = llvm.load %far : !llvm.ptr<3> -> i32
    } else {
      llvm.store %t, %mine : i32, !llvm.ptr<3>
      nvvm.barrier.arrive id = %c1 number_of_threads = %c64
    }
  )";
  expectClean(exchange(body));
}

TEST(BarrierTest, MissingThreadsAreADeadlock) {
  Report report = exchange("scf.if %low { nvvm.barrier0 }");
  expectOnly(report, {Check::Deadlock});
  EXPECT_FALSE(report.finished);
  EXPECT_NE(
      report[Check::Deadlock].example.find("nvvm.barrier0 at kernel.mlir"),
      std::string::npos);
}

TEST(BarrierTest, LanesThatComeByAnotherBarrierDiverge) {
  Report report = exchange(R"(
    %bit = arith.andi %t, %c1 : i32
    %odd = arith.cmpi eq, %bit, %c1 : i32
    %c2 = arith.constant 2 : i32
    scf.if %odd { nvvm.barrier id = %c0 } else { nvvm.barrier id = %c0 number_of_threads = %c64 }
  )");
  EXPECT_GT(report[Check::Divergence].count, 0u);
}

TEST(DivergenceTest, FullMaskInPartOfTheWarp) {
  Report report = exchange(R"(
    %c16 = arith.constant 16 : i32
    %few = arith.cmpi ult, %t, %c16 : i32
    scf.if %few { %s = nvvm.shfl.sync bfly %all, %t, %c1, %c0 : i32 -> i32 }
    nvvm.barrier0
  )",
                           32);
  expectOnly(report, {Check::Divergence});
  EXPECT_FALSE(report.finished);
}

TEST(DivergenceTest, ValueOfALaneThatDoesNotTakePart) {
  Report report = exchange(R"(
    %mask = arith.constant 65535 : i32
    %c16 = arith.constant 16 : i32
    %c31 = arith.constant 31 : i32
    %few = arith.cmpi ult, %t, %c16 : i32
    scf.if %few { %s = nvvm.shfl.sync bfly %mask, %t, %c16, %c31 : i32 -> i32 }
  )",
                           32);
  expectOnly(report, {Check::Divergence});
  EXPECT_EQ(report[Check::Divergence].count, 16u);
}

//===----------------------------------------------------------------------===//
// cp.async
//===----------------------------------------------------------------------===//

/// Copies 16 bytes per thread to shared memory.
constexpr const char *kCopy = R"(
    %c16 = arith.constant 16 : i32
    %bytes = arith.muli %t, %c16 : i32
    %from = llvm.getelementptr %in[%bytes] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %to = llvm.getelementptr %zero[%bytes] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    nvvm.cp.async.shared.global %to, %from, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
)";
constexpr const char *kLoadCopied =
    "%c = llvm.load %to : !llvm.ptr<3> -> vector<4xi32>\n"
    "%po = llvm.getelementptr %out[%bytes] : (!llvm.ptr<1>, i32) -> "
    "!llvm.ptr<1>, i8\n"
    "llvm.store %c, %po : vector<4xi32>, !llvm.ptr<1>\n";
constexpr const char *kCommit = "nvvm.cp.async.commit.group\n";

std::string wait(unsigned n) {
  return "nvvm.cp.async.wait.group " + std::to_string(n) + "\n";
}

TEST(CopyTest, ArrivesWithTheWaitForItsGroup) {
  expectClean(exchange(std::string(kCopy) + kCommit + wait(0) + kLoadCopied));
  // Never committed, waited too weakly, or not at all.
  for (std::string body : {wait(0), kCommit + wait(1), std::string(kCommit)})
    expectOnly(exchange(kCopy + body + kLoadCopied), {Check::EarlyRead});
  // Empty groups count.
  expectClean(
      exchange(std::string(kCopy) + kCommit + kCommit + wait(1) + kLoadCopied));
  expectClean(exchange(std::string(kCopy) +
                       "nvvm.inline_ptx \"cp.async.wait_all;\"\n" +
                       kLoadCopied));
}

TEST(CopyTest, OthersNeedABarrierBehindTheWait) {
  std::string load = R"(
    %other = arith.xori %bytes, %c16 : i32
    %pq = llvm.getelementptr %zero[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %c = llvm.load %pq : !llvm.ptr<3> -> i32
  )";
  std::string copy = std::string(kCopy) + kCommit;
  expectClean(exchange(copy + wait(0) + "nvvm.barrier0\n" + load));
  // A barrier first does not help: the data comes later.
  Report report = exchange(copy + "nvvm.barrier0\n" + wait(0) + load);
  EXPECT_GT(report[Check::SharedRace].count + report[Check::EarlyRead].count,
            0u);
}

// Data that another warp copies, read in both orders of the two: before it has
// arrived, and after.
TEST(CopyTest, OtherWarpsNeedABarrierInEveryOrder) {
  std::string load = R"(
    %c512 = arith.constant 512 : i32
    %other = arith.xori %bytes, %c512 : i32
    %pq = llvm.getelementptr %zero[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %c = llvm.load %pq : !llvm.ptr<3> -> i32
  )";
  // One warp reads, the other copies: in each order.
  auto makeOneSided = [&](const char *reader) {
    return "%reads = arith.cmpi " + std::string(reader) +
           ", %t, %c32 : i32\nscf.if %reads {" +
           "%c16 = arith.constant 16 : i32\n"
           "%bytes = arith.muli %t, %c16 : i32" +
           load + "} else {" + kCopy + kCommit + wait(0) + "}\n";
  };
  std::string copy = std::string(kCopy) + kCommit + wait(0);
  EmulatedKernel racing = compile(makeExchange(copy + load)),
                 ordered =
                     compile(makeExchange(copy + "nvvm.barrier0\n" + load)),
                 lowReads = compile(makeExchange(makeOneSided("ult"))),
                 highReads = compile(makeExchange(makeOneSided("uge")));
  std::vector<uint32_t> output(512), input(512, 42);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    auto launch = [&](const EmulatedKernel &kernel) {
      return run(kernel, {out(output), in(input)}, /*threads=*/64,
                 /*sharedBytes=*/4096, /*blocks=*/1, seed);
    };
    expectClean(launch(ordered));
    for (const EmulatedKernel *kernel : {&racing, &lowReads, &highReads}) {
      Report report = launch(*kernel);
      EXPECT_GT(
          report[Check::SharedRace].count + report[Check::EarlyRead].count, 0u);
    }
  }
}

TEST(CopyTest, FillsWithZerosBehindTheSource) {
  std::vector<uint32_t> input(4, 0x11111111), output(4, 7);
  std::string text = makeKernel("%out: !llvm.ptr<1>, %in: !llvm.ptr<1>", R"(
    %s = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %size = arith.constant 6 : i32
    nvvm.cp.async.shared.global %s, %in, 16, cache = cg, %size : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %v = llvm.load %s : !llvm.ptr<3> -> vector<4xi32>
    llvm.store %v, %out : vector<4xi32>, !llvm.ptr<1>
  )");
  Report report = run(text, {out(output), in(input)}, 1, 16);
  expectClean(report);
  EXPECT_EQ(output, (std::vector<uint32_t>{0x11111111, 0x1111, 0, 0}));
  EXPECT_EQ(report.uniqueBytesRead, 6u);
}

TEST(CopyTest, BeyondABufferIsFound) {
  std::vector<uint32_t> input(3), output(4);
  std::string text = makeKernel("%out: !llvm.ptr<1>, %in: !llvm.ptr<1>", R"(
    %s = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    nvvm.cp.async.shared.global %s, %in, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
  )");
  expectOnly(run(text, {out(output), in(input)}, 1, 16),
             {Check::GlobalOutOfBounds});
  expectOnly(run(text, {out(output), in(output)}, 1, 12),
             {Check::SharedOutOfBounds});
}

} // namespace
