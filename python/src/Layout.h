//===- Layout.h - How users lay out an array --------------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Layouts are written as linattn/Families/Layout.h says.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PYTHON_LAYOUT_H
#define LINATTN_PYTHON_LAYOUT_H

#include "Arrays.h"
#include "linattn/Families/Layout.h"

#include <array>
#include <vector>

namespace linattn::python {

using mlir::linattn::DimClass;
using mlir::linattn::SizeRule;

/// The dimensions that the arrays of a call have: all of them, those of one
/// head, or those of one head of one sequence.
enum class RankMode : uint8_t { Full, NoHeads, NoBatch };
inline constexpr size_t kNumRankModes = 3;

/// The dimensions of a plan, by name.
class DimNames {
public:
  using Id = int8_t;
  static constexpr Id kNone = -1;
  static constexpr size_t kMax = 16;

  /// The dimension of that name, which may be new. Throws when there are too
  /// many.
  Id get(llvm::StringRef name);
  /// The dimension of that name, or `kNone`.
  Id find(llvm::StringRef name) const;

  llvm::StringRef name(Id id) const { return names[id]; }
  size_t size() const { return names.size(); }
  DimClass classOf(Id id) const { return classes[id]; }
  /// "head size", "sequence length", …
  std::string describe(Id id) const;

private:
  std::vector<std::string> names;
  std::vector<DimClass> classes;
};

/// The extents that are known so far.
using Extents = std::array<int64_t, DimNames::kMax>;
inline constexpr int64_t kUnknown = -1;

/// One way to lay out an operand.
struct Layout {
  /// A dimension of the user's array. Of a product of two, the second runs
  /// faster.
  struct UserDim {
    DimNames::Id id;
    DimNames::Id inner = DimNames::kNone;
  };
  /// The source of a dimension of the op's operand.
  struct Source {
    /// The user's dimension, or -1 for an extent of 1 that users omit.
    int8_t dim;
    /// The inner or the outer factor of a product, or the only dimension.
    DimNames::Id innerExtent = DimNames::kNone;
    bool isInner = false;
  };

  llvm::SmallVector<UserDim, 4> user;
  llvm::SmallVector<Source, 4> logical;
  /// The number among the alternatives.
  uint8_t alternative = 0;

  /// Writes the layout of that mode to `result`. Returns false if it has no
  /// dimensions.
  bool drop(RankMode mode, const DimNames &names, Layout &result) const;

  /// Whether an array of that shape can have this layout.
  bool matches(llvm::ArrayRef<int64_t> shape, const Extents &extents) const;

  /// "(2, 5, 64)"; dimensions of unknown extent by name.
  std::string formatShape(const Extents &extents, const DimNames &names) const;

  /// The shape of the user's array. All extents must be known.
  llvm::SmallVector<int64_t, 4> getShape(const Extents &extents) const;

  /// The array in the order of the op's operand.
  BufferView toLogical(const BufferView &view, const Extents &extents) const;
};

/// Parses the alternatives in `text`; throws a ValueError.
std::vector<Layout> parseLayouts(llvm::StringRef text, DimNames &names);

} // namespace linattn::python

#endif // LINATTN_PYTHON_LAYOUT_H
