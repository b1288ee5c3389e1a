//===- CausalConvTokens.cpp - Convolution along tokens --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors of tokens of one channel, for inputs [B, C, T]: the inputs of a
// weight are the same memory some elements before. A task is a block of
// channels and of tokens. Where the output's channels are neighbours, the
// vectors of as many channels as there are lanes are transposed in registers.
//
//===----------------------------------------------------------------------===//

#include "CausalConv.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class TokenConv : public ConvBuilder {
public:
  TokenConv(OpBuilder &b, CausalConvOp conv, int64_t lanes,
            const ConvViews &views)
      : ConvBuilder(b, conv, lanes), views(views) {}

  void emit();

private:
  /// A multiple of every vector.
  static constexpr int64_t blockTokens = 1024;

  struct Channel {
    Value number;
    Vectors weights;
    Value bias;
  };
  Channel loadChannel(Value number);
  void emitHead(const Channel &channel);
  void emitRow(const Channel &channel);
  void emitSquares(Value channel0);
  void writeSquare(ArrayRef<Vectors> y, Value token, Value channel0,
                   bool isWhole);
  Vectors outputsAt(const Channel &channel, Value token, bool isWhole);
  Vectors inputsAt(Value channel, Value token, bool isWhole);
  Value tokenOf(Value position) { return tokenAt(add(begin, position)); }
  /// How far behind its output in memory the input of a weight is.
  int64_t offsetOf(int64_t tap) {
    return conv.getReverse() ? distance(tap) : -distance(tap);
  }
  void forEachVector(function_ref<void(Value, bool)> body);

  ConvViews views;
  /// The tokens behind the head, in the order of memory.
  Value lowest, highest;
};

} // namespace

TokenConv::Channel TokenConv::loadChannel(Value number) {
  Channel channel{number, {}, {}};
  for (int64_t tap = 0; tap < taps; ++tap)
    channel.weights.push_back(
        splat(loadAs(conv.getWeight(), {number, index(tap)}), lanes));
  if (conv.getBias())
    channel.bias = splat(loadAs(conv.getBias(), {number}), lanes);
  return channel;
}

//===----------------------------------------------------------------------===//
// Head
//===----------------------------------------------------------------------===//

/// The tokens that see the state, and the final state.
void TokenConv::emitHead(const Channel &channel) {
  if (stateLength == 0)
    return;
  Value length = index(stateLength), count = sub(end, begin),
        few = min(count, length);
  // The last vector may reach beyond the window.
  Value window = scratch({b.getIndexAttr(2 * stateLength + lanes)});
  Type element = getElementTypeOrSelf(conv.getOutput());
  forEach(length, [&](Value i) {
    store(loadAs(conv.getState(), {slot, channel.number, i}), window, {i});
  });
  auto keepTokens = [&](Value from) {
    forEach(few, [&](Value i) {
      store(loadAs(conv.getInput(),
                   {batch, tokenOf(add(from, i)), channel.number}),
            window, {add(length, i)});
    });
  };
  keepTokens(index(0));
  forEach(index(0), few, lanes, [&](Value i) {
    Value y = convolve(channel.weights, channel.bias, [&](int64_t tap) {
      return loadVector(window, {add(i, index(stateLength - distance(tap)))},
                        lanes);
    });
    storeVector(y, lane, {index(0)});
    forEach(min(sub(few, i), index(lanes)), [&](Value j) {
      store(convert(load(lane, {j}), element), conv.getOutput(),
            {batch, tokenOf(add(i, j)), channel.number});
    });
  });
  Value isLong =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, count, length);
  ifThen(isLong, [&] { keepTokens(sub(count, length)); });
  forEach(length, [&](Value i) {
    store(convert(load(window, {add(few, i)}), element), conv.getState(),
          {slot, channel.number, i});
  });
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

ConvBuilder::Vectors TokenConv::inputsAt(Value channel, Value token,
                                         bool isWhole) {
  auto source = cast<MemRefType>(views.input.getType());
  Type element = source.getElementType();
  Value pad = arith::ConstantOp::create(b, loc, b.getFloatAttr(element, 0.0));
  Value read = vector::TransferReadOp::create(
      b, loc, VectorType::get(span(), element), views.input,
      ValueRange{batch, channel, token}, pad, ArrayRef<bool>{isWhole});
  return split(read);
}

/// The outputs from `token` on, all of which exist if `isWhole`.
ConvBuilder::Vectors TokenConv::outputsAt(const Channel &channel, Value token,
                                          bool isWhole) {
  std::map<int64_t, Vectors> read;
  int64_t lowestOffset = std::min(offsetOf(0), int64_t(0));
  // Every second element from an offset on: the first part of what begins
  // there, or the second one of what begins an element before.
  auto inputAt = [&](int64_t offset) {
    int64_t part = parts == 2 && (offset - lowestOffset) % 2;
    Vectors &inputs = read[offset - part];
    if (inputs.empty())
      inputs =
          inputsAt(channel.number, add(token, index(offset - part)), isWhole);
    return inputs[part];
  };
  Vectors y;
  for (int64_t part = 0; part < parts; ++part)
    y.push_back(convolve(channel.weights, channel.bias, [&](int64_t tap) {
      return inputAt(offsetOf(tap) + part);
    }));
  return y;
}

void TokenConv::forEachVector(function_ref<void(Value, bool)> body) {
  Value count = max(sub(highest, lowest), index(0));
  Value rest = add(lowest, mul(div(count, index(span())), index(span())));
  forEach(lowest, rest, span(), [&](Value token) { body(token, true); });
  forEach(rest, highest, span(), [&](Value token) { body(token, false); });
}

void TokenConv::emitRow(const Channel &channel) {
  Type element = getElementTypeOrSelf(conv.getOutput());
  forEachVector([&](Value token, bool isWhole) {
    Value y = join(outputsAt(channel, token, isWhole), element);
    SmallVector<Value> at{batch, channel.number, token};
    if (isWhole) {
      vector::StoreOp::create(b, loc, y, views.output, at);
      return;
    }
    // What follows may belong to another sequence.
    Value mask = vector::CreateMaskOp::create(
        b, loc, VectorType::get(span(), b.getI1Type()),
        ValueRange{sub(highest, token)});
    vector::MaskedStoreOp::create(b, loc, views.output, at, mask, y);
  });
}

//===----------------------------------------------------------------------===//
// Squares
//===----------------------------------------------------------------------===//

void TokenConv::writeSquare(ArrayRef<Vectors> y, Value token, Value channel0,
                            bool isWhole) {
  for (int64_t part = 0; part < parts; ++part) {
    Vectors square;
    for (const Vectors &row : y)
      square.push_back(row[part]);
    for (auto [i, row] : llvm::enumerate(transposeSquare(*this, square))) {
      Value at = add(token, index(int64_t(i) * parts + part));
      auto write = [&, row = row] {
        writeOperand(row, views.output, {batch, at, channel0});
      };
      if (isWhole)
        write();
      else
        ifThen(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at,
                                     highest),
               write);
    }
  }
}

/// As many channels as there are lanes.
void TokenConv::emitSquares(Value channel0) {
  Value lastChannel = sub(dim(conv.getInput(), 2), index(1));
  // A row of numbers for each channel; the last one stands in for those that
  // are not there, whose outputs are dropped.
  Value numbers = scratch({b.getIndexAttr(lanes), b.getIndexAttr(taps + 1)});
  auto channelAt = [&](Value i) { return min(add(channel0, i), lastChannel); };
  forEach(index(lanes), [&](Value i) {
    for (int64_t tap = 0; tap < taps; ++tap)
      store(loadAs(conv.getWeight(), {channelAt(i), index(tap)}), numbers,
            {i, index(tap)});
    if (conv.getBias())
      store(loadAs(conv.getBias(), {channelAt(i)}), numbers, {i, index(taps)});
  });
  forEachVector([&](Value token, bool isWhole) {
    SmallVector<Vectors> y;
    for (int64_t i = 0; i < lanes; ++i) {
      Channel channel{channelAt(index(i)), {}, {}};
      auto number = [&](int64_t tap) {
        return splat(load(numbers, {index(i), index(tap)}), lanes);
      };
      for (int64_t tap = 0; tap < taps; ++tap)
        channel.weights.push_back(number(tap));
      if (conv.getBias())
        channel.bias = number(taps);
      y.push_back(outputsAt(channel, token, isWhole));
    }
    writeSquare(y, token, channel0, isWhole);
  });
}

//===----------------------------------------------------------------------===//
// Tasks
//===----------------------------------------------------------------------===//

void TokenConv::emit() {
  Value channels = dim(conv.getInput(), 2), slots = dim(conv.getState(), 0);
  Value channelBlocks = ceilDiv(channels, lanes);
  Value blocks = countBlocks(blockTokens);
  Value perSlot = mul(channelBlocks, blocks);
  parallel(mul(slots, perSlot), [&](Value task) {
    Value inSlot = rem(task, perSlot);
    Value block = rem(inSlot, blocks);
    enterBlock(div(task, perSlot), block, blockTokens);
    Value channel0 = mul(div(inSlot, blocks), index(lanes));
    Value channelEnd = min(add(channel0, index(lanes)), channels);
    lane = scratch({b.getIndexAttr(lanes)});
    Value from = min(max(first, index(stateLength)), last);
    lowest = add(begin, from);
    highest = add(begin, last);
    if (conv.getReverse()) {
      lowest = sub(end, last);
      highest = sub(end, from);
    }
    bool hasRows = views.outputAxis == ConvAxis::Tokens;
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          block, index(0));
    forEach(channel0, channelEnd, 1, [&](Value number) {
      Channel channel = loadChannel(number);
      ifThen(isFirst, [&] { emitHead(channel); });
      if (hasRows)
        emitRow(channel);
    });
    if (!hasRows)
      emitSquares(channel0);
    freeScratch();
  });
}

void mlir::linattn::emitConvOverTokens(OpBuilder &b, CausalConvOp op,
                                       int64_t lanes, const ConvViews &views) {
  TokenConv(b, op, lanes, views).emit();
}
