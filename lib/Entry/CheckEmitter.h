//===- CheckEmitter.h - Emission of checks of shapes ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_ENTRY_CHECKEMITTER_H
#define LINATTN_ENTRY_CHECKEMITTER_H

#include "Relations.h"
#include "ShapeChecks.h"
#include "linattn/Dialect/Remarks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::linattn {

/// Emits the checks of a function's ops at the end of its entry block.
class CheckEmitter {
public:
  CheckEmitter(func::FuncOp func, bool looksAtIndices)
      : entry(func.front()), b(func.getLoc(), entry.getTerminator()),
        looksAtIndices(looksAtIndices) {}

  void visit(Operation *op);

  SmallVector<ShapeCheck> checks;

private:
  /// Whether the value dominates the terminator of the entry block.
  bool isAvailable(Value value) const {
    return value.getParentBlock() == &entry;
  }

  /// Whether the scalar can be computed without work on tensors.
  bool isCheap(Value value);

  /// The size of a dimension, from values that are available.
  FailureOr<Value> getSize(const DimRef &ref);

  /// The condition under which the op runs; null if it always does.
  FailureOr<Value> getGuard(Operation *op);

  Value emitHolds(const DimRelation &relation, ValueRange sizes);
  void addCheck(Value holds, ArrayRef<Value> sizes, std::string message,
                Value guard = {});
  void checkRelations(Operation *op);
  void checkSlice(OffsetSizeAndStrideOpInterface op, RankedTensorType type,
                  Value whole);
  void checkInserted(tensor::InsertSliceOp op);
  void checkElements(tensor::ReshapeOp op);
  void checkSplits(tensor::ExpandShapeOp op);
  void checkOffsets(Operation *op, Value offsets, DimRef tokens);
  void checkIndices(ScanOp op);

  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, Value rhs) {
    return arith::CmpIOp::create(b, predicate, lhs, rhs);
  }
  static void remarkSkipped(Operation *op, StringRef reason) {
    remark::missed(op->getLoc(), remarkNamed("check-shapes"))
        << llvm::formatv("the shapes of {0} are not checked: {1}",
                         op->getName(), reason)
               .str();
  }

  Block &entry;
  ImplicitLocOpBuilder b;
  const bool looksAtIndices;
  DenseMap<Value, bool> cheap;
};

} // namespace mlir::linattn

#endif // LINATTN_ENTRY_CHECKEMITTER_H
