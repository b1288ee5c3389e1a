//===- TensorMap.h - Tensor maps that a kernel makes, as text ---*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The assembly that kernels and their emulator share: the NVVM dialect has no
// operations that fill a tensor map and copy it to global memory, so that both
// are inline assembly, and the codes that fields take.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_PTX_TENSORMAP_H
#define LINATTN_PTX_TENSORMAP_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace linattn {

/// Fields of a tensor map. A field of one dimension has the dimension's number.
/// Dimension 0 is the innermost, with elements as its stride; stride i is that
/// of dimension i + 1, in bytes.
enum class TensorMapField : unsigned {
  Address, ///< Of element 0.
  Rank,    ///< Less one.
  Box,     ///< Elements that a copy takes of a dimension.
  Size,    ///< Elements of a dimension.
  Stride,
  ElementStride,
  ElementType,
  Interleave,
  Swizzle,
  Fill, ///< Value read beyond the tensor.
};

/// Sets a field of a tensor map in shared memory. The operands of the assembly
/// are the address, in 32 bits, and the new value unless it is a constant.
struct TensorMapReplace {
  TensorMapField field = TensorMapField::Address;
  unsigned dim = 0;
  unsigned constant = 0; ///< Where the field has a code, and of the rank.

  bool hasDim() const {
    return field >= TensorMapField::Box &&
           field <= TensorMapField::ElementStride;
  }
  bool hasConstant() const {
    return field == TensorMapField::Rank ||
           field >= TensorMapField::ElementType;
  }
  bool isWide() const {
    return field == TensorMapField::Address || field == TensorMapField::Stride;
  }

  std::string getAssembly() const;
  /// The replacement that this assembly encodes, if any.
  static std::optional<TensorMapReplace> parse(llvm::StringRef assembly);
};

/// A warp copies a map from shared to global memory, from where copies read it.
/// Its operands are the global address and the shared one, in 32 bits.
llvm::StringRef getTensorMapPublish();

namespace tensor_map {
inline constexpr unsigned bytes = 128;    ///< Its alignment, too.
inline constexpr unsigned elements16 = 1; ///< A type: any of 16 bits.
inline constexpr unsigned swizzle128 = 3;
inline constexpr unsigned maxRank = 5, maxBox = 256;
} // namespace tensor_map

} // namespace linattn

#endif // LINATTN_PTX_TENSORMAP_H
