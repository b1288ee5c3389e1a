//===- WgmmaTest.cpp - Products of a warpgroup, and their mutants ---------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One warpgroup multiplies 64 × 64 by 64 × 64 elements of 16 bits. Threads
// write both operands to shared memory as descriptors expect them, a row by two
// threads.
//
//===----------------------------------------------------------------------===//

#include "linattn/PTX/Wgmma.h"
#include "EmulatorTestUtils.h"
#include "linattn/Support/Elements.h"

using namespace linattn;
using namespace linattn::emulator;
using namespace linattn::emulator::test;

namespace {

constexpr unsigned kSize = 64, kWarpgroup = 128, kSteps = kSize / 16;
constexpr uint64_t kTileBytes = kSize * kSize * 2;

/// A kernel, and what is wrong with it.
struct Product {
  WgmmaForm form;
  bool proxyFence = true, registerFence = true, barrier = true, commit = true;
  bool wait = true, permute = true, overwrite = false;
  bool moreInFirstWarp = false;
  unsigned pending = 0;
  uint64_t swizzle = wgmma_descriptor::swizzle128, stride = 1024;
  std::string added = "%c0"; ///< To the descriptor of B.

  std::string getText() const;
  std::string copyTile(llvm::StringRef name, uint64_t tile) const;
  std::string multiply() const;
};

/// Thread t writes 4 units of row t / 2 of a matrix.
std::string Product::copyTile(llvm::StringRef name, uint64_t tile) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (unsigned i = 0; i < 4; ++i) {
    std::string id = (name + llvm::Twine(i)).str();
    os << "%u" << id << " = arith.addi %firstUnit, %c" << i << " : i32\n"
       << "%x" << id << " = arith.xori %u" << id << ", "
       << (permute ? "%row7" : "%c0") << " : i32\n"
       << "%s" << id << " = arith.muli %x" << id << ", %c16 : i32\n"
       << "%o" << id << " = arith.addi %rowBytes, %s" << id << " : i32\n"
       << "%g" << id << " = arith.muli %u" << id << ", %c16 : i32\n"
       << "%f" << id << " = arith.addi %rowBytes, %g" << id << " : i32\n"
       << "%p" << id << " = llvm.getelementptr %" << name << "[%f" << id
       << "] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8\n"
       << "%v" << id << " = llvm.load %p" << id
       << " {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>\n"
       << "%t" << id << " = llvm.getelementptr %shared[" << tile
       << "] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n"
       << "%q" << id << " = llvm.getelementptr %t" << id << "[%o" << id
       << "] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8\n"
       << "llvm.store %v" << id << ", %q" << id
       << " {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>\n";
  }
  return text;
}

static std::string repeat(llvm::StringRef what, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", " : "") + what.str();
  return text;
}

static std::string sumsOf(llvm::StringRef name) {
  std::string text;
  for (unsigned i = 0; i < kSize / 2; ++i)
    text += ", %" + name.str() + "_" + std::to_string(i);
  return text;
}

std::string Product::multiply() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string structure = "!llvm.struct<(" + repeat("f32", kSize / 2) + ")>";
  auto takeApart = [&](const std::string &name) {
    for (unsigned i = 0; i < kSize / 2; ++i)
      os << "%" << name << "_" << i << " = llvm.extractvalue %" << name << "["
         << i << "] : " << structure << "\n";
  };
  auto tied = [&](bool any) {
    std::string text;
    for (unsigned i = 0; any && i < kSize / 2; ++i)
      text += "," + std::to_string(i);
    return text;
  };
  std::string outputs = repeat("=f", kSize / 2);
  if (moreInFirstWarp)
    os << "%isFirst = arith.cmpi eq, %warp, %c0 : i32\nscf.if %isFirst {\n"
       << "%more = llvm.inline_asm has_side_effects asm_dialect = att \""
       << form.getAssembly() << "\", \"" << outputs
       << ",l,l,~{memory}\" %descA, %descB : (i64, i64) -> " << structure
       << "\nnvvm.wgmma.commit.group.sync.aligned\n}\n";
  for (unsigned step = 0; step < kSteps; ++step) {
    WgmmaForm mine = form;
    mine.accumulates = step > 0;
    std::string s = std::to_string(step), operands, types, constraints;
    if (form.registersA)
      for (unsigned i = 0; i < 4; ++i) {
        std::string id = s + "_" + std::to_string(i);
        // Row g + 8 (i % 2), columns 16 step + 2 t + 8 (i / 2).
        os << "%ra" << id << " = llvm.getelementptr %fragment["
           << 1024 * (i % 2) + 32 * step + 16 * (i / 2)
           << "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\n"
           << "%a" << id << " = llvm.load %ra" << id
           << " : !llvm.ptr<1> -> i32\n";
        operands += "%a" + id + ", ";
        types += "i32, ";
        constraints += ",r";
      }
    else {
      os << "%stepA" << s << " = llvm.mlir.constant(" << 2 * step
         << " : i64) : i64\n"
         << "%da" << s << " = llvm.add %descA, %stepA" << s << " : i64\n";
      operands += "%da" + s + ", ";
      types += "i64, ";
      constraints += ",l";
    }
    os << "%stepB" << s << " = llvm.mlir.constant("
       << (form.transposedB ? 128 : 2) * step << " : i64) : i64\n"
       << "%db" << s << " = llvm.add %descB, %stepB" << s << " : i64\n";
    operands += "%db" + s;
    types += "i64";
    constraints += ",l";
    if (step > 0) {
      operands += sumsOf("m" + std::to_string(step - 1));
      types += ", " + repeat("f32", kSize / 2);
    }
    os << "%m" << s
       << " = llvm.inline_asm has_side_effects asm_dialect = att \""
       << mine.getAssembly() << "\", \"" << outputs << constraints
       << tied(step > 0) << ",~{memory}\" " << operands << " : (" << types
       << ") -> " << structure << "\n";
    takeApart("m" + s);
  }
  if (commit)
    os << "nvvm.wgmma.commit.group.sync.aligned\n";
  if (overwrite)
    // Of rows that only this warp reads.
    os << "%mine = llvm.getelementptr %shared[%fragmentRow] : (!llvm.ptr<3>, "
          "i32) -> !llvm.ptr<3>, i8\n"
          "llvm.store %c1, %mine : i32, !llvm.ptr<3>\n";
  if (!wait)
    return text;
  std::string last = "m" + std::to_string(kSteps - 1);
  os << "%w = llvm.inline_asm has_side_effects asm_dialect = att \""
     << getWgmmaWait(pending) << "\", \"" << outputs << tied(true)
     << ",~{memory}\" " << sumsOf(last).substr(2) << " : ("
     << repeat("f32", kSize / 2) << ") -> " << structure << "\n";
  takeApart("w");
  return text;
}

std::string Product::getText() const {
  std::string body;
  llvm::raw_string_ostream os(body);
  for (unsigned constant : {0, 1, 2, 3, 4, 5, 7, 16, 31, 128, 256})
    os << "%c" << constant << " = arith.constant " << constant << " : i32\n";
  os << R"(
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %shared = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %row = arith.shrui %tid, %c1 : i32
    %row7 = arith.andi %row, %c7 : i32
    %rowBytes = arith.muli %row, %c128 : i32
    %half = arith.andi %tid, %c1 : i32
    %firstUnit = arith.muli %half, %c4 : i32
    %lane = arith.andi %tid, %c31 : i32
    %warp = arith.shrui %tid, %c5 : i32
    %g = arith.shrui %lane, %c2 : i32
    %t = arith.andi %lane, %c3 : i32
    %strip = arith.muli %warp, %c16 : i32
    %sumRow = arith.addi %strip, %g : i32
    %fragmentRow = arith.muli %sumRow, %c128 : i32
    %fragmentColumn = arith.muli %t, %c4 : i32
    %fragmentBytes = arith.addi %fragmentRow, %fragmentColumn : i32
    %fragment = llvm.getelementptr %a[%fragmentBytes] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
  )";
  os << copyTile("a", 0) << copyTile("b", kTileBytes);
  if (proxyFence)
    os << "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = "
          "#nvvm.shared_space<cta>}\n";
  if (barrier)
    os << "nvvm.barrier0\n";
  using namespace wgmma_descriptor;
  uint64_t fixed = swizzle << swizzleShift |
                   (stride >> unitShift) << strideShift |
                   uint64_t(1) << leadingShift;
  // The address of shared memory is a multiple of all that a descriptor holds.
  os << "%descA = llvm.mlir.constant(" << static_cast<int64_t>(fixed)
     << " : i64) : i64\n"
     << "%tileB = llvm.mlir.constant(" << (kTileBytes >> unitShift)
     << " : i64) : i64\n"
     << "%other = arith.extui " << added << " : i32 to i64\n"
     << "%fixedB = llvm.add %descA, %tileB : i64\n"
     << "%descB = llvm.add %fixedB, %other : i64\n";
  std::string text = body;
  if (registerFence)
    text += "nvvm.wgmma.fence.aligned\n";
  text += multiply();
  text += "%outRow = arith.muli %sumRow, %c256 : i32\n"
          "%outColumn = arith.muli %t, %c4 : i32\n"
          "%outColumn2 = arith.muli %outColumn, %c2 : i32\n"
          "%out = arith.addi %outRow, %outColumn2 : i32\n"
          "%to = llvm.getelementptr %c[%out] : (!llvm.ptr<1>, i32) -> "
          "!llvm.ptr<1>, i8\n";
  std::string sums = wait ? "w" : "m" + std::to_string(kSteps - 1);
  for (unsigned i = 0; i < kSize / 2; ++i) {
    std::string s = std::to_string(i);
    unsigned offset = i / 4 * 32 + i % 4 / 2 * 8 * 256 + i % 2 * 4;
    text += "%to" + s + " = llvm.getelementptr %to[" + std::to_string(offset) +
            "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\nllvm.store %" + sums +
            "_" + s + ", %to" + s + " : f32, !llvm.ptr<1>\n";
  }
  return makeKernel("%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>",
                    text);
}

class WgmmaTest : public testing::Test {
protected:
  WgmmaTest() {
    product.form.columns = kSize;
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (auto *data : {&a, &b})
      for (unsigned i = 0; i < kSize * kSize; ++i)
        data->push_back(toBFloat16Bits(normal(random)));
  }

  Report launch() {
    c.assign(kSize * kSize, std::numeric_limits<float>::quiet_NaN());
    return run(product.getText(), {in(a), in(b), out(c)}, kWarpgroup,
               2 * kTileBytes);
  }

  float decode(uint16_t bits) const {
    return product.form.isBF16 ? fromBFloat16Bits(bits) : fromHalfBits(bits);
  }

  bool isRight() const {
    double worst = 0, largest = 0;
    for (unsigned i = 0; i < kSize; ++i)
      for (unsigned j = 0; j < kSize; ++j) {
        double sum = 0;
        for (unsigned k = 0; k < kSize; ++k)
          sum +=
              double(decode(a[i * kSize + k])) *
              decode(
                  b[product.form.transposedB ? k * kSize + j : j * kSize + k]);
        double difference = std::abs(c[i * kSize + j] - sum);
        worst = difference <= worst ? worst : difference; // NaN counts.
        largest = std::max(largest, std::abs(sum));
      }
    return worst <= 1e-6 * largest;
  }

  Product product;
  std::vector<uint16_t> a, b;
  std::vector<float> c;
};

TEST_F(WgmmaTest, AllFormsAreRight) {
  for (bool registersA : {false, true})
    for (bool transposedB : {false, true}) {
      product.form.registersA = registersA;
      product.form.transposedB = transposedB;
      Report report = launch();
      expectClean(report);
      EXPECT_TRUE(isRight()) << registersA << transposedB;
      EXPECT_EQ(report.traffic.getCyclesPerPhase(), 1.0);
    }
}

TEST_F(WgmmaTest, HalfPrecisionIsRight) {
  for (auto *data : {&a, &b})
    for (uint16_t &bits : *data)
      bits = toHalfBits(fromBFloat16Bits(bits));
  product.form.isBF16 = false;
  expectClean(launch());
  EXPECT_TRUE(isRight());
}

TEST_F(WgmmaTest, WritesNeedAFenceOfTheProxy) {
  product.proxyFence = false;
  Report report = launch();
  // The data may well be right.
  expectOnly(report, {Check::MissingFence});
  EXPECT_NE(report[Check::MissingFence].example.find("fence.proxy.async"),
            std::string::npos);
}

TEST_F(WgmmaTest, MissingBarrierIsARace) {
  product.barrier = false;
  EXPECT_GT(launch()[Check::SharedRace].count, 0u);
}

TEST_F(WgmmaTest, RegistersNeedAFence) {
  product.registerFence = false;
  Report report = launch();
  expectOnly(report, {Check::MissingFence});
  EXPECT_NE(report[Check::MissingFence].example.find("wgmma.fence"),
            std::string::npos);
}

TEST_F(WgmmaTest, SumsThatWereNotWaitedForAreFound) {
  product.wait = false;
  EXPECT_GT(launch()[Check::EarlyRead].count, 0u);
  EXPECT_FALSE(isRight());
}

TEST_F(WgmmaTest, WeakWaitIsFound) {
  product.pending = 1;
  EXPECT_GT(launch()[Check::EarlyRead].count, 0u);
  EXPECT_FALSE(isRight());
}

TEST_F(WgmmaTest, MissingCommitIsFound) {
  product.commit = false;
  EXPECT_GT(launch()[Check::EarlyRead].count, 0u);
  EXPECT_FALSE(isRight());
}

TEST_F(WgmmaTest, OperandsMustStayUntilTheWait) {
  product.overwrite = true;
  EXPECT_GT(launch()[Check::EarlyRead].count, 0u);
}

TEST_F(WgmmaTest, WrongLayoutsAreWrong) {
  product.permute = false;
  Report report = launch();
  expectClean(report);
  EXPECT_FALSE(isRight());
  for (uint64_t swizzle : {0, 2, 3}) {
    product = Product();
    product.form.columns = kSize;
    product.swizzle = swizzle;
    launch();
    EXPECT_FALSE(isRight()) << swizzle;
  }
  product = Product();
  product.form.columns = kSize;
  product.stride = 512;
  launch();
  EXPECT_FALSE(isRight());
}

TEST_F(WgmmaTest, LanesWithOtherDescriptorsDiverge) {
  product.added = "%half";
  EXPECT_GT(launch()[Check::Divergence].count, 0u);
}

TEST_F(WgmmaTest, WarpsOfAGroupMustDoTheSame) {
  product.moreInFirstWarp = true;
  Report report = launch();
  expectOnly(report, {Check::Divergence});
  EXPECT_TRUE(isRight());
}

TEST(WgmmaFormTest, KnowsItsOwnAssemblyOnly) {
  WgmmaForm form;
  form.columns = 16;
  form.registersA = form.transposedB = form.accumulates = true;
  std::string text = form.getAssembly();
  EXPECT_EQ(text, "{ .reg .pred accumulates; setp.ne.b32 accumulates, 1, 0; "
                  "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                  "{$0, $1, $2, $3, $4, $5, $6, $7}, {$8, $9, $10, $11}, $12, "
                  "accumulates, 1, 1, 1; }");
  auto parsed = WgmmaForm::parse(text);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->getAssembly(), text);
  text.replace(text.find(", 1, 1, 1;"), 10, ", -1, 1, 1;");
  EXPECT_FALSE(WgmmaForm::parse(text));
  EXPECT_FALSE(WgmmaForm::parse("wgmma.mma_async.sync.aligned.m64n12k16"));
  EXPECT_EQ(parseWgmmaWait("wgmma.wait_group.sync.aligned 2;"), 2u);
  EXPECT_FALSE(parseWgmmaWait("wgmma.wait_group.sync.aligned x;"));
}

} // namespace
