//===- BranchGradient.cpp - Branches, walked backwards --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradient of an `scf.if` is one with the same condition: the branch that
// was taken runs again, and is walked backwards. It gives the cotangents of all
// values from outside that either branch uses.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "TensorBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::linattn;

/// The cotangents of `captured`, by the ops of one branch.
static FailureOr<SmallVector<Value>> walkBack(OpBuilder &b, scf::IfOp branch,
                                              Block &source,
                                              ArrayRef<Value> captured,
                                              Cotangents &c) {
  IRMapping mapping;
  SmallVector<Operation *> ops;
  for (Operation &op : source.without_terminator())
    ops.push_back(b.clone(op, mapping));
  Cotangents inner;
  for (Value value : captured)
    inner.activate(value);
  inner.activateThrough(ops);
  for (auto [result, yielded] : llvm::zip_equal(
           branch.getResults(), source.getTerminator()->getOperands()))
    inner.add(b, mapping.lookupOrDefault(yielded), c.get(result));
  if (failed(differentiate(b, ops, inner)))
    return failure();
  SmallVector<Value> cotangents;
  for (Value value : captured) {
    Value cotangent = inner.get(value);
    cotangents.push_back(cotangent ? cotangent
                                   : zerosLike(b, branch.getLoc(), value));
  }
  return cotangents;
}

LogicalResult mlir::linattn::buildBranchGradient(scf::IfOp op, OpBuilder &b,
                                                 Cotangents &c) {
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(op->getRegions(), used);
  SmallVector<Value> captured;
  llvm::copy_if(used, std::back_inserter(captured),
                [&](Value value) { return c.isActive(value); });
  if (captured.empty())
    return success();
  auto types = ValueRange(captured).getTypes();
  auto backward = scf::IfOp::create(b, op.getLoc(), types, op.getCondition(),
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), backward->getRegions())) {
    OpBuilder branch = OpBuilder::atBlockBegin(&to.front());
    FailureOr<SmallVector<Value>> cotangents =
        walkBack(branch, op, from.front(), captured, c);
    if (failed(cotangents))
      return failure();
    scf::YieldOp::create(branch, op.getLoc(), *cotangents);
  }
  for (auto [value, cotangent] :
       llvm::zip_equal(captured, backward.getResults()))
    c.add(b, value, cotangent);
  return success();
}
