//===- ChannelTasks.cpp - Tasks of channels with states -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChannelTasks.h"

using namespace mlir;
using namespace mlir::linattn;

static bool hasUnitStride(Value memref) {
  return cast<MemRefType>(memref.getType()).isLastDimUnitStride();
}

// Rows are whole vectors, or those of few states.
void ChannelTasks::clear(Value buffer, Value from, Value rows) {
  Value zero = constant(type, 0.0);
  forEach(rows, [&](Value i) {
    forEach(dim(buffer, 1),
            [&](Value j) { store(zero, buffer, {add(from, i), j}); });
  });
}

void ChannelTasks::forEachState(
    const Channels &channels, ValueRange prefix, Value row,
    function_ref<void(ValueRange, ValueRange)> body) {
  forEach(channels.count, [&](Value c) {
    forEach(states, [&](Value n) {
      SmallVector<Value> at(prefix);
      at.append({add(channels.first, c), n});
      body(at, {add(row, n), c});
    });
  });
}

void ChannelTasks::packStates(const Channels &channels, Value operand,
                              ValueRange prefix, Value target, Value row) {
  forEachState(channels, prefix, row, [&](ValueRange at, ValueRange packed) {
    store(loadAs(operand, at), target, packed);
  });
}

void ChannelTasks::storeStates(const Channels &channels, Value packed,
                               Value row, Value operand, ValueRange prefix) {
  forEachState(channels, prefix, row, [&](ValueRange at, ValueRange from) {
    store(load(packed, from), operand, at);
  });
}

void ChannelTasks::packTokens(const Channels &channels, Value operand,
                              Value first, Value tokens, Value target,
                              Value row) {
  if (hasUnitStride(operand) && width > 1) {
    // A vector may reach into the next group.
    Value mask;
    if (grouped)
      mask = vector::CreateMaskOp::create(
          b, loc, VectorType::get(width, b.getI1Type()), channels.count);
    forEach(tokens, [&](Value t) {
      Value token = tokenAt(add(first, t));
      Value x = readOperand(operand, {batch, token, channels.first}, width);
      storeVector(grouped ? select(mask, x, zeros(width)) : x, target,
                  {add(row, t), index(0)});
    });
    return;
  }
  forEach(channels.count, [&](Value c) {
    forEach(tokens, [&](Value t) {
      Value token = tokenAt(add(first, t));
      store(loadAs(operand, {batch, token, add(channels.first, c)}), target,
            {add(row, t), c});
    });
  });
}

void ChannelTasks::writeTokens(const Channels &channels, Value packed,
                               Value row, Value first, Value tokens,
                               Value operand) {
  Type element = cast<MemRefType>(operand.getType()).getElementType();
  // A vector may reach into the next group.
  if (hasUnitStride(operand) && !grouped && width > 1) {
    forEach(tokens, [&](Value t) {
      writeOperand(loadVector(packed, {add(row, t), index(0)}, width), operand,
                   {batch, tokenAt(add(first, t)), channels.first});
    });
    return;
  }
  forEach(channels.count, [&](Value c) {
    forEach(tokens, [&](Value t) {
      Value token = tokenAt(add(first, t));
      store(convert(load(packed, {add(row, t), c}), element), operand,
            {batch, token, add(channels.first, c)});
    });
  });
}

SmallVector<Value> ChannelTasks::projectionRow(Value operand, Value batch,
                                               Value group, Value token) {
  if (rankOf(operand) == 4)
    return {batch, group, token};
  return {batch, token};
}

void ChannelTasks::packProjection(Value operand, Value group, Value first,
                                  Value tokens, Value target) {
  if (!target)
    return;
  forEach(tokens, [&](Value t) {
    SmallVector<Value> at =
        projectionRow(operand, batch, group, tokenAt(add(first, t)));
    at.push_back(Value());
    forEach(states, [&](Value n) {
      at.back() = n;
      store(loadAs(operand, at), target, {t, n});
    });
  });
}
