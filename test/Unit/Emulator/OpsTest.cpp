//===- OpsTest.cpp - Operations of threads and warps ----------------------===//
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

/// `body` computes %value : i32 in thread %tid, which is stored in out[%tid].
std::string makeMap(llvm::StringRef body, llvm::StringRef globals = "") {
  return makeKernel(
      "%out: !llvm.ptr<1>, %in: !llvm.ptr<1>",
      ("%tid = nvvm.read.ptx.sreg.tid.x : i32\n"
       "%pin = llvm.getelementptr %in[%tid] : (!llvm.ptr<1>, i32) -> "
       "!llvm.ptr<1>, i32\n"
       "%x = llvm.load %pin : !llvm.ptr<1> -> i32\n" +
       body +
       "\n%pout = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> "
       "!llvm.ptr<1>, i32\n"
       "llvm.store %value, %pout : i32, !llvm.ptr<1>\n")
          .str(),
      globals);
}

std::vector<uint32_t> mapLanes(llvm::StringRef body,
                               std::vector<uint32_t> input,
                               llvm::StringRef globals = "") {
  std::vector<uint32_t> output(input.size(), 0xdeadbeef);
  Report report = run(makeMap(body, globals), {out(output), in(input)},
                      input.size(), 16384);
  expectClean(report);
  return output;
}

std::vector<uint32_t> iota(unsigned size, uint32_t first = 0) {
  std::vector<uint32_t> values(size);
  for (unsigned i = 0; i < size; ++i)
    values[i] = first + i;
  return values;
}

// Their product is 2^64 + 4.
TEST(OpsTest, BoundsOfThreadsThatOverflow) {
  std::string text = makeKernel("%out: !llvm.ptr", "");
  size_t attributes = text.find("nvvm.kernel");
  text.insert(attributes,
              "nvvm.maxntid = array<i32: 769546, 494770, 48448661>, ");
  EXPECT_EQ(compile(text).getMaxThreads(),
            static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
}

TEST(OpsTest, SpecialRegisters) {
  std::vector<uint32_t> output(2 * 3 * 64 * 4);
  std::string text = makeKernel("%out: !llvm.ptr", R"(
    %tx = nvvm.read.ptx.sreg.tid.x : i32
    %ty = nvvm.read.ptx.sreg.tid.y : i32
    %nx = nvvm.read.ptx.sreg.ntid.x : i32
    %ny = nvvm.read.ptx.sreg.ntid.y : i32
    %bx = nvvm.read.ptx.sreg.ctaid.x : i32
    %by = nvvm.read.ptx.sreg.ctaid.y : i32
    %gx = nvvm.read.ptx.sreg.nctaid.x : i32
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %warp = nvvm.read.ptx.sreg.warpid : i32
    %c4 = arith.constant 4 : i32
    %row = arith.muli %by, %gx : i32
    %block = arith.addi %row, %bx : i32
    %size = arith.muli %nx, %ny : i32
    %first = arith.muli %block, %size : i32
    %line = arith.muli %ty, %nx : i32
    %t0 = arith.addi %line, %tx : i32
    %thread = arith.addi %first, %t0 : i32
    %word = arith.muli %thread, %c4 : i32
    %p = llvm.getelementptr %out[%word] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %v = vector.from_elements %thread, %lane, %warp, %by : vector<4xi32>
    llvm.store %v, %p : vector<4xi32>, !llvm.ptr
  )");
  LaunchOptions options;
  options.grid = {2, 3, 1};
  options.block = {16, 4, 1};
  Report report = llvm::cantFail(compile(text).launch({out(output)}, options));
  expectClean(report);
  for (uint32_t i = 0; i < 6 * 64; ++i) {
    EXPECT_EQ(output[4 * i], i);
    EXPECT_EQ(output[4 * i + 1], i % 32);
    EXPECT_EQ(output[4 * i + 2], i % 64 / 32);
    EXPECT_EQ(output[4 * i + 3], i / 128);
  }
}

struct Shuffle {
  const char *kind;
  uint32_t offset, clamp;
  unsigned (*source)(unsigned lane);
};

TEST(OpsTest, Shuffles) {
  const Shuffle shuffles[] = {
      {"bfly", 5, 31, [](unsigned l) { return l ^ 5; }},
      {"up", 3, 0, [](unsigned l) { return l < 3 ? l : l - 3; }},
      {"down", 3, 31, [](unsigned l) { return l > 28 ? l : l + 3; }},
      {"idx", 7, 31, [](unsigned) { return 7u; }},
      // Segments of eight lanes: mask 24 in the upper half.
      {"idx", 2, 24 << 8 | 31, [](unsigned l) { return l / 8 * 8 + 2; }},
      {"down", 6, 24 << 8 | 31,
       [](unsigned l) { return l % 8 > 1 ? l : l + 6; }},
      {"up", 6, 24 << 8, [](unsigned l) { return l % 8 < 6 ? l : l - 6; }},
  };
  for (const Shuffle &shuffle : shuffles) {
    std::string body =
        "%all = arith.constant -1 : i32\n"
        "%o = arith.constant " +
        std::to_string(shuffle.offset) + " : i32\n%c = arith.constant " +
        std::to_string(shuffle.clamp) + " : i32\n%value = nvvm.shfl.sync " +
        shuffle.kind + " %all, %x, %o, %c : i32 -> i32";
    std::vector<uint32_t> output = mapLanes(body, iota(32, 100));
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(output[lane], 100 + shuffle.source(lane))
          << shuffle.kind << " " << shuffle.offset << " lane " << lane;
  }
}

TEST(OpsTest, ShuffleReturnsWhetherItIsInRange) {
  std::vector<uint32_t> output = mapLanes(R"(
    %all = arith.constant -1 : i32
    %o = arith.constant 16 : i32
    %c = arith.constant 31 : i32
    %r = nvvm.shfl.sync down %all, %x, %o, %c {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
    %valid = llvm.extractvalue %r[1] : !llvm.struct<(i32, i1)>
    %value = arith.extui %valid : i1 to i32
  )",
                                          iota(32));
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(output[lane], lane < 16);
}

TEST(OpsTest, HalvesOfAWarpMayDiffer) {
  // Each half shuffles under its own mask, in code of its own.
  std::vector<uint32_t> output = mapLanes(R"(
    %c16 = arith.constant 16 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c31 = arith.constant 31 : i32
    %lowMask = arith.constant 65535 : i32
    %highMask = arith.constant -65536 : i32
    %low = arith.cmpi ult, %tid, %c16 : i32
    %value = scf.if %low -> i32 {
      %a = nvvm.shfl.sync bfly %lowMask, %x, %c1, %c31 : i32 -> i32
      scf.yield %a : i32
    } else {
      %b = nvvm.shfl.sync bfly %highMask, %x, %c2, %c31 : i32 -> i32
      scf.yield %b : i32
    }
  )",
                                          iota(32));
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(output[lane], lane < 16 ? lane ^ 1 : lane ^ 2);
}

TEST(OpsTest, VotesAndReductions) {
  std::vector<uint32_t> input = iota(32, 5);
  std::string prefix = R"(
    %all = arith.constant -1 : i32
    %c1 = arith.constant 1 : i32
    %bit = arith.andi %x, %c1 : i32
    %odd = arith.trunci %bit : i32 to i1
  )";
  EXPECT_EQ(
      mapLanes(prefix + "%value = nvvm.vote.sync ballot %all, %odd -> i32",
               input),
      std::vector<uint32_t>(32, 0x55555555));
  EXPECT_EQ(mapLanes(prefix + "%any = nvvm.vote.sync any %all, %odd -> i1\n"
                              "%value = arith.extui %any : i1 to i32",
                     input),
            std::vector<uint32_t>(32, 1));
  EXPECT_EQ(mapLanes(prefix + "%every = nvvm.vote.sync all %all, %odd -> i1\n"
                              "%value = arith.extui %every : i1 to i32",
                     input),
            std::vector<uint32_t>(32, 0));
  EXPECT_EQ(
      mapLanes(prefix + "%value = nvvm.redux.sync add %x, %all : i32 -> i32",
               input),
      std::vector<uint32_t>(32, 5 * 32 + 31 * 16));
  EXPECT_EQ(
      mapLanes(prefix + "%value = nvvm.redux.sync umax %x, %all : i32 -> i32",
               input),
      std::vector<uint32_t>(32, 36));
  std::vector<uint32_t> leader(32, 0);
  leader[0] = 1;
  EXPECT_EQ(mapLanes("%e = nvvm.elect.sync -> i1\n"
                     "%value = arith.extui %e : i1 to i32",
                     input),
            leader);
}

TEST(OpsTest, StaticSharedMemoryAndBarrier) {
  // Reversed through shared memory of two kinds.
  std::vector<uint32_t> output = mapLanes(R"(
    %c63 = arith.constant 63 : i32
    %static = llvm.mlir.addressof @buffer : !llvm.ptr<3>
    %dynamic = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %s = llvm.getelementptr %static[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %d = llvm.getelementptr %dynamic[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %x, %s : i32, !llvm.ptr<3>
    nvvm.barrier0
    %other = arith.xori %tid, %c63 : i32
    %so = llvm.getelementptr %static[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %y = llvm.load %so : !llvm.ptr<3> -> i32
    llvm.store %y, %d : i32, !llvm.ptr<3>
    nvvm.barrier
    %value = llvm.load %d : !llvm.ptr<3> -> i32
  )",
                                          iota(64, 7),
                                          "llvm.mlir.global internal @buffer() "
                                          "{addr_space = 3 : i32} : "
                                          "!llvm.array<64 x i32>");
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(output[i], 7 + 63 - i);
}

TEST(OpsTest, SharedPointersAreNumbersOf32Bits) {
  std::vector<uint32_t> output = mapLanes(R"(
    %c2 = arith.constant 2 : i32
    %c124 = arith.constant 124 : i32
    %dynamic = llvm.mlir.addressof @linattn_shared : !llvm.ptr<3>
    %base = llvm.ptrtoint %dynamic : !llvm.ptr<3> to i32
    %bytes = arith.shli %tid, %c2 : i32
    %flipped = arith.xori %bytes, %c124 : i32
    %sum = arith.addi %base, %flipped : i32
    %p = llvm.inttoptr %sum : i32 to !llvm.ptr<3>
    llvm.store %x, %p : i32, !llvm.ptr<3>
    nvvm.barrier0
    %q = llvm.getelementptr %dynamic[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %value = llvm.load %q : !llvm.ptr<3> -> i32
  )",
                                          iota(32));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(output[i], 31 - i);
}

TEST(OpsTest, AtomicsAddUp) {
  std::vector<uint32_t> sum(1, 0);
  Report report = run(makeKernel("%out: !llvm.ptr<1>", R"(
    %c1 = arith.constant 1 : i32
    %old = llvm.atomicrmw add %out, %c1 monotonic : !llvm.ptr<1>, i32
  )"),
                      {out(sum)}, 96, 0, /*blocks=*/5);
  expectClean(report);
  EXPECT_EQ(sum[0], 96u * 5);
}

TEST(OpsTest, Approximations) {
  auto bits = [](float x) { return llvm::bit_cast<uint32_t>(x); };
  struct Case {
    const char *op;
    float (*function)(float);
  };
  const Case cases[] = {
      {"llvm.call_intrinsic \"llvm.nvvm.ex2.approx.ftz.f\"(%f) : (f32) -> f32",
       [](float x) { return std::exp2(x); }},
      {"nvvm.inline_ptx \"ex2.approx.ftz.f32 $0, $1;\" ro(%f : f32) -> f32",
       [](float x) { return std::exp2(x); }},
      {"llvm.call_intrinsic \"llvm.nvvm.lg2.approx.ftz.f\"(%f) : (f32) -> f32",
       [](float x) { return std::log2(x); }},
      {"nvvm.rcp.approx.ftz.f %f : f32", [](float x) { return 1 / x; }},
      {"llvm.call_intrinsic \"llvm.nvvm.rsqrt.approx.ftz.f\"(%f) : (f32) -> "
       "f32",
       [](float x) { return 1 / std::sqrt(x); }},
      {"nvvm.inline_ptx \"tanh.approx.f32 $0, $1;\" ro(%f : f32) -> f32",
       [](float x) { return std::tanh(x); }},
  };
  std::vector<uint32_t> input;
  for (unsigned i = 0; i < 32; ++i)
    input.push_back(bits(0.125f * (i + 1)));
  for (const Case &test : cases) {
    std::vector<uint32_t> output = mapLanes(
        "%f = llvm.bitcast %x : i32 to f32\n%r = " + std::string(test.op) +
            "\n%value = llvm.bitcast %r : f32 to i32",
        input);
    for (unsigned i = 0; i < 32; ++i)
      EXPECT_FLOAT_EQ(llvm::bit_cast<float>(output[i]),
                      test.function(0.125f * (i + 1)))
          << test.op;
  }
}

TEST(OpsTest, RoundsToBF16AndTF32) {
  std::vector<uint32_t> input = {0x3f808000, 0x3f818000, 0x3f818001,
                                 0x7f800000, 0x7fc00000, 0x00008001,
                                 0xbf80c000, 0x3f801000};
  input.resize(32, 0x3f801000);
  std::vector<uint32_t> narrow = mapLanes(R"(
    %f = llvm.bitcast %x : i32 to f32
    %v = vector.from_elements %f, %f : vector<2xf32>
    %t = arith.truncf %v : vector<2xf32> to vector<2xbf16>
    %value = llvm.bitcast %t : vector<2xbf16> to i32
  )",
                                          input);
  for (unsigned i = 0; i < 32; ++i) {
    uint32_t expected = toBFloat16Bits(llvm::bit_cast<float>(input[i]));
    EXPECT_EQ(narrow[i], expected << 16 | expected) << i;
  }
  std::vector<uint32_t> tf32 = mapLanes(R"(
    %f = llvm.bitcast %x : i32 to f32
    %value = nvvm.convert.float.to.tf32 %f {rnd = #nvvm.fp_rnd_mode<rna>}
  )",
                                        input);
  EXPECT_EQ(tf32[0], 0x3f808000u);
  EXPECT_EQ(tf32[7], 0x3f802000u); // A tie, away from zero.
  EXPECT_EQ(tf32[3], 0x7f800000u);
}

TEST(OpsTest, KernelsOnMemrefs) {
  // As the plain route through gpu.launch leaves them.
  std::string text = R"(
    gpu.module @m {
      gpu.func @k(%a: memref<64xf32>, %b: memref<64xf32>) workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
        %t = gpu.thread_id x
        %c63 = arith.constant 63 : index
        %x = memref.load %a[%t] : memref<64xf32>
        memref.store %x, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
        gpu.barrier
        %r = arith.subi %c63, %t : index
        %y = memref.load %s[%r] : memref<64xf32, #gpu.address_space<workgroup>>
        %w = arith.constant 32 : i32
        %o = arith.constant 1 : i32
        %z, %valid = gpu.shuffle xor %y, %o, %w : f32
        %e = math.exp %z : f32
        memref.store %e, %b[%t] : memref<64xf32>
        gpu.return
      }
    }
  )";
  std::vector<float> a(64), b(64);
  for (unsigned i = 0; i < 64; ++i)
    a[i] = 0.01f * i;
  auto memref = [](std::vector<float> &data) {
    return std::vector<Argument>{out(data), out(data), Argument::i64(0),
                                 Argument::i64(64), Argument::i64(1)};
  };
  std::vector<Argument> arguments = memref(a);
  llvm::append_range(arguments, memref(b));
  expectClean(run(text, arguments, 64));
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_FLOAT_EQ(b[i], std::exp(0.01f * ((63 - i) ^ 1)));
}

TEST(OpsTest, NamesOpsThatItCannotExecute) {
  auto expectError = [](llvm::StringRef body, llvm::StringRef message) {
    std::string error = getCompileError(makeKernel("%p: !llvm.ptr<1>", body));
    EXPECT_NE(error.find(message.str()), std::string::npos) << error;
    EXPECT_NE(error.find("kernel.mlir:5:"), std::string::npos) << error;
  };
  expectError("nvvm.cluster.arrive",
              "the emulator cannot execute this operation");
  expectError("nvvm.read.ptx.sreg.clock : i32",
              "the emulator cannot execute the special register clock");
  expectError("nvvm.inline_ptx \"trap;\"",
              "the emulator cannot execute the assembly 'trap;'");
}

TEST(OpsTest, ChecksTheLaunch) {
  EmulatedKernel kernel = compile(makeMap("%value = arith.addi %x, %x : i32"));
  std::vector<uint32_t> data(32);
  LaunchOptions options;
  options.block.x = 32;
  auto getError = [&](std::vector<Argument> arguments) {
    auto report = kernel.launch(arguments, options);
    return report ? "no error" : llvm::toString(report.takeError());
  };
  EXPECT_EQ(getError({out(data)}), "expected 2 arguments of 'k', but got 1");
  EXPECT_EQ(getError({out(data), Argument::i32(3)}),
            "expected argument 1 of 'k' to be a buffer, but got i32");
  options.block.x = 2048;
  EXPECT_EQ(getError({out(data), in(data)}),
            "expected 1 to 1024 threads per block, but got 2048");
}

} // namespace
