//===- Layout.h - Dimensions by name ----------------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layouts of arrays in words: "B T H K" is what users write, tokens before
// heads. Ops take heads before tokens; "N H V K -> N H K V" gives the order of
// the op where that is not the only difference. "H | B T H" are alternatives,
// "H*K" is one dimension that holds two, 1 one of extent 1 that users leave
// out.
//
// The first letter of a name says what is counted: B and N batches and states,
// H and G heads, T tokens, anything else features.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_FAMILIES_LAYOUT_H
#define LINATTN_FAMILIES_LAYOUT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <optional>

namespace mlir::linattn {

/// The kinds of dimensions, in the order of the ops.
enum class DimClass : uint8_t { Batch, Head, Length, Feature };

DimClass classifyDim(llvm::StringRef name);

/// The names of "B H T K".
llvm::SmallVector<llvm::StringRef, 4> splitDims(llvm::StringRef dims);

/// One alternative of a layout; the names point into its text.
struct LayoutNames {
  /// The user's spelling, "H*K" undivided.
  llvm::SmallVector<llvm::StringRef, 4> user;
  /// The order that ops take; "1" for an extent of 1.
  llvm::SmallVector<llvm::StringRef, 4> logical;
};

/// The alternatives of a layout, in order.
llvm::SmallVector<LayoutNames, 3> parseLayout(llvm::StringRef text);

/// A size that follows from others, as a rule states it; names point into its
/// text.
struct SizeRule {
  /// "H = max(Hk, Hv)", one of which divides the other; "Tn = 2 T";
  /// "Ts = T / 64", rounded down; "J = 3"; and "M = features(2, 3, 1, K)",
  /// (2 + 3 K + K²) / 2.
  enum Kind : uint8_t { Max, Times, Quotient, Constant, Features };
  Kind kind = Constant;
  llvm::StringRef result, left, right;
  /// For Times, Quotient and Constant.
  int64_t factor = 1;
  /// For Features: constant, linear, quadratic.
  std::array<int64_t, 3> coefficients = {};
};

/// Returns nothing if the text is not a rule.
std::optional<SizeRule> parseSizeRule(llvm::StringRef text);

} // namespace mlir::linattn

#endif // LINATTN_FAMILIES_LAYOUT_H
