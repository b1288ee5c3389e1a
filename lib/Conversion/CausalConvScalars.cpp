//===- CausalConvScalars.cpp - Causal convolutions in scalar loops --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Element by element, channel by channel.
//
//===----------------------------------------------------------------------===//

#include "CausalConv.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class ScalarConv : public ConvBuilder {
public:
  ScalarConv(OpBuilder &b, CausalConvOp conv) : ConvBuilder(b, conv, 1) {}

  void emit();

private:
  /// Reads the input at position `from`: from the sequence, or, where `from` is
  /// negative, from the state.
  Value readInput(Value from, function_ref<Value(Value, ValueRange)> read);
  void updateState(Value count);
  void enterChannel(Value sequence, Value ofChannel);
  void emitOutput(Value position);
  void emitApart(Value slots, Value channels);

  Value channel, bias;
  SmallVector<Value> weights;
};

} // namespace

Value ScalarConv::readInput(Value from,
                            function_ref<Value(Value, ValueRange)> read) {
  Value isInside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, from, index(0));
  return branch(
             isInside,
             [&]() -> Vectors {
               return {read(conv.getInput(),
                            {batch, tokenAt(add(begin, from)), channel})};
             },
             [&]() -> Vectors {
               return {read(conv.getState(),
                            {slot, channel, add(from, index(stateLength))})};
             })
      .front();
}

/// The last S of the inputs that the state held and those of the sequence.
/// Nothing is read after it was written: entries move towards the first.
void ScalarConv::updateState(Value count) {
  forEach(index(stateLength), [&](Value entry) {
    Value from = sub(add(entry, count), index(stateLength));
    Value input = readInput(from, [&](Value memref, ValueRange at) -> Value {
      return load(memref, at);
    });
    store(input, conv.getState(), {slot, channel, entry});
  });
}

void ScalarConv::enterChannel(Value sequence, Value ofChannel) {
  enterSequence(sequence);
  channel = ofChannel;
  weights.clear();
  for (int64_t tap = 0; tap < taps; ++tap)
    weights.push_back(loadAs(conv.getWeight(), {channel, index(tap)}));
  bias = conv.getBias() ? loadAs(conv.getBias(), {channel}) : Value();
}

void ScalarConv::emitOutput(Value position) {
  Value y = activate(sum(weights, bias, [&](int64_t tap) {
    return readInput(
        sub(position, index(distance(tap))),
        [&](Value memref, ValueRange at) { return loadAs(memref, at); });
  }));
  write(y, conv.getOutput(), {batch, tokenAt(add(begin, position)), channel});
}

void ScalarConv::emit() {
  Value channels = dim(conv.getInput(), 2), slots = dim(conv.getState(), 0);
  // The state is written when all have read it. Where packed sequences end is
  // not known.
  bool isApart = forThreads && !conv.getCuSeqlens();
  if (isApart)
    emitApart(slots, channels);
  parallel(mul(slots, channels), [&](Value task) {
    enterChannel(div(task, channels), rem(task, channels));
    Value count = sub(end, begin);
    if (!isApart)
      forEach(count, [&](Value position) { emitOutput(position); });
    updateState(count);
  });
}

/// One thread per output. Neighbouring threads have neighbouring addresses:
/// channels, or tokens if the input's channels are strided at run time.
void ScalarConv::emitApart(Value slots, Value channels) {
  Value tokens = dim(conv.getInput(), 1), perSlot = mul(tokens, channels);
  auto emitAlong = [&](bool alongChannels) {
    parallel(mul(slots, perSlot), [&](Value task) {
      Value inSlot = rem(task, perSlot);
      Value fast = alongChannels ? channels : tokens;
      Value slow = div(inSlot, fast), at = rem(inSlot, fast);
      enterChannel(div(task, perSlot), alongChannels ? at : slow);
      emitOutput(alongChannels ? slow : at);
    });
  };
  auto type = cast<MemRefType>(conv.getInput().getType());
  if (type.isLastDimUnitStride())
    return emitAlong(true);
  auto metadata =
      memref::ExtractStridedMetadataOp::create(b, loc, conv.getInput());
  Value hasUnitChannels = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::eq, metadata.getStrides().back(), index(1));
  auto branch = scf::IfOp::create(b, loc, hasUnitChannels, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitAlong(true);
  b.setInsertionPointToStart(branch.elseBlock());
  emitAlong(false);
}

void mlir::linattn::lowerToNaiveLoops(OpBuilder &b, CausalConvOp op,
                                      bool lanes) {
  ScalarConv conv(b, op);
  conv.forThreads = lanes;
  conv.emit();
}
