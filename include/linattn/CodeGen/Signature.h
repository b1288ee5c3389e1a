//===- Signature.h - Operands and results of a kernel -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_CODEGEN_SIGNATURE_H
#define LINATTN_CODEGEN_SIGNATURE_H

#include "linattn/Support/DType.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <string>

namespace linattn {

/// Stands for an extent that is only known when the kernel runs.
inline constexpr int64_t kDynamicExtent = -1;

/// One argument or result.
struct ValueInfo {
  /// The SSA name in the source without its sigil, or empty.
  std::string name;
  DType dtype = DType::F32;
  /// Scalars are passed as views of rank 0, like tensors of rank 0.
  bool isTensor = true;
  /// The i64 are elements of a prime field (CompilerOptions::prime).
  bool isElement = false;
  llvm::SmallVector<int64_t, 4> shape;
  /// For a result: the argument whose buffer it may share, to update a state in
  /// place; −1 if there is none.
  int64_t inPlaceOf = -1;

  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }
  bool hasStaticShape() const;
  /// The MLIR spelling, e.g. "tensor<2x8x?x64xf32>".
  std::string getTypeString() const;
};

struct Signature {
  /// The name of the function.
  std::string entry;
  llvm::SmallVector<ValueInfo, 8> arguments;
  llvm::SmallVector<ValueInfo, 2> results;

  /// "argument 1 (%k)" or, without a name, "argument 1".
  std::string describeArgument(size_t index) const;
  /// "result 0".
  std::string describeResult(size_t index) const;
};

/// "2x8x?x64", or "scalar" for rank 0.
std::string formatShape(llvm::ArrayRef<int64_t> shape);

} // namespace linattn

#endif // LINATTN_CODEGEN_SIGNATURE_H
