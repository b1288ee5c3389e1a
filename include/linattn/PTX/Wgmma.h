//===- Wgmma.h - The products of a warpgroup, as text and bits --*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// The assembly that kernels and the emulator share. `wgmma` is inline assembly
// because the NVVM op takes no operand in registers; operands in shared memory
// are given by descriptors.
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PTX_WGMMA_H
#define LINATTN_PTX_WGMMA_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace linattn {

/// D = A B + C or D = A B of one warpgroup: A is 64 × 16, B 16 × `columns`.
/// The assembly's results are a lane's `columns` / 2 elements of D; its
/// operands A (a descriptor or four registers), the descriptor of B, then C.
struct WgmmaForm {
  unsigned columns = 8; ///< A multiple of 8, at most 256.
  bool isBF16 = true;   ///< Else f16.
  bool registersA = false;
  bool transposedB = false; ///< B lies in memory by rows, not by columns.
  bool accumulates = false;

  unsigned numSums() const { return columns / 2; }
  unsigned wordsOfA() const { return registersA ? 4 : 1; }

  std::string getAssembly() const;
  /// The form with exactly this assembly.
  static std::optional<WgmmaForm> parse(llvm::StringRef assembly);
};

/// Waits for all groups but the last `pending`. Sums pass through it, so that
/// no use of them moves before it.
std::string getWgmmaWait(unsigned pending);
std::optional<unsigned> parseWgmmaWait(llvm::StringRef assembly);

/// A descriptor: where a matrix begins in shared memory, and two distances.
/// Rows of 128 bytes lie in groups of eight, whose 16-byte units are permuted:
/// the number of a row in its group is XORed to that of the unit.
namespace wgmma_descriptor {
inline constexpr unsigned addressBits = 14; ///< Of units of 16 bytes.
inline constexpr unsigned leadingShift = 16, strideShift = 32;
inline constexpr unsigned baseOffsetShift = 49, baseOffsetBits = 3;
inline constexpr unsigned swizzleShift = 62;
inline constexpr uint64_t swizzle128 = 1;
inline constexpr unsigned unitShift = 4;
} // namespace wgmma_descriptor

} // namespace linattn

#endif // LINATTN_PTX_WGMMA_H
