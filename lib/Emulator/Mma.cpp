//===- Mma.cpp - Matrix products of a warp --------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "TensorCore.h"
#include "linattn/Support/Elements.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"
#include <algorithm>
#include <array>
#include <numeric>

using namespace linattn;
using namespace linattn::emulator;

static float toFloat(uint32_t bits) { return llvm::bit_cast<float>(bits); }

/// The units read the upper 19 bits and drop the others.
static float fromTF32(uint32_t bits) { return toFloat(bits & 0xffffe000); }

namespace {
struct Shape {
  Format format;
  unsigned k;
};
} // namespace

static Shape getShape(MmaKind kind) {
  switch (kind) {
  case MmaKind::BF16K8:
    return {Format::BF16, 8};
  case MmaKind::BF16K16:
    return {Format::BF16, 16};
  case MmaKind::F16K8:
    return {Format::F16, 8};
  case MmaKind::F16K16:
    return {Format::F16, 16};
  case MmaKind::TF32K4:
    return {Format::TF32, 4};
  case MmaKind::TF32K8:
    return {Format::TF32, 8};
  }
  llvm_unreachable("unknown kind of mma");
}

float linattn::emulator::decode(Format format, uint32_t word, unsigned i) {
  switch (format) {
  case Format::BF16:
    return fromBFloat16Bits(word >> (16 * i));
  case Format::F16:
    return fromHalfBits(word >> (16 * i));
  case Format::TF32:
    return fromTF32(word);
  }
  llvm_unreachable("unknown format");
}

/// Tensor cores truncate. Terms are aligned to the largest one and cut off one
/// bit below its last bit; the sum is cut off to f32. Measured on an A100 by
/// Fasi et al., Numerical behavior of NVIDIA tensor cores, 2021. Long sums in
/// an accumulator therefore shrink, and kernels should avoid them.
float linattn::emulator::sumAsTensorCores(
    const std::array<float, kTermsAtOnce + 1> &terms) {
  constexpr int fractionBits = 24, bias = 127;
  auto exponentOf = [](float x) {
    return static_cast<int>(llvm::bit_cast<uint32_t>(x) >> 23 & 0xff);
  };
  int exponent = 0;
  for (float term : terms)
    exponent = std::max(exponent, exponentOf(term));
  // Infinities, NaNs, and numbers so small that 2^-exponent is infinite.
  if (exponent == 255 || exponent <= fractionBits)
    return std::accumulate(terms.begin(), terms.end(), 0.0f);
  // As two factors, either of which may exceed f32.
  auto power = [](int exponent) {
    return toFloat(static_cast<uint32_t>(exponent + bias) << 23);
  };
  int half = (exponent - bias) / 2, other = exponent - bias - half;
  float down = power(-half), downToo = power(fractionBits - other);
  int32_t sum = 0;
  for (float term : terms)
    sum += static_cast<int32_t>(term * down * downToo);
  // Truncates the bits of the double beyond f32.
  uint64_t bits = llvm::bit_cast<uint64_t>(static_cast<double>(sum));
  double cut = llvm::bit_cast<double>(bits & ~0x1fffffffull);
  return static_cast<float>(cut) * power(other - fractionBits) * power(half);
}

// The fragments of PTX: with g = lane / 4 and t = lane % 4, and words of E
// elements, word i of A holds row g + 8 (i % 2), columns E t + 4 E (i / 2) on;
// word i of B holds rows E t + 4 E i on of column g; word i of C holds row
// g + 8 (i / 2), column 2 t + i % 2.
void linattn::emulator::executeMma(Block &block, Warp &warp, uint32_t lanes) {
  Shape shape =
      getShape(static_cast<MmaKind>(warp.threads[0].collective.variant));
  unsigned perWord = shape.format == Format::TF32 ? 1 : 2;
  unsigned wordsOfB = shape.k / (4 * perWord), wordsOfA = 2 * wordsOfB;
  float a[16][16], b[16][8], c[16][8];
  auto forEachWordOfC = [&](auto visit) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      uint32_t *words = warp.threads[lane].collective.words;
      for (unsigned i = 0; i < 4; ++i)
        visit(c[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2],
              words[wordsOfA + wordsOfB + i]);
    }
  };
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    const uint32_t *words = warp.threads[lane].collective.words;
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned e = 0; e < perWord; ++e) {
      for (unsigned i = 0; i < wordsOfA; ++i)
        a[g + 8 * (i % 2)][perWord * (t + 4 * (i / 2)) + e] =
            decode(shape.format, words[i], e);
      for (unsigned i = 0; i < wordsOfB; ++i)
        b[perWord * (t + 4 * i) + e][g] =
            decode(shape.format, words[wordsOfA + i], e);
    }
  }
  forEachWordOfC(
      [](float &element, uint32_t word) { element = toFloat(word); });
  // Products are exact in f32, but for the tiniest.
  for (unsigned m = 0; m < 16; ++m)
    for (unsigned k = 0; k < shape.k; k += kTermsAtOnce)
      for (unsigned n = 0; n < 8; ++n) {
        std::array<float, kTermsAtOnce + 1> terms = {c[m][n]};
        for (unsigned i = 0; i < std::min(kTermsAtOnce, shape.k - k); ++i)
          terms[i + 1] = a[m][k + i] * b[k + i][n];
        c[m][n] = sumAsTensorCores(terms);
      }
  forEachWordOfC([](float &element, uint32_t &word) {
    word = llvm::bit_cast<uint32_t>(element);
  });
}
