//===- TensorCore.h - How the units add products ----------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_EMULATOR_TENSORCORE_H
#define LINATTN_LIB_EMULATOR_TENSORCORE_H

#include <array>
#include <cstdint>

namespace linattn::emulator {

enum class Format { BF16, F16, TF32 };

/// Element `i` of those packed into a word.
float decode(Format format, uint32_t word, unsigned i);

/// The number of products that an A100 adds at once. Newer chips add more.
inline constexpr unsigned kTermsAtOnce = 8;

/// The sum of a summand and of products, with the rounding of the units.
float sumAsTensorCores(const std::array<float, kTermsAtOnce + 1> &terms);

} // namespace linattn::emulator

#endif // LINATTN_LIB_EMULATOR_TENSORCORE_H
