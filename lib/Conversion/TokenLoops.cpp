//===- TokenLoops.cpp - Recurrences as loops over tokens ------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenLoops.h"
#include "linattn/Dialect/EmitLoop.h"

using namespace mlir;
using namespace mlir::linattn;

SmallVector<Value>
TokenLoops::loop(Value from, Value to, ValueRange carried,
                 function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return emitLoop(b, loc, from, to, index(1), carried, body);
}

Value TokenLoops::take(Value x, int64_t dim, Value at, bool drop) {
  auto type = cast<RankedTensorType>(x.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, x),
                            offsets(sizes.size(), b.getIndexAttr(0)),
                            strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = at;
  sizes[dim] = b.getIndexAttr(1);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = 1;
  if (drop)
    shape.erase(shape.begin() + dim);
  return tensor::ExtractSliceOp::create(b, loc, type.clone(shape), x, offsets,
                                        sizes, strides);
}

Value TokenLoops::insert(Value part, Value x, int64_t dim, Value at) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, x),
                            offsets(sizes.size(), b.getIndexAttr(0)),
                            strides(sizes.size(), b.getIndexAttr(1));
  offsets[dim] = at;
  sizes[dim] = b.getIndexAttr(1);
  return tensor::InsertSliceOp::create(b, loc, part, x, offsets, sizes,
                                       strides);
}

SmallVector<Value> TokenLoops::emitTokens(Value begin, Value end,
                                          ValueRange carried, Step step) {
  return loop(begin, end, carried, [&](Value at, ValueRange carried) {
    position = arith::SubIOp::create(b, loc, at, begin);
    Value token = at;
    if (op.isReversed()) // begin + end − 1 − position
      token = arith::SubIOp::create(
          b, loc, arith::SubIOp::create(b, loc, end, index(1)), position);
    SmallVector<Value> slices(op->getOperands());
    llvm::copy(carried, slices.begin() + firstInit);
    for (auto [number, operand] : llvm::enumerate(slices))
      if (std::optional<int64_t> dim = tokenDim(number))
        operand = take(operand, *dim, token, /*drop=*/true);
    // An op of its own for the names of its operands alone.
    Operation *part = cloneStructured(b, op, TypeRange(), slices);
    SmallVector<Value> next = step(part);
    part->erase();
    for (unsigned i = 0; firstInit + i < firstState; ++i)
      next[i] = insert(next[i], carried[i], *tokenDim(firstInit + i), token);
    return next;
  });
}

SmallVector<Value> TokenLoops::emitSequences(Step step) {
  ValueRange inits = op->getOperands().drop_front(firstInit);
  Value offsets = op.getSequenceOffsets();
  auto sizeOf = [&](Value x, int64_t dim) {
    return getValueOrCreateConstantIndexOp(
        b, loc, tensor::getMixedSize(b, loc, x, dim));
  };
  if (!offsets)
    return emitTokens(index(0), sizeOf(inits.front(), op.getTokenLoop()), inits,
                      step);
  auto offset = [&](Value at) -> Value {
    Value number = tensor::ExtractOp::create(b, loc, offsets, ValueRange{at});
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
  };
  Value count = arith::SubIOp::create(b, loc, sizeOf(offsets, 0), index(1));
  unsigned outputs = firstState - firstInit;
  return loop(index(0), count, inits, [&](Value slot, ValueRange carried) {
    sequence = slot;
    SmallVector<Value> own(carried);
    for (Value &state : MutableArrayRef(own).drop_front(outputs))
      state = take(state, 0, slot, /*drop=*/false);
    Value last = offset(arith::AddIOp::create(b, loc, slot, index(1)));
    own = emitTokens(offset(slot), last, own, step);
    for (size_t i = outputs; i < own.size(); ++i)
      own[i] = insert(own[i], carried[i], 0, slot);
    return own;
  });
}
