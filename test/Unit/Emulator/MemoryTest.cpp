//===- MemoryTest.cpp - Checks and counts of memory -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatorTestUtils.h"

#include <cmath>

using namespace linattn;
using namespace linattn::emulator;
using namespace linattn::emulator::test;

namespace {

/// Thread t of block b has %t, %b, %i = b * ntid + t.
std::string makeIndexed(llvm::StringRef parameters, llvm::StringRef body) {
  return makeKernel(parameters, ("%t = nvvm.read.ptx.sreg.tid.x : i32\n"
                                 "%b = nvvm.read.ptx.sreg.ctaid.x : i32\n"
                                 "%n = nvvm.read.ptx.sreg.ntid.x : i32\n"
                                 "%f = arith.muli %b, %n : i32\n"
                                 "%i = arith.addi %f, %t : i32\n" +
                                 body)
                                    .str());
}

/// Loads `type` at element %i of %in, `scale` elements apart.
std::string makeLoad(llvm::StringRef type, unsigned scale = 1,
                     llvm::StringRef attributes = "") {
  return makeIndexed(
      "%in: !llvm.ptr<1>, %out: !llvm.ptr<1>",
      ("%scale = arith.constant " + llvm::Twine(scale) +
       " : i32\n%j = arith.muli %i, %scale : i32\n"
       "%p = llvm.getelementptr %in[%j] : (!llvm.ptr<1>, i32) -> "
       "!llvm.ptr<1>, " +
       type + "\n%v = llvm.load %p " + attributes + " : !llvm.ptr<1> -> " +
       type +
       "\n%q = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> "
       "!llvm.ptr<1>, " +
       type + "\nllvm.store %v, %q : " + type + ", !llvm.ptr<1>")
          .str());
}

TEST(GlobalTest, CountsSectorsOfAWarp) {
  std::vector<float> input(32 * 32 * 4), output(32 * 4);
  auto count = [&](llvm::StringRef type, unsigned scale,
                   llvm::StringRef attributes = "") {
    Report report =
        run(makeLoad(type, scale, attributes), {in(input), out(output)});
    expectClean(report);
    return report.traffic.sectorsRead;
  };
  EXPECT_EQ(count("f32", 1), 4u);            // 128 bytes.
  EXPECT_EQ(count("f32", 2), 8u);            // Every other element.
  EXPECT_EQ(count("f32", 32), 32u);          // A sector for each lane.
  EXPECT_EQ(count("vector<4xf32>", 1), 16u); // 512 bytes.
  // Without a promise of alignment four accesses, each of 16 sectors.
  EXPECT_EQ(count("vector<4xf32>", 1, "{alignment = 4 : i64}"), 64u);
}

TEST(GlobalTest, CountsUniqueBytes) {
  std::vector<float> input(64), output(64);
  // Two blocks of 32 read the same element.
  Report report = run(makeLoad("f32", 0), {in(input), out(output)}, 32, 0, 2);
  EXPECT_EQ(report.uniqueBytesRead, 4u);
  EXPECT_EQ(report.uniqueBytesWritten, 256u);
  EXPECT_EQ(report.traffic.sectorsRead, 2u);
  EXPECT_EQ(report.traffic.sectorsWritten, 8u);
}

TEST(GlobalTest, LanesThatDoNotTakePartDoNotCount) {
  std::vector<float> output(32);
  Report report = run(makeIndexed("%out: !llvm.ptr<1>", R"(
    %c8 = arith.constant 8 : i32
    %zero = arith.constant 0.0 : f32
    %q = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %few = arith.cmpi ult, %t, %c8 : i32
    scf.if %few { llvm.store %zero, %q : f32, !llvm.ptr<1> }
    llvm.store %zero, %q : f32, !llvm.ptr<1>
  )"),
                      {out(output)});
  expectClean(report);
  EXPECT_EQ(report.traffic.sectorsWritten, 1u + 4u);
}

TEST(GlobalTest, OutOfBoundsIsFoundAndHarmless) {
  std::vector<float> input(31, 1.0f), output(32, 5.0f);
  Report report = run(makeLoad("f32"), {in(input), out(output)});
  expectOnly(report, {Check::GlobalOutOfBounds});
  EXPECT_EQ(report[Check::GlobalOutOfBounds].count, 1u);
  EXPECT_EQ(report[Check::GlobalOutOfBounds].example,
            "llvm.load at kernel.mlir:13:6, block (0, 0, 0) thread (31, 0, 0): "
            "reads 4 bytes at offset 124 of argument 0, which has 124 bytes");
  EXPECT_TRUE(std::isnan(output[31]));
  EXPECT_TRUE(report.finished);
}

TEST(GlobalTest, BeforeTheBeginAndNowhere) {
  std::vector<float> data(32);
  Report report = run(makeIndexed("%p: !llvm.ptr<1>", R"(
    %before = llvm.getelementptr %p[-1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %x = llvm.load %before : !llvm.ptr<1> -> f32
    %null = llvm.mlir.zero : !llvm.ptr<1>
    llvm.store %x, %null : f32, !llvm.ptr<1>
  )"),
                      {out(data)}, 1);
  EXPECT_EQ(report[Check::GlobalOutOfBounds].count, 2u);
  EXPECT_NE(
      report[Check::GlobalOutOfBounds].example.find("offset -4 of argument 0"),
      std::string::npos)
      << report[Check::GlobalOutOfBounds].example;
}

TEST(GlobalTest, ReadOnlyBuffersStayAsTheyAre) {
  std::vector<float> input(32), output(32, 3.0f);
  Report report = run(makeLoad("f32"), {in(input), in(output)});
  expectOnly(report, {Check::ReadOnlyWrite});
  EXPECT_EQ(output, std::vector<float>(32, 3.0f));
}

TEST(GlobalTest, MisalignedVectorsAreFound) {
  std::vector<float> data(130), output(128);
  // Buffers begin at aligned addresses; a view four bytes on does not.
  Argument view = Argument::constBuffer(data.data() + 1, 512);
  expectClean(run(makeLoad("vector<4xf32>"), {view, out(output)}));
  std::string shifted =
      makeIndexed("%whole: !llvm.ptr<1>, %in: !llvm.ptr<1>", R"(
    %p = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<4xf32>
    %v = llvm.load %p : !llvm.ptr<1> -> vector<4xf32>
  )");
  Report report = run(shifted, {in(data), view});
  expectOnly(report, {Check::Misaligned});
  EXPECT_EQ(report[Check::Misaligned].count, 32u);
}

TEST(GlobalTest, ViewsShareAddresses) {
  // In place: the output is the second half of the input's buffer.
  std::vector<float> data(64);
  for (unsigned i = 0; i < 64; ++i)
    data[i] = i;
  Report report = run(makeLoad("f32"),
                      {out(data), Argument::buffer(data.data() + 32, 128)});
  expectClean(report);
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(data[32 + i], i);
}

TEST(GlobalTest, InterleavedViewsAreOneBuffer) {
  // Rows of two, first the input's element, then the output's.
  std::vector<float> data(64, -1.0f);
  for (unsigned i = 0; i < 32; ++i)
    data[2 * i] = i;
  std::string text = makeIndexed("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", R"(
    %c2 = arith.constant 2 : i32
    %j = arith.muli %i, %c2 : i32
    %p = llvm.getelementptr %in[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %q = llvm.getelementptr %out[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    llvm.store %x, %q : f32, !llvm.ptr<1>
  )");
  Report report = run(text, {Argument::constBuffer(data.data(), 252),
                             Argument::buffer(data.data() + 1, 252)});
  expectClean(report);
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(data[2 * i + 1], i);
}

TEST(GlobalTest, ReadOnlyIsAPromise) {
  std::vector<float> data(32, 3.0f);
  std::string body = "%x = llvm.mlir.zero : f32\n"
                     "%q = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) "
                     "-> !llvm.ptr<1>, f32\n"
                     "llvm.store %x, %q : f32, !llvm.ptr<1>";
  expectClean(run(makeIndexed("%out: !llvm.ptr<1>", body), {out(data)}));
  expectOnly(
      run(makeIndexed("%out: !llvm.ptr<1> {llvm.readonly}", body), {out(data)}),
      {Check::ReadOnlyWrite});
}

TEST(GlobalTest, RacesWithinAndBetweenBlocks) {
  std::string same = makeIndexed("%out: !llvm.ptr<1>",
                                 "llvm.store %i, %out : i32, !llvm.ptr<1>");
  std::vector<uint32_t> data(64);
  EXPECT_GT(run(same, {out(data)}, 2)[Check::GlobalRace].count, 0u);
  Report report = run(same, {out(data)}, 1, 0, /*blocks=*/2);
  expectOnly(report, {Check::GlobalRace});
  EXPECT_NE(report[Check::GlobalRace].example.find("another block"),
            std::string::npos);
  expectClean(run(same, {out(data)}, 1, 0, 1));
  // A barrier orders threads, but not blocks.
  std::string exchange = makeIndexed("%out: !llvm.ptr<1>", R"(
    %p = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %i, %p : i32, !llvm.ptr<1>
    nvvm.barrier0
    %c1 = arith.constant 1 : i32
    %j = arith.xori %i, %c1 : i32
    %q = llvm.getelementptr %out[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %q : !llvm.ptr<1> -> i32
  )");
  expectClean(run(exchange, {out(data)}, 32, 0, 2));
  expectOnly(run(exchange, {out(data)}, 1, 0, 2), {Check::GlobalRace});
}

/// A mask of bytes, of which blocks write one each.
TEST(GlobalTest, BytesOfDifferentBlocksDoNotRace) {
  std::string body = R"(
    %p = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %v = arith.trunci %i : i32 to i8
    llvm.store %v, %p : i8, !llvm.ptr<1>
  )";
  std::vector<uint8_t> data(7);
  expectClean(run(makeIndexed("%out: !llvm.ptr<1>", body), {out(data)}, 1, 0,
                  /*blocks=*/7));
  for (unsigned i = 0; i < 7; ++i)
    EXPECT_EQ(data[i], i);
  std::string same = "%z = arith.constant 0 : i32\n" + body;
  same.replace(same.find("[%i]"), 4, "[%z]");
  expectOnly(run(makeIndexed("%out: !llvm.ptr<1>", same), {out(data)}, 1, 0, 2),
             {Check::GlobalRace});
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// %s: where thread t's word of shared memory is, `stride` bytes apart.
std::string makeShared(unsigned stride, llvm::StringRef body) {
  return makeIndexed(
      "%out: !llvm.ptr<1>",
      ("%shared = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>\n"
       "%stride = arith.constant " +
       llvm::Twine(stride) +
       " : i32\n%o = arith.muli %t, %stride : i32\n"
       "%s = llvm.getelementptr %shared[%o] : (!llvm.ptr<3>, i32) -> "
       "!llvm.ptr<3>, i8\n" +
       body)
          .str());
}

TEST(SharedTest, CountsBankConflicts) {
  std::vector<uint32_t> none(1);
  auto count = [&](unsigned stride, llvm::StringRef type) {
    std::string text =
        makeShared(stride, ("%v = llvm.mlir.zero : " + type +
                            "\nllvm.store %v, %s : " + type + ", !llvm.ptr<3>")
                               .str());
    Report report = run(text, {out(none)}, 32, 16384);
    if (stride != 0)
      expectClean(report);
    return std::pair(report.traffic.sharedPhases, report.traffic.sharedCycles);
  };
  using Counts = std::pair<uint64_t, uint64_t>;
  EXPECT_EQ(count(4, "i32"), Counts(1, 1));
  EXPECT_EQ(count(8, "i32"), Counts(1, 2));
  EXPECT_EQ(count(128, "i32"), Counts(1, 32));
  EXPECT_EQ(count(132, "i32"), Counts(1, 1));
  EXPECT_EQ(count(0, "i32"), Counts(1, 1)); // One word for all.
  EXPECT_EQ(count(2, "i16"), Counts(1, 1)); // Two lanes share a word.
  EXPECT_EQ(count(16, "vector<4xi32>"), Counts(4, 4));
  EXPECT_EQ(count(32, "vector<4xi32>"), Counts(4, 8));
  EXPECT_EQ(count(8, "vector<2xi32>"), Counts(2, 2));
}

TEST(SharedTest, UninitializedReadsAreFound) {
  std::vector<uint32_t> none(1);
  std::string read = makeShared(4, "%v = llvm.load %s : !llvm.ptr<3> -> i32");
  Report report = run(read, {out(none)}, 32, 128);
  expectOnly(report, {Check::UninitializedRead});
  EXPECT_EQ(report[Check::UninitializedRead].count, 32u);
  // Writes of an earlier block do not count.
  std::string once = makeShared(4, R"(
    %c0 = arith.constant 0 : i32
    %first = arith.cmpi eq, %b, %c0 : i32
    scf.if %first { llvm.store %t, %s : i32, !llvm.ptr<3> }
    %v = llvm.load %s : !llvm.ptr<3> -> i32
  )");
  EXPECT_EQ(run(once, {out(none)}, 32, 128, 3)[Check::UninitializedRead].count,
            64u);
}

TEST(SharedTest, OutOfBoundsIsFound) {
  std::vector<uint32_t> none(1);
  std::string text = makeShared(4, "llvm.store %t, %s : i32, !llvm.ptr<3>");
  expectClean(run(text, {out(none)}, 32, 128));
  Report report = run(text, {out(none)}, 32, 126);
  expectOnly(report, {Check::SharedOutOfBounds});
  EXPECT_NE(report[Check::SharedOutOfBounds].example.find(
                "writes 4 bytes at shared memory + 124 of 126"),
            std::string::npos);
}

} // namespace
