//===- TensorGradients.cpp - Gradients of views and slices ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "TensorBuilder.h"
#include "linattn/Dialect/LinAttn.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

static LogicalResult castRule(tensor::CastOp op, OpBuilder &b, Cotangents &c) {
  c.add(b, op.getSource(), c.get(op.getResult()));
  return success();
}

static LogicalResult collapseRule(tensor::CollapseShapeOp op, OpBuilder &b,
                                  Cotangents &c) {
  auto sizes = tensor::getMixedSizes(b, op.getLoc(), op.getSrc());
  c.add(b, op.getSrc(),
        tensor::ExpandShapeOp::create(b, op.getLoc(), op.getSrcType(),
                                      c.get(op.getResult()),
                                      op.getReassociationIndices(), sizes));
  return success();
}

static LogicalResult expandRule(tensor::ExpandShapeOp op, OpBuilder &b,
                                Cotangents &c) {
  c.add(b, op.getSrc(),
        tensor::CollapseShapeOp::create(b, op.getLoc(), op.getSrcType(),
                                        c.get(op.getResult()),
                                        op.getReassociationIndices()));
  return success();
}

static LogicalResult extractSliceRule(tensor::ExtractSliceOp op, OpBuilder &b,
                                      Cotangents &c) {
  c.add(b, op.getSource(),
        tensor::InsertSliceOp::create(b, op.getLoc(), c.get(op.getResult()),
                                      zerosLike(b, op.getLoc(), op.getSource()),
                                      op.getMixedOffsets(), op.getMixedSizes(),
                                      op.getMixedStrides()));
  return success();
}

static LogicalResult insertSliceRule(tensor::InsertSliceOp op, OpBuilder &b,
                                     Cotangents &c) {
  Location loc = op.getLoc();
  Value d = c.get(op.getResult());
  if (c.isActive(op.getSource()))
    c.add(b, op.getSource(),
          tensor::ExtractSliceOp::create(
              b, loc, op.getSourceType(), d, op.getMixedOffsets(),
              op.getMixedSizes(), op.getMixedStrides()));
  if (c.isActive(op.getDest()))
    c.add(b, op.getDest(),
          tensor::InsertSliceOp::create(
              b, loc, zerosLike(b, op.getLoc(), op.getSource()), d,
              op.getMixedOffsets(), op.getMixedSizes(), op.getMixedStrides()));
  return success();
}

static LogicalResult concatRule(tensor::ConcatOp op, OpBuilder &b,
                                Cotangents &c) {
  Location loc = op.getLoc();
  Value d = c.get(op.getResult());
  int64_t dim = op.getDim();
  OpFoldResult position = b.getIndexAttr(0);
  for (Value input : op.getInputs()) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, input);
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
    offsets[dim] = position;
    if (c.isActive(input))
      c.add(b, input,
            tensor::ExtractSliceOp::create(b, loc, d, offsets, sizes, strides));
    AffineExpr x, y;
    bindDims(b.getContext(), x, y);
    position = affine::makeComposedFoldedAffineApply(b, loc, x + y,
                                                     {position, sizes[dim]});
  }
  return success();
}

static LogicalResult permuteRule(PermuteOp op, OpBuilder &b, Cotangents &c) {
  SmallVector<int64_t> inverse(op.getPermutation().size());
  for (auto [to, from] : llvm::enumerate(op.getPermutation()))
    inverse[from] = to;
  c.add(b, op.getInput(),
        PermuteOp::create(b, op.getLoc(), op.getInput().getType(),
                          c.get(op.getResult()), inverse));
  return success();
}

void mlir::linattn::registerTensorGradients(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    using namespace tensor;
    attachGradient<CastOp, castRule>(context);
    attachGradient<CollapseShapeOp, collapseRule>(context);
    attachGradient<ConcatOp, concatRule>(context);
    attachGradient<ExpandShapeOp, expandRule>(context);
    attachGradient<ExtractSliceOp, extractSliceRule>(context);
    attachGradient<InsertSliceOp, insertSliceRule>(context);
  });
  registry.addExtension(+[](MLIRContext *context, LinAttnDialect *) {
    attachGradient<PermuteOp, permuteRule>(context);
  });
}
