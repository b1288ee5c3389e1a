//===- Mma.cpp - Matrix products of a warp -------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "linattn/Support/Elements.h"

#include "llvm/Support/ErrorHandling.h"
#include <cstring>

using namespace linattn;
using namespace linattn::emulator;

static float toFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// The units read the upper 19 bits and drop the others.
static float fromTF32(uint32_t bits) { return toFloat(bits & 0xffffe000); }

namespace {
enum class Format { BF16, F16, TF32 };

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

/// Element `i` of those packed into a word.
static float decode(Format format, uint32_t word, unsigned i) {
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
  // Products are exact in f32. The order of the sums is not specified; this is
  // one of them.
  for (unsigned m = 0; m < 16; ++m)
    for (unsigned k = 0; k < shape.k; ++k)
      for (unsigned n = 0; n < 8; ++n)
        c[m][n] += a[m][k] * b[k][n];
  forEachWordOfC([](float &element, uint32_t &word) {
    std::memcpy(&word, &element, sizeof(word));
  });
}
