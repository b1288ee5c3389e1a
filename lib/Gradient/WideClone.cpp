//===- WideClone.cpp - A function's ops in f32 ----------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WideClone.h"
#include "linattn/Dialect/LinAttn.h"
#include "linattn/Dialect/Remarks.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

static bool isNarrow(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 16;
}

static Type widen(Type type) {
  if (!isNarrow(type))
    return type;
  Type wide = Float32Type::get(type.getContext());
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.clone(wide);
  return wide;
}

/// An op whose meaning depends on the width of its numbers, if any.
static Operation *findFixedWidth(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    Operation *found = nullptr;
    op->walk([&](Operation *nested) {
      bool isKnown =
          isa_and_nonnull<LinAttnDialect, affine::AffineDialect,
                          arith::ArithDialect, linalg::LinalgDialect,
                          math::MathDialect, scf::SCFDialect,
                          tensor::TensorDialect>(nested->getDialect());
      if (isKnown && !isa<arith::BitcastOp, tensor::BitcastOp>(nested))
        return WalkResult::advance();
      found = nested;
      return WalkResult::interrupt();
    });
    if (found)
      return found;
  }
  return nullptr;
}

namespace {

class WideClone {
public:
  WideClone(OpBuilder &b, IRMapping &mapping, SmallVectorImpl<Operation *> &ops)
      : b(b), mapping(mapping), ops(ops) {}

  void argument(Value from, Value to) {
    mapping.map(from, isNarrow(to.getType()) ? extend(to) : to);
  }

  void op(Operation &op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (isNarrow(constant.getType()))
        return mapping.map(constant.getResult(), extended(constant));
    if (isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      Value source = mapping.lookupOrDefault(op.getOperand(0));
      if (source.getType() == widen(op.getResult(0).getType()))
        return mapping.map(op.getResult(0), source);
    }
    Operation *copy = keep(b.insert(op.cloneWithoutRegions(mapping)));
    for (Value result : copy->getResults())
      result.setType(widen(result.getType()));
    for (auto [from, to] : llvm::zip_equal(op.getRegions(), copy->getRegions()))
      region(from, to);
  }

private:
  void region(Region &from, Region &to) {
    OpBuilder::InsertionGuard guard(b);
    ++depth;
    for (Block &block : from) {
      auto types = llvm::map_to_vector(block.getArgumentTypes(), widen);
      auto locations = llvm::map_to_vector(
          block.getArguments(), [](BlockArgument arg) { return arg.getLoc(); });
      Block *copy = b.createBlock(&to, to.end(), types, locations);
      mapping.map(block.getArguments(), copy->getArguments());
      for (Operation &nested : block)
        op(nested);
    }
    --depth;
  }

  Value extended(arith::ConstantOp op) {
    auto number = dyn_cast<FloatAttr>(op.getValue());
    if (!number)
      return extend(keep(b.clone(*op))->getResult(0));
    return keep(arith::ConstantOp::create(
                    b, op.getLoc(),
                    b.getF32FloatAttr(number.getValueAsDouble())))
        ->getResult(0);
  }

  Value extend(Value value) {
    return keep(arith::ExtFOp::create(b, value.getLoc(), widen(value.getType()),
                                      value))
        ->getResult(0);
  }

  /// Ops of nested regions belong to the op around them.
  Operation *keep(Operation *op) {
    if (depth == 0)
      ops.push_back(op);
    return op;
  }

  OpBuilder &b;
  IRMapping &mapping;
  SmallVectorImpl<Operation *> &ops;
  unsigned depth = 0;
};

} // namespace

SmallVector<Operation *> mlir::linattn::cloneWide(OpBuilder &b, Block &source,
                                                  ValueRange arguments,
                                                  IRMapping &mapping) {
  SmallVector<Operation *> from, ops;
  bool hasNarrow = llvm::any_of(source.getArgumentTypes(), isNarrow);
  for (Operation &op : source.without_terminator()) {
    from.push_back(&op);
    hasNarrow |= llvm::any_of(op.getResultTypes(), isNarrow);
  }
  Operation *fixed = hasNarrow ? findFixedWidth(from) : nullptr;
  if (fixed)
    remark::missed(fixed->getLoc(), remarkNamed("differentiate"))
        << ("gradients are rounded to 16 bits between ops: '" +
            fixed->getName().getStringRef() + "' takes numbers as they are")
               .str();
  if (!hasNarrow || fixed) {
    mapping.map(source.getArguments(), arguments);
    for (Operation *op : from)
      ops.push_back(b.clone(*op, mapping));
    return ops;
  }
  WideClone clone(b, mapping, ops);
  for (auto [argument, value] :
       llvm::zip_equal(source.getArguments(), arguments))
    clone.argument(argument, value);
  for (Operation *op : from)
    clone.op(*op);
  return ops;
}

Value mlir::linattn::convertTo(OpBuilder &b, Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (isNarrow(type))
    return arith::TruncFOp::create(b, value.getLoc(), type, value);
  return arith::ExtFOp::create(b, value.getLoc(), type, value);
}
