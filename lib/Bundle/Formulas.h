//===- Formulas.h - Integers that a launch computes -------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_BUNDLE_FORMULAS_H
#define LINATTN_LIB_BUNDLE_FORMULAS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AffineExpr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include <vector>

namespace linattn::detail {

/// Builds the straight-line code over integers that the runner evaluates: a
/// list of instructions, value i computed by the i-th. The same instruction is
/// not added twice.
class Formulas {
public:
  int64_t constant(int64_t value) { return add("const", {value}); }
  int64_t size(int64_t operand, int64_t dim) {
    return add("size", {operand, dim});
  }
  int64_t stride(int64_t operand, int64_t dim) {
    return add("stride", {operand, dim});
  }
  int64_t address(int64_t operand) { return add("address", {operand}); }
  int64_t add(llvm::StringRef operation, llvm::ArrayRef<int64_t> operands);

  /// The induction variable of the next loop, from the value `lower` to below
  /// `upper`.
  int64_t index(int64_t lower, int64_t upper);

  /// A loop-invariant value that is at least `value` in every iteration; −1 if
  /// none is known.
  int64_t boundAbove(int64_t value) { return bound(value, /*above=*/true); }

  /// The value of an affine expression with these values for its symbols.
  int64_t affine(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> symbols);

  /// Adds an op on integers. Returns false if formulas cannot express it.
  bool take(mlir::Operation *op);

  void bind(mlir::Value value, int64_t number) { numbers[value] = number; }
  /// The number of a value; −1 if it is unbound.
  int64_t lookup(mlir::Value value) const {
    auto it = numbers.find(value);
    return it == numbers.end() ? -1 : it->second;
  }

  /// Operands that must have the same size, as pairs of (operand, dimension).
  using Dim = std::pair<int64_t, int64_t>;
  llvm::ArrayRef<std::pair<Dim, Dim>> getEqualSizes() const {
    return equalSizes;
  }

  llvm::json::Array takeValues() { return std::move(values); }

private:
  struct Entry {
    std::string operation;
    llvm::SmallVector<int64_t, 3> operands;
    /// Whether the value differs between iterations of a loop.
    bool isVariable = false;
  };

  int64_t bound(int64_t value, bool above);

  llvm::json::Array values;
  std::vector<Entry> entries;
  int64_t numLoops = 0;
  llvm::StringMap<int64_t> known;
  llvm::DenseMap<mlir::Value, int64_t> numbers;
  llvm::DenseMap<int64_t, Dim> sizes;
  llvm::SmallVector<std::pair<Dim, Dim>> equalSizes;
};

} // namespace linattn::detail

#endif // LINATTN_LIB_BUNDLE_FORMULAS_H
