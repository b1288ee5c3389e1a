//===- SupportTest.cpp - Files, elements and overlaps ---------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Compiler/ViewChecks.h"
#include "CompilerTestUtils.h"
#include "linattn/Peak/FmaPeak.h"
#include "linattn/Support/Elements.h"
#include "linattn/Support/LargeMemory.h"
#include "linattn/Support/Npy.h"
#include "linattn/Support/Sizes.h"
#include <cmath>
#include <limits>
#include <thread>

using namespace linattn;
using namespace linattn::test;

namespace {

//===----------------------------------------------------------------------===//
// .npy files
//===----------------------------------------------------------------------===//

/// A file of version 1 with the given header and bytes.
std::string makeNpy(const std::string &header, size_t bytes) {
  std::string text = "\x93NUMPY";
  text += '\x01';
  text += '\x00';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  return text + header + std::string(bytes, '\0');
}

std::string getNpyError(llvm::StringRef bytes) {
  auto array = parseNpy(bytes, "x.npy");
  return array ? "no error" : llvm::toString(array.takeError());
}

TEST(Npy, RoundTrip) {
  TemporaryDirectory directory;
  for (DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64,
                      DType::I1, DType::I8, DType::I16, DType::I32, DType::I64})
    for (llvm::SmallVector<int64_t> shape :
         {llvm::SmallVector<int64_t>{}, {3}, {2, 5}, {0, 4}, {2, 1, 3, 4}}) {
      BufferView shaped(static_cast<void *>(nullptr), dtype, shape);
      std::vector<char> data(shaped.getNumElements() * getByteSize(dtype));
      fillRandom(dtype, data.data(), shaped.getNumElements(), 7, 0);
      std::string path = directory / "x.npy";
      ASSERT_EQ(llvm::toString(writeNpy(path, dtype, shape, data.data())), "");
      NpyArray array = llvm::cantFail(readNpy(path));
      EXPECT_EQ(array.dtype, dtype);
      EXPECT_EQ(array.shape, shaped.shape);
      EXPECT_EQ(array.strides, shaped.strides);
      EXPECT_EQ(array.data, data);
    }
}

TEST(Npy, FortranOrder) {
  NpyArray array = llvm::cantFail(parseNpy(
      makeNpy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24),
      "x.npy"));
  EXPECT_EQ(array.strides, (llvm::SmallVector<int64_t, 4>{1, 2}));
}

TEST(Npy, Errors) {
  EXPECT_EQ(getNpyError(""), "x.npy: byte 0: error: expected a .npy file");
  EXPECT_EQ(getNpyError("PK\x03\x04 and so on"),
            "x.npy: byte 0: error: expected a .npy file");
  EXPECT_EQ(getNpyError(llvm::StringRef("\x93NUMPY\x09\x00\x00\x00", 10)),
            "x.npy: byte 0: error: expected format version 1, 2 or 3, but got "
            "9");
  EXPECT_EQ(getNpyError(makeNpy("{'descr': '>f4', 'fortran_order': False, "
                                "'shape': (1,), }",
                                4)),
            "x.npy: byte 21: error: expected little-endian elements, but got "
            "'>f4'");
  EXPECT_EQ(getNpyError(makeNpy("{'descr': '<c8', 'fortran_order': False, "
                                "'shape': (1,), }",
                                8)),
            "x.npy: byte 21: error: expected elements of type f2, f4, f8, b1, "
            "i1, i2, i4, i8, u2 or V2, but got '<c8'");
  EXPECT_EQ(getNpyError(makeNpy("{'descr': [('a', '<f4')], }", 4)),
            "x.npy: byte 20: error: expected a type of one element, not a "
            "structure");
  EXPECT_EQ(getNpyError(makeNpy("{'descr': '<f4', 'fortran_order': False, "
                                "'shape': (-1,), }",
                                4)),
            "x.npy: byte 61: error: expected an extent");
  EXPECT_EQ(getNpyError(makeNpy("{'descr': '<f4', 'fortran_order': False, "
                                "'shape': (2,), }",
                                4)),
            "x.npy: byte 67: error: expected 8 bytes of elements, but got 4");
  // 2^64 bytes are not none.
  EXPECT_EQ(getNpyError(makeNpy("{'descr': '<f4', 'fortran_order': False, "
                                "'shape': (2147483648, 2147483648), }",
                                0)),
            "x.npy: byte 87: error: expected more bytes of elements, but got "
            "0");
  EXPECT_EQ(getNpyError(makeNpy("{'descr': '<f4', 'shape': (2,), }", 8)),
            "x.npy: byte 43: error: expected 'descr', 'fortran_order' and "
            "'shape'");
}

/// No prefix of a file, and no file with one byte changed, may do more than
/// fail.
TEST(Npy, SurvivesDamage) {
  std::string intact = makeNpy(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 24);
  for (size_t size = 0; size < intact.size(); ++size)
    EXPECT_NE(getNpyError(intact.substr(0, size)), "no error");
  for (size_t at = 0; at < intact.size(); ++at)
    for (int change : {1, 0x20, 0x80}) {
      std::string damaged = intact;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      (void)getNpyError(damaged);
    }
  EXPECT_NE(getNpyError(makeNpy("{'descr': '<f8', 'fortran_order': False, "
                                "'shape': (4294967296, 4294967296), }",
                                0)),
            "no error");
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

TEST(Elements, NarrowFloatsRoundToNearestEven) {
  EXPECT_EQ(toBFloat16Bits(1.0), 0x3f80);
  EXPECT_EQ(toBFloat16Bits(1.0 + 0x1p-8), 0x3f80);
  EXPECT_EQ(toBFloat16Bits(1.0 + 0x3p-8), 0x3f82);
  EXPECT_EQ(toHalfBits(65504), 0x7bff);
  EXPECT_EQ(toHalfBits(65520), 0x7c00);
  EXPECT_EQ(fromHalfBits(1), 0x1p-24f);
  EXPECT_EQ(fromBFloat16Bits(0x4049), 3.140625f);
}

TEST(Elements, RandomNumbersAreFixed) {
  std::vector<double> values(10000);
  fillRandom(DType::F64, values.data(), 10000, 0, 0);
  // mt19937_64 with seed 0 starts with 2947667278772165694.
  double radius =
      std::sqrt(-2 * std::log(((2947667278772165694ull >> 11) + 1) * 0x1p-53));
  EXPECT_NEAR(std::hypot(values[0], values[1]), radius, 1e-12);
  double mean = 0, square = 0;
  for (double value : values) {
    mean += value / 10000;
    square += value * value / 10000;
  }
  EXPECT_NEAR(mean, 0, 0.05);
  EXPECT_NEAR(square, 1, 0.05);
  std::vector<double> other(10000);
  fillRandom(DType::F64, other.data(), 10000, 0, 1);
  EXPECT_NE(values, other);
}

TEST(Elements, Comparison) {
  std::vector<float> expected{1, -4, 2}, got{1, -4, 2};
  auto compare = [&] {
    return compareElements(DType::F32, got.data(), expected.data(), 3);
  };
  EXPECT_EQ(compare().maxRelative, 0);
  got[2] = 3;
  EXPECT_EQ(compare().maxRelative, 0.25);
  EXPECT_EQ(compare().index, 2);
  got[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(compare().sameSpecials);
  EXPECT_EQ(compare().index, 0);
  expected[0] = got[0];
  EXPECT_TRUE(compare().sameSpecials);
  expected = {0, 0, 0};
  got = {0, 0, 1e-30f};
  EXPECT_TRUE(std::isinf(compare().maxRelative));
}

//===----------------------------------------------------------------------===//
// Overlaps
//===----------------------------------------------------------------------===//

TEST(Overlap, Contiguous) {
  std::vector<float> data(100);
  auto at = [&](int64_t offset, llvm::SmallVector<int64_t> shape,
                llvm::SmallVector<int64_t> strides) {
    return BufferView(static_cast<void *>(data.data() + offset), DType::F32,
                      shape, strides);
  };
  using detail::mayOverlap;
  EXPECT_FALSE(mayOverlap(at(0, {10}, {1}), at(10, {10}, {1})));
  EXPECT_TRUE(mayOverlap(at(0, {11}, {1}), at(10, {10}, {1})));
  EXPECT_FALSE(mayOverlap(at(0, {0}, {1}), at(0, {10}, {1})));
  // Walking down from 19 covers 10 to 19.
  EXPECT_FALSE(mayOverlap(at(19, {10}, {-1}), at(0, {10}, {1})));
  EXPECT_TRUE(mayOverlap(at(19, {11}, {-1}), at(0, {10}, {1})));
}

TEST(Overlap, InterleavedSlices) {
  std::vector<float> data(2 * 3 * 8);
  // q, k and v packed as [T, 3, D].
  auto slice = [&](int64_t which, int64_t width) {
    return BufferView(static_cast<void *>(data.data() + which * 8), DType::F32,
                      {2, width}, {24, 1});
  };
  EXPECT_FALSE(detail::mayOverlap(slice(0, 8), slice(1, 8)));
  EXPECT_FALSE(detail::mayOverlap(slice(2, 8), slice(0, 8)));
  EXPECT_TRUE(detail::mayOverlap(slice(0, 9), slice(1, 8)));
  EXPECT_TRUE(detail::mayOverlap(slice(1, 8), slice(1, 8)));
  // Every other element.
  auto odd = [&](int64_t offset) {
    return BufferView(static_cast<void *>(data.data() + offset), DType::F32,
                      {20}, {2});
  };
  EXPECT_FALSE(detail::mayOverlap(odd(0), odd(1)));
  EXPECT_TRUE(detail::mayOverlap(odd(0), odd(2)));
}

TEST(LargeMemory, StaysAtHandForItsSize) {
  constexpr size_t bytes = size_t(5) << 20;
  void *first = allocateLarge(bytes);
  size_t before = getLargeMemoryKept();
  freeLarge(first, bytes);
  // Of whole huge pages.
  EXPECT_EQ(getLargeMemoryKept(), before + (size_t(6) << 20));
  void *larger = allocateLarge(2 * bytes);
  EXPECT_NE(larger, first);
  void *again = allocateLarge(bytes + 1);
  EXPECT_EQ(again, first);
  EXPECT_EQ(getLargeMemoryKept(), before);
  std::free(again); // As before.
  freeLarge(larger, 2 * bytes);
  freeLarge(nullptr, bytes);
}

TEST(LargeMemory, KeepsTheLastUpToALimit) {
  constexpr size_t bytes = mostLargeMemoryKept / 2;
  std::vector<void *> blocks;
  for (int i = 0; i < 3; ++i)
    blocks.push_back(allocateLarge(bytes));
  for (void *block : blocks)
    freeLarge(block, bytes);
  EXPECT_EQ(getLargeMemoryKept(), mostLargeMemoryKept);
  EXPECT_EQ(allocateLarge(bytes), blocks[2]);
  EXPECT_EQ(allocateLarge(bytes), blocks[1]);
  EXPECT_EQ(getLargeMemoryKept(), 0u);
  std::free(blocks[1]);
  std::free(blocks[2]);
  // More than the limit at once, and less than a huge page.
  constexpr size_t most = mostLargeMemoryKept + 1, least = 64;
  freeLarge(allocateLarge(most), most);
  freeLarge(allocateLarge(least), least);
  EXPECT_EQ(getLargeMemoryKept(), 0u);
}

TEST(Sizes, Products) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max(),
                    half = int64_t(1) << 62;
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(countElements(Sizes{}), 1);
  EXPECT_EQ(countElements(Sizes{3, 4}), 12);
  EXPECT_EQ(countElements(Sizes{half, half}), most);
  EXPECT_EQ(countElements(Sizes{half, half, 0}), 0);
  EXPECT_EQ(getByteCount(4, Sizes{3, 4}), 48);
  EXPECT_EQ(getByteCount(4, Sizes{3, 0}), 0);
  EXPECT_EQ(getByteCount(1, Sizes{most}), most);
  EXPECT_EQ(getByteCount(2, Sizes{half}), std::nullopt);
  // Parts of the product overflow although there is nothing to hold.
  EXPECT_EQ(getByteCount(4, Sizes{half, 0}), std::nullopt);
  EXPECT_TRUE(hasByteExtent(4, Sizes{3, 4}, Sizes{-4, 1}));
  EXPECT_TRUE(hasByteExtent(4, Sizes{half, half}, Sizes{0, 0}));
  // The stride of an extent of 1 does not count.
  EXPECT_TRUE(hasByteExtent(4, Sizes{1, 0}, Sizes{half, most}));
  EXPECT_FALSE(hasByteExtent(4, Sizes{2}, Sizes{half}));
  EXPECT_FALSE(hasByteExtent(1, Sizes{3}, Sizes{-half}));
  EXPECT_FALSE(hasByteExtent(1, Sizes{2, 2}, Sizes{half, half}));
}

// With and without the products.
TEST(Sizes, FitsAddresses) {
  constexpr int64_t small = (int64_t(1) << 15) - 1,
                    far = (int64_t(1) << 40) - 1;
  using Sizes = std::vector<int64_t>;
  for (int64_t extent : {small, small + 1})
    for (int64_t stride : {far, -far, far + 1}) {
      Sizes shape(4, extent), strides(4, stride);
      bool fits = getByteCount(8, shape) && hasByteExtent(8, shape, strides);
      EXPECT_EQ(fitsAddresses(8, shape, strides), fits)
          << extent << ", " << stride;
    }
  EXPECT_TRUE(fitsAddresses(8, Sizes(4, small), Sizes(4, far)));
  EXPECT_FALSE(fitsAddresses(8, Sizes(5, small), Sizes(5, 1)));
  EXPECT_FALSE(fitsAddresses(4, Sizes{int64_t(1) << 62}, Sizes{1}));
  EXPECT_FALSE(fitsAddresses(4, Sizes{2}, Sizes{int64_t(1) << 62}));
}

TEST(LargeMemory, HasLimits) {
  EXPECT_EQ(allocateLarge(std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_EQ(allocateLarge(std::numeric_limits<size_t>::max() / 2), nullptr);
}

TEST(LargeMemory, IsSharedByThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      for (int round = 0; round < 50; ++round) {
        size_t bytes = size_t(2 + (i + round) % 3) << 20;
        auto *memory = static_cast<char *>(allocateLarge(bytes));
        memory[0] = memory[bytes - 1] = static_cast<char>(i);
        std::this_thread::yield();
        EXPECT_EQ(memory[0], memory[bytes - 1]);
        EXPECT_EQ(memory[0], i);
        freeLarge(memory, bytes);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_LE(getLargeMemoryKept(), mostLargeMemoryKept);
}

TEST(FmaPeak, IsPlausible) {
  EXPECT_GT(measureFmaGflops(), 0.1);
  EXPECT_GT(measureFmaGflops(2), 0.1);
}

TEST(FmaPeak, IsOfTheVectorsThatCodeIsMadeFor) {
  EXPECT_STREQ(getFmaKind(/*vectorBits=*/128), "generic");
  EXPECT_STRNE(getFmaKind(/*vectorBits=*/256), "avx512");
  EXPECT_GT(measureFmaGflops(/*threads=*/1, /*vectorBits=*/128), 0.1);
}

} // namespace
