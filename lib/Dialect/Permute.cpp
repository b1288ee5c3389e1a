//===- Permute.cpp - The same tensor, its dimensions reordered ------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/LinAttn.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::linattn;

LogicalResult PermuteOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> location, ValueRange operands,
    DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,
    SmallVectorImpl<Type> &inferred) {
  PermuteOp::Adaptor adaptor(operands, attributes, properties, regions);
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  if (static_cast<int64_t>(permutation.size()) != input.getRank() ||
      !isPermutationVector(permutation)) // (P1)
    return emitOptionalError(location, "expected permutation to hold each of ",
                             input.getRank(), " dimensions once, but got [",
                             permutation, "]");
  inferred.push_back(RankedTensorType::get(
      applyPermutation(input.getShape(), permutation), input.getElementType()));
  return success();
}

/// (P2): the declared result may know sizes that the input's type does not.
bool PermuteOp::isCompatibleReturnTypes(TypeRange inferred,
                                        TypeRange declared) {
  return succeeded(verifyCompatibleShapes(inferred, declared)) &&
         getElementTypeOrSelf(inferred.front()) ==
             getElementTypeOrSelf(declared.front());
}

LogicalResult
PermuteOp::reifyResultShapes(OpBuilder &b,
                             ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<OpFoldResult> shape;
  for (auto [i, size] : llvm::enumerate(getType().getShape()))
    shape.push_back(
        ShapedType::isDynamic(size)
            ? tensor::getMixedSize(b, getLoc(), getInput(), getPermutation()[i])
            : OpFoldResult(b.getIndexAttr(size)));
  shapes.push_back(std::move(shape));
  return success();
}

OpFoldResult PermuteOp::fold(FoldAdaptor) {
  if (isIdentityPermutation(getPermutation()))
    return getInput().getType() == getType() ? getInput() : OpFoldResult();
  // A permutation of a permutation is one permutation.
  auto inner = getInput().getDefiningOp<PermuteOp>();
  if (!inner || inner.getInput().getType() != getType() ||
      !isIdentityPermutation(
          applyPermutation(inner.getPermutation(), getPermutation())))
    return {};
  return inner.getInput();
}
