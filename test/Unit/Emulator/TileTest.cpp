//===- TileTest.cpp - A pipelined product and its mutants -----------------===//
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

constexpr int64_t kTileRows = 64, kTileColumns = 16;
constexpr uint64_t kTileSharedBytes = 2 * 10240;

/// test/Emulator/Inputs/tile.mlir, with some text replaced.
class TileTest : public testing::Test {
protected:
  void SetUp() override {
    auto file =
        llvm::MemoryBuffer::getFile(LINATTN_EMULATOR_INPUTS "/tile.mlir");
    ASSERT_TRUE(file);
    text = (*file)->getBuffer().str();
    fill(a, kTileRows * k);
    fill(b, kTileColumns * k);
  }

  void replace(llvm::StringRef from, llvm::StringRef to) {
    size_t at = text.find(from.str());
    ASSERT_NE(at, std::string::npos) << from.str();
    ASSERT_EQ(text.find(from.str(), at + 1), std::string::npos) << from.str();
    text.replace(at, from.size(), to.str());
  }

  Report launch(uint64_t seed = 1) {
    c.assign(kTileRows * kTileColumns, std::numeric_limits<float>::quiet_NaN());
    return run(compile(text), {in(a), in(b), out(c), Argument::i32(k)}, 128,
               kTileSharedBytes, 1, seed);
  }

  /// max|C - A Bᵀ| / max|A Bᵀ|, in f64.
  double getError() const {
    double worst = 0, largest = 0;
    for (int64_t i = 0; i < kTileRows; ++i)
      for (int64_t j = 0; j < kTileColumns; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += double(fromBFloat16Bits(a[i * k + l])) *
                 fromBFloat16Bits(b[j * k + l]);
        double difference = std::abs(c[i * kTileColumns + j] - sum);
        worst = difference <= worst ? worst : difference; // NaN counts.
        largest = std::max(largest, std::abs(sum));
      }
    return worst / largest;
  }

  const Traffic &getTraffic(const Report &report, llvm::StringRef op) {
    for (const SiteTraffic &site : report.sites)
      if (llvm::StringRef(site.location).starts_with(op))
        return site.traffic;
    ADD_FAILURE() << "no " << op.str();
    return report.traffic;
  }

  std::string text;
  int64_t k = 256;
  std::vector<uint16_t> a, b;
  std::vector<float> c;

private:
  void fill(std::vector<uint16_t> &data, int64_t size) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    data.resize(size);
    for (uint16_t &element : data)
      element = toBFloat16Bits(normal(random));
  }
};

TEST_F(TileTest, IsRight) {
  Report report = launch();
  expectClean(report);
  EXPECT_LE(getError(), 1e-6);
  EXPECT_EQ(report.traffic.getCyclesPerPhase(), 1.0);
  // Every byte of A and B once, every byte of C once.
  uint64_t bytesIn = 2 * (a.size() + b.size()), bytesOut = 4 * c.size();
  EXPECT_EQ(report.uniqueBytesRead, bytesIn);
  EXPECT_EQ(report.uniqueBytesWritten, bytesOut);
  EXPECT_EQ(report.traffic.sectorsRead * 32, bytesIn);
  EXPECT_EQ(report.traffic.sectorsWritten * 32, bytesOut);
}

TEST_F(TileTest, DoesNotDependOnTheOrderOfThreads) {
  launch(1);
  std::vector<float> first = c;
  for (uint64_t seed : {2, 3, 4}) {
    expectClean(launch(seed));
    EXPECT_EQ(c, first);
  }
}

TEST_F(TileTest, MissingBarrierIsARace) {
  replace("      nvvm.barrier0\n", "");
  Report report = launch();
  // Whether wrong data is read depends on the order, the race does not.
  EXPECT_GT(report[Check::SharedRace].count, 0u);
  EXPECT_NE(report[Check::SharedRace].example.find("with no barrier"),
            std::string::npos);
}

TEST_F(TileTest, MissingSwizzleConflictsInTheBanks) {
  replace("%place = arith.xori %chunk, %low : i32",
          "%zero = arith.constant 0 : i32\n"
          "%place = arith.xori %chunk, %zero : i32");
  Report report = launch();
  expectClean(report); // Slow, not wrong.
  EXPECT_LE(getError(), 1e-6);
  EXPECT_EQ(getTraffic(report, "nvvm.ldmatrix").getCyclesPerPhase(), 8.0);
}

TEST_F(TileTest, WeakWaitReadsEarly) {
  replace("nvvm.cp.async.wait.group 0", "nvvm.cp.async.wait.group 1");
  Report report = launch();
  EXPECT_GT(report[Check::EarlyRead].count, 0u);
  EXPECT_NE(report[Check::EarlyRead].example.find("nvvm.ldmatrix at "),
            std::string::npos);
  EXPECT_FALSE(getError() <= 1e-2);
}

TEST_F(TileTest, RowTooFarIsOutOfBounds) {
  replace("%index = arith.addi %i, %tid : i32",
          "%one = arith.constant 1 : i32\n"
          "%index0 = arith.addi %i, %tid : i32\n"
          "%index = arith.addi %index0, %one : i32");
  Report report = launch();
  // The last thread's chunk is beyond A; in shared memory it races with B's.
  EXPECT_GT(report[Check::GlobalOutOfBounds].count, 0u);
  EXPECT_NE(report[Check::GlobalOutOfBounds].example.find("argument 0"),
            std::string::npos);
}

TEST_F(TileTest, StoreTooFarIsOutOfBounds) {
  replace("%o3 = llvm.getelementptr %o0[544]",
          "%o3 = llvm.getelementptr %o0[576]");
  Report report = launch();
  EXPECT_EQ(report[Check::GlobalOutOfBounds].count, 4u);
  EXPECT_NE(report[Check::GlobalOutOfBounds].example.find(
                "of argument 2, which has 4096 bytes"),
            std::string::npos)
      << report[Check::GlobalOutOfBounds].example;
}

TEST_F(TileTest, SharedMemoryTooSmallIsOutOfBounds) {
  replace("%stageBytes = arith.constant 10240",
          "%stageBytes = arith.constant 10368");
  Report report = launch();
  EXPECT_GT(report[Check::SharedOutOfBounds].count, 0u);
}

TEST_F(TileTest, LanesThatSkipAStepDiverge) {
  replace("%part:8 = scf.for %i = %c0 to %c4 step %c1",
          "%few = arith.cmpi ult, %lane, %c7 : i32\n"
          "%bound = arith.select %few, %c3, %c4 : i32\n"
          "%part:8 = scf.for %i = %c0 to %bound step %c1");
  Report report = launch();
  EXPECT_GT(report[Check::Divergence].count, 0u);
  EXPECT_FALSE(report.finished);
}

TEST_F(TileTest, BarrierThatSomeSkipIsADeadlock) {
  replace("      nvvm.barrier0\n",
          "%inFirst = arith.cmpi ult, %warp, %c3 : i32\n"
          "scf.if %inFirst { nvvm.barrier0 }\n");
  Report report = launch();
  EXPECT_EQ(report[Check::Deadlock].count, 1u);
  EXPECT_NE(report[Check::Deadlock].example.find("has returned"),
            std::string::npos)
      << report[Check::Deadlock].example;
  EXPECT_FALSE(report.finished);
}

TEST_F(TileTest, OddAddressIsMisaligned) {
  replace("%tileB = llvm.getelementptr %stage[8192] : (!llvm.ptr<3>) -> "
          "!llvm.ptr<3>, i8\n      %part",
          "%tileB = llvm.getelementptr %stage[8194] : (!llvm.ptr<3>) -> "
          "!llvm.ptr<3>, i8\n      %part");
  Report report = launch();
  EXPECT_GT(report[Check::Misaligned].count, 0u);
}

} // namespace
