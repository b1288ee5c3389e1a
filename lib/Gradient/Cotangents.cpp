//===- Cotangents.cpp - Walking a program backwards -----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace mlir::linattn;

#include "linattn/Gradient/GradientInterface.cpp.inc"

void Cotangents::activateThrough(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    WalkResult found = op->walk([&](Operation *nested) {
      return llvm::any_of(nested->getOperands(),
                          [&](Value operand) { return isActive(operand); })
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (!found.wasInterrupted())
      continue;
    for (Value result : op->getResults())
      if (isa<FloatType>(getElementTypeOrSelf(result)))
        activate(result);
  }
}

void Cotangents::add(OpBuilder &b, Value value, Value cotangent) {
  if (!cotangent || !isActive(value))
    return;
  Location loc = cotangent.getLoc();
  if (cotangent.getType() != value.getType())
    cotangent =
        tensor::CastOp::create(b, loc, value.getType(), cotangent).getResult();
  Value &sum = values[value];
  sum = sum ? arith::AddFOp::create(b, loc, sum, cotangent).getResult()
            : cotangent;
}

LogicalResult mlir::linattn::differentiate(OpBuilder &b,
                                           ArrayRef<Operation *> ops,
                                           Cotangents &cotangents) {
  for (Operation *op : llvm::reverse(ops)) {
    bool isRead = llvm::any_of(op->getResults(), [&](Value result) {
      return cotangents.get(result) != nullptr;
    });
    if (!isRead)
      continue;
    auto gradient = dyn_cast<GradientOpInterface>(op);
    if (!gradient)
      return emitNoGradient(op);
    if (failed(gradient.buildGradient(b, cotangents)))
      return failure();
  }
  return success();
}

LogicalResult mlir::linattn::differentiateThrough(
    OpBuilder &b, Operation *op, Cotangents &cotangents,
    function_ref<FailureOr<SmallVector<Value>>(OpBuilder &)> rewrite) {
  Block *block = b.getInsertionBlock();
  Block::iterator end = b.getInsertionPoint();
  bool atBegin = end == block->begin();
  Operation *before = atBegin ? nullptr : &*std::prev(end);
  FailureOr<SmallVector<Value>> values = rewrite(b);
  if (failed(values))
    return failure();

  SmallVector<Operation *> ops;
  Block::iterator begin =
      before ? std::next(before->getIterator()) : block->begin();
  for (Operation &built : llvm::make_range(begin, end))
    ops.push_back(&built);
  cotangents.activateThrough(ops);
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *values))
    if (value)
      cotangents.add(b, value, cotangents.get(result));
  return differentiate(b, ops, cotangents);
}
