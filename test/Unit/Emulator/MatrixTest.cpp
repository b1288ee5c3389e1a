//===- MatrixTest.cpp - Fragments of matrices -----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatorTestUtils.h"

#include <cmath>
#include <limits>

using namespace linattn;
using namespace linattn::emulator;
using namespace linattn::emulator::test;

namespace {

//===----------------------------------------------------------------------===//
// mma: element i of a lane's fragment, as the tables of the PTX ISA have it
//===----------------------------------------------------------------------===//

struct Place {
  unsigned row, column;
};

struct Kind {
  const char *name;
  unsigned k;
  unsigned elementsOfA, elementsOfB; ///< Of a lane.
  unsigned perWord;
  Place (*placeOfA)(unsigned lane, unsigned i);
  Place (*placeOfB)(unsigned lane, unsigned i);
  double tolerance;
};

const Kind kKinds[] = {
    {"bf16", 16, 8, 4, 2,
     [](unsigned lane, unsigned i) {
       bool upper = (i < 2) || (i >= 4 && i < 6);
       return Place{lane / 4 + (upper ? 0 : 8),
                    lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
     },
     [](unsigned lane, unsigned i) {
       return Place{lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), lane / 4};
     },
     1e-6},
    {"f16", 16, 8, 4, 2, nullptr, nullptr, 1e-6}, // As bf16.
    {"bf16", 8, 4, 2, 2,
     [](unsigned lane, unsigned i) {
       return Place{lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
     },
     [](unsigned lane, unsigned i) {
       return Place{lane % 4 * 2 + i, lane / 4};
     },
     1e-6},
    {"tf32", 8, 4, 2, 1,
     [](unsigned lane, unsigned i) {
       return Place{lane / 4 + (i == 0 || i == 2 ? 0 : 8),
                    lane % 4 + (i <= 1 ? 0 : 4)};
     },
     [](unsigned lane, unsigned i) {
       return Place{lane % 4 + (i == 0 ? 0 : 4), lane / 4};
     },
     // Not rounded by the kernel: the units cut 13 bits off.
     2e-3},
    {"tf32", 4, 2, 1, 1,
     [](unsigned lane, unsigned i) {
       return Place{lane / 4 + (i == 0 ? 0 : 8), lane % 4};
     },
     [](unsigned lane, unsigned) { return Place{lane % 4, lane / 4}; }, 2e-3},
};

Place placeOfC(unsigned lane, unsigned i) {
  return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)};
}

/// A kernel that loads fragments of 32-bit words, multiplies, and stores.
std::string makeMmaKernel(const Kind &kind) {
  unsigned wordsOfA = kind.elementsOfA / kind.perWord;
  unsigned wordsOfB = kind.elementsOfB / kind.perWord;
  bool half = std::string(kind.name) == "f16";
  std::string body = "%lane = nvvm.read.ptx.sreg.laneid : i32\n";
  std::string operands[3];
  auto load = [&](unsigned which, const char *pointer, unsigned words,
                  const char *type) {
    std::string p = pointer;
    body += "%n" + p + " = arith.constant " + std::to_string(words) +
            " : i32\n%f" + p + " = arith.muli %lane, %n" + p + " : i32\n%p" +
            p + " = llvm.getelementptr %" + p + "[%f" + p +
            "] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n";
    for (unsigned i = 0; i < words; ++i) {
      std::string n = p + std::to_string(i);
      body += "%q" + n + " = llvm.getelementptr %p" + p + "[" +
              std::to_string(i) + "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n";
      body += "%v" + n + " = llvm.load %q" + n + " : !llvm.ptr<1> -> " + type +
              "\n";
      operands[which] += (i ? ", %v" : "%v") + n;
    }
  };
  const char *type = half ? "vector<2xf16>" : "i32";
  load(0, "a", wordsOfA, type);
  load(1, "b", wordsOfB, type);
  load(2, "c", 4, "f32");
  body +=
      "%d = nvvm.mma.sync A[" + operands[0] + "] B[" + operands[1] + "] C[" +
      operands[2] +
      "] {layoutA = #nvvm.mma_layout<row>, layoutB = "
      "#nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<" +
      kind.name + ">, multiplicandBPtxType = #nvvm.mma_type<" + kind.name +
      ">, shape = #nvvm.shape<m = 16, n = 8, k = " + std::to_string(kind.k) +
      ">} : (" + type + ", " + type +
      ", f32) -> !llvm.struct<(f32, f32, f32, f32)>\n";
  for (unsigned i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    body += "%r" + n + " = llvm.extractvalue %d[" + n +
            "] : !llvm.struct<(f32, f32, f32, f32)>\n";
    body += "llvm.store %r" + n + ", %qc" + n + " : f32, !llvm.ptr<1>\n";
  }
  return makeKernel("%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>",
                    body);
}

class MmaTest : public testing::TestWithParam<unsigned> {};

TEST_P(MmaTest, AgreesWithMatmul) {
  Kind kind = kKinds[GetParam()];
  if (!kind.placeOfA) {
    kind.placeOfA = kKinds[0].placeOfA;
    kind.placeOfB = kKinds[0].placeOfB;
  }
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  double a[16][16], b[16][8], c[16][8];
  // The elements as the formats hold them, and their bits.
  auto encode = [&](double &value) -> uint32_t {
    value = normal(random);
    if (kind.perWord == 1) {
      value = static_cast<float>(value);
      return llvm::bit_cast<uint32_t>(static_cast<float>(value));
    }
    bool half = std::string(kind.name) == "f16";
    uint16_t bits = half ? toHalfBits(value) : toBFloat16Bits(value);
    value = half ? fromHalfBits(bits) : fromBFloat16Bits(bits);
    return bits;
  };
  unsigned wordsOfA = kind.elementsOfA / kind.perWord;
  unsigned wordsOfB = kind.elementsOfB / kind.perWord;
  std::vector<uint32_t> fragA(32 * wordsOfA), fragB(32 * wordsOfB);
  std::vector<float> fragC(32 * 4);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < kind.elementsOfA; ++i) {
      Place p = kind.placeOfA(lane, i);
      fragA[lane * wordsOfA + i / kind.perWord] |= encode(a[p.row][p.column])
                                                   << (16 * (i % kind.perWord));
    }
    for (unsigned i = 0; i < kind.elementsOfB; ++i) {
      Place p = kind.placeOfB(lane, i);
      fragB[lane * wordsOfB + i / kind.perWord] |= encode(b[p.row][p.column])
                                                   << (16 * (i % kind.perWord));
    }
    for (unsigned i = 0; i < 4; ++i) {
      Place p = placeOfC(lane, i);
      c[p.row][p.column] = fragC[4 * lane + i] = float(normal(random));
    }
  }
  Report report = run(makeMmaKernel(kind), {in(fragA), in(fragB), out(fragC)});
  expectClean(report);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      Place p = placeOfC(lane, i);
      double expected = c[p.row][p.column];
      for (unsigned k = 0; k < kind.k; ++k)
        expected += a[p.row][k] * b[k][p.column];
      EXPECT_NEAR(fragC[4 * lane + i], expected, kind.tolerance * 8)
          << "row " << p.row << " column " << p.column;
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MmaTest, testing::Range(0u, 5u));

TEST(MmaTest, TF32DropsThirteenBits) {
  // One product: 1 times the smallest number above 1 that tf32 cannot hold.
  std::vector<uint32_t> a(32 * 4), b(32 * 2);
  a[0] = 0x3f800000;
  b[0] = 0x3f801fff;
  std::vector<float> c(32 * 4);
  run(makeMmaKernel(kKinds[3]), {in(a), in(b), out(c)});
  EXPECT_EQ(c[0], 1.0f);
}

TEST(MmaTest, SumsAreCutOff) {
  const uint32_t threeQuarters = 0x3f40, power = 0x3400; // 2^-23
  std::vector<uint32_t> a(32 * 4), b(32 * 2);
  std::vector<float> c(32 * 4);
  // Lane 0 has columns 0 and 1 of row 0 of A; column n of B is lane 4 n's.
  a[0] = threeQuarters | threeQuarters << 16;
  b[0] = b[2 * 4] = power;
  b[4 * 4] = power | power << 16;
  c[0] = 1;  // 1 + 0.75 units
  c[1] = -1; // -1 + 0.75 units
  c[4] = 1;  // 1 + 2 · 0.75 units, of each of which half a unit remains
  run(makeMmaKernel(kKinds[0]), {in(a), in(b), out(c)});
  const float unit = 0x1p-23f;
  EXPECT_EQ(c[0], 1.0f);
  EXPECT_EQ(c[1], -1.0f + unit / 2);
  EXPECT_EQ(c[4], 1.0f + unit);
}

TEST(MmaTest, SumsOfInfinitiesAndTinyNumbers) {
  const uint32_t one = 0x3f80, infinity = 0x7f80;
  std::vector<uint32_t> a(32 * 4), b(32 * 2);
  std::vector<float> c(32 * 4);
  a[0] = one;
  b[0] = infinity;
  b[2 * 4] = 0x0100; // 2^-125
  c[1] = 0x1p-125f;
  c[4] = 0x1p127f; // The largest power, alone.
  run(makeMmaKernel(kKinds[0]), {in(a), in(b), out(c)});
  EXPECT_EQ(c[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ(c[1], 0x1p-124f);
  EXPECT_EQ(c[4], 0x1p127f);
}

//===----------------------------------------------------------------------===//
// ldmatrix, stmatrix
//===----------------------------------------------------------------------===//

constexpr const char *kShape =
    "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = "
    "#nvvm.ld_st_matrix_elt_type<b16>";

/// Each lane copies 16 bytes of in to its row in shared memory, whose rows are
/// `stride` bytes apart, loads the matrices, and stores its words.
std::string makeLoadKernel(unsigned num, bool transposed, unsigned stride) {
  std::string type = num == 1   ? "i32"
                     : num == 2 ? "!llvm.struct<(i32, i32)>"
                                : "!llvm.struct<(i32, i32, i32, i32)>";
  std::string n = std::to_string(num);
  std::string body = R"(
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %c4 = arith.constant 4 : i32
    %c16 = arith.constant 16 : i32
    %stride = arith.constant )" +
                     std::to_string(stride) + R"( : i32
    %shared = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %from = arith.muli %lane, %c16 : i32
    %pfrom = llvm.getelementptr %in[%from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %row = llvm.load %pfrom : !llvm.ptr<1> -> vector<4xi32>
    %to = arith.muli %lane, %stride : i32
    %pto = llvm.getelementptr %shared[%to] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    llvm.store %row, %pto : vector<4xi32>, !llvm.ptr<3>
    %all = arith.constant -1 : i32
    nvvm.bar.warp.sync %all : i32
    %d = nvvm.ldmatrix %pto {num = )" +
                     n + " : i32, layout = #nvvm.mma_layout<" +
                     (transposed ? "col" : "row") + ">, " + kShape +
                     "} : (!llvm.ptr<3>) -> " + type + R"(
    %first = arith.muli %lane, %c4 : i32
    %pout = llvm.getelementptr %out[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  )";
  for (unsigned i = 0; i < num; ++i) {
    std::string s = std::to_string(i);
    std::string value = "%d";
    if (num > 1) {
      value = "%w" + s;
      body += value + " = llvm.extractvalue %d[" + s + "] : " + type + "\n";
    }
    body += "%p" + s + " = llvm.getelementptr %pout[" + s +
            "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n";
    body += "llvm.store " + value + ", %p" + s + " : i32, !llvm.ptr<1>\n";
  }
  return makeKernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", body);
}

TEST(LdMatrixTest, GivesEveryLaneItsPair) {
  std::vector<uint16_t> input(32 * 8);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = 1000 + i;
  for (unsigned num : {1, 2, 4})
    for (bool transposed : {false, true}) {
      std::vector<uint32_t> output(32 * 4, 0);
      Report report = run(makeLoadKernel(num, transposed, 16),
                          {in(input), out(output)}, 32, 512);
      expectClean(report);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned m = 0; m < num; ++m)
          for (unsigned half = 0; half < 2; ++half) {
            unsigned row = lane / 4, column = lane % 4 * 2 + half;
            if (transposed)
              std::swap(row, column);
            EXPECT_EQ(output[4 * lane + m] >> (16 * half) & 0xffff,
                      input[(8 * m + row) * 8 + column])
                << num << " " << transposed << " lane " << lane;
          }
    }
}

TEST(LdMatrixTest, CountsBankConflicts) {
  std::vector<uint16_t> input(32 * 8);
  std::vector<uint32_t> output(32 * 4);
  // Rows every 128 bytes all begin in bank 0, every 144 bytes one after
  // another.
  for (auto [stride, cycles] : {std::pair(128, 8.0), {144, 1.0}, {64, 4.0}}) {
    Report report = run(makeLoadKernel(4, false, stride),
                        {in(input), out(output)}, 32, 8192);
    expectClean(report);
    for (const SiteTraffic &site : report.sites)
      if (llvm::StringRef(site.location).starts_with("nvvm.ldmatrix")) {
        EXPECT_EQ(site.traffic.sharedPhases, 4u);
        EXPECT_EQ(site.traffic.getCyclesPerPhase(), cycles) << stride;
      }
  }
}

TEST(StMatrixTest, IsTheInverseOfLdMatrix) {
  for (bool transposed : {false, true}) {
    std::string layout = transposed ? "col" : "row";
    std::vector<uint32_t> input(32 * 4), output(32 * 4);
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = 0x01000200 + 3 * i;
    std::string body =
        R"(
      %lane = nvvm.read.ptx.sreg.laneid : i32
      %c16 = arith.constant 16 : i32
      %shared = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
      %bytes = arith.muli %lane, %c16 : i32
      %pin = llvm.getelementptr %in[%bytes] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      %v = llvm.load %pin : !llvm.ptr<1> -> vector<4xi32>
      %v0 = vector.extract %v[0] : i32 from vector<4xi32>
      %v1 = vector.extract %v[1] : i32 from vector<4xi32>
      %v2 = vector.extract %v[2] : i32 from vector<4xi32>
      %v3 = vector.extract %v[3] : i32 from vector<4xi32>
      %row = llvm.getelementptr %shared[%bytes] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
      nvvm.stmatrix %row, %v0, %v1, %v2, %v3 {layout = #nvvm.mma_layout<)" +
        layout + ">, " + kShape + R"(} : !llvm.ptr<3>, i32, i32, i32, i32
      %all = arith.constant -1 : i32
      nvvm.bar.warp.sync %all : i32
      %d = nvvm.ldmatrix %row {num = 4 : i32, layout = #nvvm.mma_layout<)" +
        layout + ">, " + kShape +
        R"(} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
      %w0 = llvm.extractvalue %d[0] : !llvm.struct<(i32, i32, i32, i32)>
      %w1 = llvm.extractvalue %d[1] : !llvm.struct<(i32, i32, i32, i32)>
      %w2 = llvm.extractvalue %d[2] : !llvm.struct<(i32, i32, i32, i32)>
      %w3 = llvm.extractvalue %d[3] : !llvm.struct<(i32, i32, i32, i32)>
      %w = vector.from_elements %w0, %w1, %w2, %w3 : vector<4xi32>
      %pout = llvm.getelementptr %out[%bytes] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
      llvm.store %w, %pout : vector<4xi32>, !llvm.ptr<1>
    )";
    Report report =
        run(makeKernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", body),
            {in(input), out(output)}, 32, 512);
    expectClean(report);
    EXPECT_EQ(output, input);
  }
}

TEST(LdMatrixTest, NeedsAWholeWarp) {
  std::vector<uint16_t> input(32 * 8);
  std::vector<uint32_t> output(32 * 4);
  Report report = run(makeLoadKernel(4, false, 16), {in(input), out(output)},
                      /*threads=*/24, 512);
  EXPECT_GT(report[Check::Divergence].count, 0u);
  EXPECT_FALSE(report.finished);
}

} // namespace
