//===- BulkCopyTest.cpp - Copies by tensor maps, and their mutants --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two warps make a tensor map of 20 × 40 elements of 16 bits and copy two boxes
// of 16 × 64 through one place in shared memory, one after the other; what lies
// beyond the matrix is 0.
//
//===----------------------------------------------------------------------===//

#include "EmulatorTestUtils.h"
#include "linattn/PTX/TensorMap.h"
#include "llvm/Support/FormatVariadic.h"

using namespace linattn;
using namespace linattn::emulator;
using namespace linattn::emulator::test;

namespace {

constexpr unsigned kThreads = 64, kRows = 20, kColumns = 40, kPitch = 48;
constexpr unsigned kBoxRows = 16, kBoxColumns = 64, kTiles = 2;
constexpr unsigned kBarrierAt = 128, kTileAt = 1024;
constexpr unsigned kSharedBytes = kTileAt + kBoxRows * kBoxColumns * 2;
using Field = TensorMapField;

/// A kernel, and what is wrong with it.
struct Copies {
  bool zeroMap = true, initFence = true, initBarrier = true, acquire = true;
  bool acquireFirst = false, arrive = true, expect = true, wait = true;
  bool waitInFirstWarpOnly = false, release = true, writeBefore = false;
  bool writeFence = false;
  unsigned expectedBytes = kBoxRows * kBoxColumns * 2, firstParity = 0;
  unsigned boxRows = kBoxRows, boxColumns = kBoxColumns, coordinates = 2;
  unsigned rows = kRows, stride = 2 * kPitch, swizzle = 3, globalOffset = 0;
  std::optional<Field> unset;

  std::string getText() const;
  std::string fillMap() const;
  std::string makeMap() const;
  std::string copyTile(unsigned tile) const;
};

std::string assembly(llvm::StringRef text, llvm::StringRef constraints,
                     llvm::StringRef operands, llvm::StringRef types) {
  return llvm::formatv("llvm.inline_asm has_side_effects asm_dialect = att "
                       "\"{0}\", \"{1},~{{memory}\" {2} : ({3}) -> ()\n",
                       text, constraints, operands, types);
}

std::string Copies::fillMap() const {
  std::string text = "%address = llvm.ptrtoint %a : !llvm.ptr<1> to i64\n";
  unsigned number = 0;
  auto set = [&](Field field, unsigned dim, llvm::StringRef value) {
    if (field != unset)
      text += assembly(TensorMapReplace{field, dim, 0}.getAssembly(), "r,l",
                       ("%map, " + value).str(), "i32, i64");
  };
  auto setNumber = [&](Field field, unsigned dim, unsigned value) {
    std::string name = "%n" + std::to_string(number++);
    text += llvm::formatv("{0} = llvm.mlir.constant({1} : i{2}) : i{2}\n", name,
                          value, field == Field::Stride ? 64 : 32);
    if (field == unset)
      return;
    bool isWide = field == Field::Stride;
    text += assembly(TensorMapReplace{field, dim, 0}.getAssembly(),
                     isWide ? "r,l" : "r,r", "%map, " + name,
                     isWide ? "i32, i64" : "i32, i32");
  };
  auto setConstant = [&](Field field, unsigned value) {
    if (field != unset)
      text += assembly(TensorMapReplace{field, 0, value}.getAssembly(), "r",
                       "%map", "i32");
  };
  set(Field::Address, 0, "%address");
  setConstant(Field::Rank, 1);
  setNumber(Field::Box, 0, boxColumns);
  setNumber(Field::Box, 1, boxRows);
  setNumber(Field::Size, 0, kColumns);
  setNumber(Field::Size, 1, rows);
  setNumber(Field::Stride, 0, stride);
  setNumber(Field::ElementStride, 0, 1);
  setNumber(Field::ElementStride, 1, 1);
  setConstant(Field::ElementType, tensor_map::elements16);
  setConstant(Field::Interleave, 0);
  setConstant(Field::Swizzle, swizzle);
  setConstant(Field::Fill, 0);
  return text;
}

std::string Copies::makeMap() const {
  std::string text = "%isFirst = arith.cmpi ult, %tid, %c32 : i32\n"
                     "scf.if %isFirst {\n";
  std::string fence =
      "nvvm.fence.proxy.acquire #nvvm.mem_scope<gpu> %generic, %c128\n";
  if (zeroMap)
    text += "%word = arith.muli %tid, %c4 : i32\n"
            "%to = llvm.getelementptr %shared[%word] : (!llvm.ptr<3>, i32) -> "
            "!llvm.ptr<3>, i8\nllvm.store %c0, %to : i32, !llvm.ptr<3>\n";
  text += "nvvm.bar.warp.sync %all : i32\nscf.if %isZero {\n" + fillMap();
  if (initBarrier)
    text += "nvvm.mbarrier.init %bar, %c1 : !llvm.ptr<3>, i32\n";
  if (initFence)
    text += "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = "
            "#nvvm.shared_space<cta>}\n";
  text += "}\nnvvm.bar.warp.sync %all : i32\n";
  if (acquireFirst)
    text += fence;
  text += assembly(getTensorMapPublish(), "l,r", "%global, %map",
                   "!llvm.ptr<1>, i32");
  if (acquire)
    text += fence;
  return text + "nvvm.cp.async.bulk.commit.group\n"
                "nvvm.cp.async.bulk.wait_group 0 {read}\n}\nnvvm.barrier0\n";
}

std::string Copies::copyTile(unsigned tile) const {
  std::string text = "scf.if %isZero {\n";
  if (writeBefore)
    text += "llvm.store %c1, %tile : i32, !llvm.ptr<3>\n";
  if (writeFence)
    text += "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = "
            "#nvvm.shared_space<cta>}\n";
  if (arrive && expect)
    text += "nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32\n";
  else if (arrive)
    text += "%state = nvvm.mbarrier.arrive %bar : !llvm.ptr<3> -> i64\n";
  text += llvm::formatv(
      "nvvm.cp.async.bulk.tensor.shared.cluster.global %tile, %generic, %bar, "
      "box[%c0{0}] {{isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr\n}\n",
      coordinates == 2 ? llvm::formatv(", %c{0}", tile * kBoxRows).str() : "");
  if (waitInFirstWarpOnly)
    text += "scf.if %isFirst {\n";
  if (wait)
    text += llvm::formatv("nvvm.mbarrier.try_wait.parity %bar, %c{0}, %c128 : "
                          "!llvm.ptr<3>, i32, i32\n",
                          (tile + firstParity) % 2);
  if (waitInFirstWarpOnly)
    text += "}\n";
  for (unsigned i = 0; i < 2; ++i)
    text += llvm::formatv(
        R"(
    %v{0} = llvm.load %from{1} {{alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
    %to{0} = llvm.getelementptr %out{1}[{2}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    llvm.store %v{0}, %to{0} {{alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
)",
        2 * tile + i, i, tile * kBoxRows * kBoxColumns * 2);
  if (release)
    text += "nvvm.barrier0\n";
  return text;
}

std::string Copies::getText() const {
  std::string text;
  for (unsigned constant : {0, 1, 3, 4, 7, 8, 16, 32, 64, 128})
    text += llvm::formatv("%c{0} = arith.constant {0} : i32\n", constant);
  text += llvm::formatv(
      R"(
    %all = arith.constant -1 : i32
    %bytes = arith.constant {0} : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %isZero = arith.cmpi eq, %tid, %c0 : i32
    %shared = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %map = llvm.ptrtoint %shared : !llvm.ptr<3> to i32
    %bar = llvm.getelementptr %shared[{1}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %tile = llvm.getelementptr %shared[{2}] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %global = llvm.getelementptr %maps[{3}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
    %generic = llvm.addrspacecast %global : !llvm.ptr<1> to !llvm.ptr
)",
      expectedBytes, kBarrierAt, kTileAt, globalOffset);
  // Thread t takes units t and t + 64 of the tile, eight to a row.
  for (unsigned i = 0; i < 2; ++i)
    text += llvm::formatv(
        R"(
    %u{0} = arith.addi %tid, %c{1} : i32
    %row{0} = arith.shrui %u{0}, %c3 : i32
    %unit{0} = arith.andi %u{0}, %c7 : i32
    %key{0} = arith.andi %row{0}, %c7 : i32
    %place{0} = arith.xori %unit{0}, %key{0} : i32
    %rowBytes{0} = arith.muli %row{0}, %c128 : i32
    %unitBytes{0} = arith.muli %place{0}, %c16 : i32
    %offset{0} = arith.addi %rowBytes{0}, %unitBytes{0} : i32
    %from{0} = llvm.getelementptr %tile[%offset{0}] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %outBytes{0} = arith.muli %u{0}, %c16 : i32
    %out{0} = llvm.getelementptr %c[%outBytes{0}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
)",
        i, i * kThreads);
  text += makeMap();
  for (unsigned tile = 0; tile < kTiles; ++tile)
    text += copyTile(tile);
  return makeKernel("%a: !llvm.ptr<1>, %maps: !llvm.ptr<1>, %c: !llvm.ptr<1>",
                    text);
}

class BulkCopyTest : public testing::Test {
protected:
  BulkCopyTest() : a(kRows * kPitch) {
    for (auto [i, x] : llvm::enumerate(a))
      x = i + 1;
  }

  Report launch(unsigned blocks = 1) {
    c.assign(kTiles * kBoxRows * kBoxColumns, 0xffff);
    maps.assign(2 * tensor_map::bytes, 0xff);
    return run(copies.getText(), {in(a), out(maps), out(c)}, kThreads,
               kSharedBytes, blocks);
  }

  bool isRight() const {
    for (unsigned row = 0; row < kTiles * kBoxRows; ++row)
      for (unsigned column = 0; column < kBoxColumns; ++column) {
        bool exists = row < kRows && column < kColumns;
        if (c[row * kBoxColumns + column] !=
            (exists ? a[row * kPitch + column] : 0))
          return false;
      }
    return true;
  }

  void expectFound(Check check, llvm::StringRef text) {
    Report report = launch();
    EXPECT_GT(report[check].count, 0u) << report.describeFindings();
    EXPECT_NE(report[check].example.find(text.str()), std::string::npos)
        << report[check].example;
  }

  Copies copies;
  std::vector<uint16_t> a, c;
  std::vector<char> maps;
};

TEST_F(BulkCopyTest, CopiesWithZerosAround) {
  Report report = launch();
  expectClean(report);
  EXPECT_TRUE(isRight());
  EXPECT_EQ(report.traffic.getCyclesPerPhase(), 1.0);
  // Rows of 80 bytes at multiples of 96.
  EXPECT_EQ(report.uniqueBytesRead, kRows * 80 + tensor_map::bytes);
}

TEST_F(BulkCopyTest, WhoDoesNotWaitIsEarly) {
  copies.wait = false;
  expectFound(Check::EarlyRead, "a copy may still be under way");
  EXPECT_FALSE(isRight());
  // Who waits for the phase before waits for nothing.
  copies = Copies();
  copies.firstParity = 1;
  expectFound(Check::EarlyRead, "a copy may still be under way");
  EXPECT_FALSE(isRight());
}

TEST_F(BulkCopyTest, EveryThreadMustWait) {
  copies.waitInFirstWarpOnly = true;
  Report report = launch();
  EXPECT_GT(report[Check::EarlyRead].count + report[Check::SharedRace].count,
            0u);
}

TEST_F(BulkCopyTest, WithoutExpectedBytesNothingIsWaitedFor) {
  copies.expect = false;
  expectFound(Check::EarlyRead, "a copy may still be under way");
  EXPECT_FALSE(isRight());
}

TEST_F(BulkCopyTest, WrongBytesAndMissingArrivalsHang) {
  for (unsigned bytes : {1024, 4096}) {
    copies.expectedBytes = bytes;
    Report report = launch();
    expectOnly(report, {Check::Deadlock});
    EXPECT_FALSE(report.finished);
    EXPECT_NE(
        report[Check::Deadlock].example.find(
            llvm::formatv("lacks 0 arrivals and {0} bytes", int(bytes) - 2048)
                .str()),
        std::string::npos)
        << report[Check::Deadlock].example;
  }
  copies = Copies();
  copies.arrive = false;
  expectFound(Check::Deadlock, "lacks 1 arrivals and -2048 bytes");
}

TEST_F(BulkCopyTest, MapsMustBeAcquired) {
  copies.acquire = false;
  Report report = launch();
  expectOnly(report, {Check::MissingFence});
  EXPECT_NE(report[Check::MissingFence].example.find("fence.proxy.tensormap"),
            std::string::npos);
  // After they were written.
  copies.acquireFirst = true;
  expectOnly(launch(), {Check::MissingFence});
}

TEST_F(BulkCopyTest, MapsOfAnotherBlockAreNotOnesOwn) {
  EXPECT_GT(launch(2)[Check::GlobalRace].count, 0u);
}

TEST_F(BulkCopyTest, BarriersMustBeMadeAndMadeKnown) {
  copies.initFence = false;
  expectFound(Check::MissingFence, "with no fence.proxy.async since");
  copies.initBarrier = false;
  expectFound(Check::UninitializedRead, "that was not initialised");
}

TEST_F(BulkCopyTest, RefillBeforeReadersAreDoneIsARace) {
  copies.release = false;
  EXPECT_GT(launch()[Check::SharedRace].count, 0u);
}

TEST_F(BulkCopyTest, WritesBeforeNeedAFence) {
  copies.writeBefore = true;
  expectOnly(launch(), {Check::MissingFence});
  copies.writeFence = true;
  expectClean(launch());
  EXPECT_TRUE(isRight());
}

TEST_F(BulkCopyTest, WrongSwizzlesAreWrong) {
  copies.swizzle = 0;
  expectClean(launch());
  EXPECT_FALSE(isRight());
  for (unsigned swizzle : {1, 2}) {
    copies.swizzle = swizzle;
    expectFound(Check::BadTensorMap, "has rows of 128 bytes in a box");
  }
}

TEST_F(BulkCopyTest, WrongBoxesAreFound) {
  copies.boxRows = 8;
  expectFound(Check::Deadlock, "lacks 0 arrivals and 1024 bytes");
  copies.expectedBytes = 1024;
  launch();
  EXPECT_FALSE(isRight());
  copies = Copies();
  copies.boxColumns = 128;
  expectFound(Check::BadTensorMap, "has rows of 256 bytes in a box");
  copies.boxColumns = 512;
  expectFound(Check::BadTensorMap, "has a box of 512 elements");
}

TEST_F(BulkCopyTest, WrongSizesAndStridesAreFound) {
  copies.rows = kRows + 1;
  expectFound(Check::GlobalOutOfBounds, "of argument 0");
  copies = Copies();
  copies.stride = 90;
  expectFound(Check::BadTensorMap, "has a stride of 90 bytes");
  copies.stride = 80;
  expectClean(launch());
  EXPECT_FALSE(isRight());
}

TEST_F(BulkCopyTest, IncompleteMapsAreFound) {
  copies.zeroMap = false;
  expectFound(Check::UninitializedRead, "which was never written");
  for (Field field : {Field::Address, Field::Rank, Field::Box, Field::Size,
                      Field::Stride, Field::ElementStride, Field::ElementType,
                      Field::Interleave, Field::Swizzle, Field::Fill}) {
    copies = Copies();
    copies.unset = field;
    EXPECT_GT(launch()[Check::BadTensorMap].count, 0u)
        << static_cast<unsigned>(field);
  }
  copies = Copies();
  copies.coordinates = 1;
  expectFound(Check::BadTensorMap, "has 2 dimensions, and the copy 1");
}

TEST_F(BulkCopyTest, MapsAreAligned) {
  copies.globalOffset = 64;
  expectOnly(launch(), {Check::Misaligned});
}

TEST(TensorMapReplaceTest, KnowsItsOwnAssemblyOnly) {
  TensorMapReplace stride{Field::Stride, 1, 0};
  EXPECT_EQ(stride.getAssembly(), "tensormap.replace.tile.global_stride.shared:"
                                  ":cta.b1024.b64 [$0], 1, $1;");
  TensorMapReplace swizzle{Field::Swizzle, 0, 3};
  std::string text = swizzle.getAssembly();
  EXPECT_EQ(text,
            "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [$0], "
            "3;");
  for (const TensorMapReplace &replace : {stride, swizzle}) {
    auto parsed = TensorMapReplace::parse(replace.getAssembly());
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->getAssembly(), replace.getAssembly());
  }
  EXPECT_FALSE(TensorMapReplace::parse(text + " "));
  EXPECT_FALSE(TensorMapReplace::parse("tensormap.replace.tile.color"));
  EXPECT_FALSE(TensorMapReplace::parse(
      "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$0], 5, $1;"));
}

} // namespace
