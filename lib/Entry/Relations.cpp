//===- Relations.cpp - Relations between sizes of operands ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Relations.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

/// Dimensions with the same loop are equal.
static void addLoopRelations(linalg::LinalgOp op, RelationList &list) {
  if (!op.hasPureTensorSemantics())
    return;
  SmallVector<std::optional<DimRef>> firstOfLoop(op.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (!getTensorType(operand.get()))
      continue;
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (!loop)
        continue;
      DimRef ref = list.getOperandDim(operand, dim);
      std::optional<DimRef> &first = firstOfLoop[loop.getPosition()];
      if (first)
        list.addEqual(*first, ref);
      else
        first = ref;
    }
  }
}

/// Elementwise ops on tensors require equal shapes.
static void addElementwiseRelations(Operation *op, RelationList &list) {
  OpOperand *first = nullptr;
  for (OpOperand &operand : op->getOpOperands()) {
    RankedTensorType type = getTensorType(operand.get());
    if (!type)
      continue;
    for (int64_t dim = 0; first && dim < type.getRank(); ++dim)
      list.addEqual(list.getOperandDim(*first, dim),
                    list.getOperandDim(operand, dim));
    first = first ? first : &operand;
  }
}

static void addCastRelations(tensor::CastOp op, RelationList &list) {
  RankedTensorType from = getTensorType(op.getSource());
  RankedTensorType to = getTensorType(op.getResult());
  if (!from || !to)
    return;
  for (int64_t dim = 0; dim < to.getRank(); ++dim)
    if (!to.isDynamicDim(dim))
      list.addEqual(list.getOperandDim(op->getOpOperand(0), dim),
                    {op.getResult(), dim, "the type"});
}

void mlir::linattn::addRelations(Operation *op, RelationList &list) {
  if (auto contract = dyn_cast<ShapeContractOpInterface>(op))
    list.relations = contract.getDimRelations();
  else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    addLoopRelations(linalgOp, list);
  else if (auto cast = dyn_cast<tensor::CastOp>(op))
    addCastRelations(cast, list);
  else if (OpTrait::hasElementwiseMappableTraits(op))
    addElementwiseRelations(op, list);
  // The verifier has checked the relations of static sizes.
  llvm::erase_if(list.relations, [](const DimRelation &relation) {
    return llvm::none_of(relation.dims, [](const DimRef &ref) {
      RankedTensorType type = getTensorType(ref.value);
      return type && type.isDynamicDim(ref.dim);
    });
  });
}
