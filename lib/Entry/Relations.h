//===- Relations.h - Relations between sizes of operands --------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_ENTRY_RELATIONS_H
#define LINATTN_LIB_ENTRY_RELATIONS_H

#include "linattn/Dialect/LinAttn.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/StringSaver.h"

namespace mlir::linattn {

/// Null if `value` is not a ranked tensor.
inline RankedTensorType getTensorType(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// A list of relations whose texts live as long as it does.
class RelationList {
public:
  void addEqual(DimRef first, DimRef second) {
    relations.push_back({DimRelationKind::Equal, {first, second}, "size", ""});
  }

  DimRef getOperandDim(OpOperand &operand, int64_t dim) {
    std::string name = llvm::formatv("dimension {0} of operand {1}", dim,
                                     operand.getOperandNumber());
    return {operand.get(), dim, texts.save(name)};
  }

  SmallVector<DimRelation> relations;

private:
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver texts{allocator};
};

/// Adds the relations between sizes that an op of any dialect requires of its
/// operands, except those that static types satisfy.
void addRelations(Operation *op, RelationList &list);

} // namespace mlir::linattn

#endif // LINATTN_LIB_ENTRY_RELATIONS_H
