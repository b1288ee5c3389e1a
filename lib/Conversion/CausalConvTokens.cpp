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
      : ConvBuilder(b, conv, lanes), views(views),
        headLength(llvm::alignTo(stateLength, span())) {}

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
  void fillWindow(const Channel &channel, Value window, Value few);
  void updateState(const Channel &channel, Value window);
  void computeHead(const Channel &channel, Value few, Value row);
  void writeHead(const Channel &channel, Value few, Value row);
  void writeHeads(Value channel0, Value few);
  void emitRow(const Channel &channel);
  void emitSquares(Value channel0);
  void writeSquare(ArrayRef<Value> y, Value token, Value channel0,
                   bool isWhole);
  Vectors sumsAt(const Channel &channel, Value token, bool isWhole);
  Vectors inputsAt(Value channel, Value token, bool isWhole);
  Value tokenOf(Value position) { return tokenAt(add(begin, position)); }
  /// How far behind its output in memory the input of a weight is.
  int64_t offsetOf(int64_t tap) {
    return conv.getReverse() ? distance(tap) : -distance(tap);
  }
  void forEachStep(int64_t count,
                   function_ref<void(Value, int64_t, bool)> body);

  ConvViews views;
  /// The positions that are computed from a window of state and inputs: those
  /// that see the state, up to a whole vector.
  int64_t headLength;
  /// Scratch memory of a task: the window of a channel, and its outputs, or
  /// those of as many channels as there are lanes.
  Value windows, heads;
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

/// The last S inputs; one after the other, since their places in memory may be
/// those of what is read.
void TokenConv::updateState(const Channel &channel, Value window) {
  Value length = index(stateLength), count = sub(end, begin);
  Type element = getElementTypeOrSelf(conv.getState());
  forEach(length, [&](Value i) {
    Value from = sub(add(i, count), length);
    Value isInside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge,
                                           from, index(0));
    Vectors input = branch(
        isInside,
        [&]() -> Vectors {
          return {
              load(conv.getInput(), {batch, tokenOf(from), channel.number})};
        },
        [&]() -> Vectors {
          return {convert(load(window, {add(i, count)}), element)};
        });
    store(input.front(), conv.getState(), {slot, channel.number, i});
  });
}

/// The state and the first tokens, of which `few` exist, in the order in which
/// they run.
void TokenConv::fillWindow(const Channel &channel, Value window, Value few) {
  Value length = index(stateLength);
  forEach(length, [&](Value i) {
    store(loadAs(conv.getState(), {slot, channel.number, i}), window, {i});
  });
  if (!conv.getReverse()) {
    // Lanes behind the last token are not used.
    for (int64_t i = 0; i < headLength; i += lanes)
      storeVector(readOperand(views.input,
                              {batch, channel.number, add(begin, index(i))},
                              lanes),
                  window, {index(stateLength + i)});
    return;
  }
  forEach(few, [&](Value i) {
    store(loadAs(conv.getInput(), {batch, tokenOf(i), channel.number}), window,
          {add(length, i)});
  });
}

/// The tokens that see the state, and whole vectors from there on, to `row` of
/// scratch memory; and the final state.
void TokenConv::computeHead(const Channel &channel, Value few, Value row) {
  Value window = windows;
  fillWindow(channel, window, few);
  Vectors sums;
  for (int64_t i = 0; i < headLength; i += lanes) {
    sums.push_back(sum(channel.weights, channel.bias, [&](int64_t tap) {
      return loadVector(window, {index(i + stateLength - distance(tap))},
                        lanes);
    }));
    if (i + lanes < headLength && int64_t(sums.size()) < parts)
      continue;
    for (auto [k, y] : llvm::enumerate(activate(sums))) {
      int64_t at = i + (int64_t(k) + 1 - int64_t(sums.size())) * lanes;
      storeVector(y, heads, {row, index(at)});
    }
    sums.clear();
  }
  updateState(channel, window);
}

/// Outputs of the head, one channel's.
void TokenConv::writeHead(const Channel &channel, Value few, Value row) {
  Type element = getElementTypeOrSelf(conv.getOutput());
  if (conv.getReverse() || views.outputAxis != ConvAxis::Tokens) {
    forEach(few, [&](Value i) {
      store(convert(load(heads, {row, i}), element), conv.getOutput(),
            {batch, tokenOf(i), channel.number});
    });
    return;
  }
  for (int64_t i = 0; i < headLength; i += lanes) {
    Value mask = vector::CreateMaskOp::create(
        b, loc, VectorType::get(lanes, b.getI1Type()),
        ValueRange{sub(few, index(i))});
    vector::MaskedStoreOp::create(
        b, loc, views.output,
        ValueRange{batch, channel.number, add(begin, index(i))}, mask,
        convert(loadVector(heads, {row, index(i)}, lanes), element));
  }
}

/// The outputs of the head by tokens: squares of channels and tokens.
void TokenConv::writeHeads(Value channel0, Value few) {
  for (int64_t i = 0; i < headLength; i += lanes) {
    Vectors square;
    for (int64_t row = 0; row < lanes; ++row)
      square.push_back(loadVector(heads, {index(row), index(i)}, lanes));
    for (auto [k, row] : llvm::enumerate(transposeSquare(*this, square))) {
      Value position = index(i + int64_t(k));
      ifThen(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, position,
                                   few),
             [&, row = row] {
               writeOperand(row, views.output,
                            {batch, tokenOf(position), channel0});
             });
    }
  }
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

/// The sums from `token` on, all of which exist if `isWhole`.
ConvBuilder::Vectors TokenConv::sumsAt(const Channel &channel, Value token,
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
    y.push_back(sum(channel.weights, channel.bias, [&](int64_t tap) {
      return inputAt(offsetOf(tap) + part);
    }));
  return y;
}

/// Runs over the tokens in steps of `count` vectors, then of one, then over
/// those that do not fill a vector.
void TokenConv::forEachStep(int64_t count,
                            function_ref<void(Value, int64_t, bool)> body) {
  Value from = lowest;
  for (int64_t each : {count, int64_t(1)}) {
    Value step = index(each * span());
    Value left = max(sub(highest, from), index(0));
    Value to = add(from, mul(div(left, step), step));
    forEach(from, to, each * span(),
            [&](Value token) { body(token, each, true); });
    from = to;
    if (count == 1)
      break;
  }
  forEach(from, highest, span(), [&](Value token) { body(token, 1, false); });
}

void TokenConv::emitRow(const Channel &channel) {
  Type element = getElementTypeOrSelf(conv.getOutput());
  forEachStep(
      outputsAtOnce / parts, [&](Value first, int64_t count, bool isWhole) {
        Vectors sums;
        auto tokenOf = [&](int64_t i) { return add(first, index(i * span())); };
        for (int64_t i = 0; i < count; ++i)
          llvm::append_range(sums, sumsAt(channel, tokenOf(i), isWhole));
        Vectors all = activate(sums);
        for (int64_t i = 0; i < count; ++i) {
          Value y = join(ArrayRef(all).slice(i * parts, parts), element);
          SmallVector<Value> at{batch, channel.number, tokenOf(i)};
          if (isWhole) {
            vector::StoreOp::create(b, loc, y, views.output, at);
            continue;
          }
          // The next tokens may belong to another sequence.
          Value mask = vector::CreateMaskOp::create(
              b, loc, VectorType::get(span(), b.getI1Type()),
              ValueRange{sub(highest, first)});
          vector::MaskedStoreOp::create(b, loc, views.output, at, mask, y);
        }
      });
}

//===----------------------------------------------------------------------===//
// Squares
//===----------------------------------------------------------------------===//

/// The outputs of each channel, by parts.
void TokenConv::writeSquare(ArrayRef<Value> y, Value token, Value channel0,
                            bool isWhole) {
  for (int64_t part = 0; part < parts; ++part) {
    Vectors square;
    for (int64_t i = part; i < lanes * parts; i += parts)
      square.push_back(y[i]);
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
  // A row of numbers for each channel. The last channel stands in for missing
  // ones, whose outputs are dropped.
  Value numbers = scratch({b.getIndexAttr(lanes), b.getIndexAttr(taps + 1)});
  auto channelAt = [&](Value i) { return min(add(channel0, i), lastChannel); };
  forEach(index(lanes), [&](Value i) {
    for (int64_t tap = 0; tap < taps; ++tap)
      store(loadAs(conv.getWeight(), {channelAt(i), index(tap)}), numbers,
            {i, index(tap)});
    if (conv.getBias())
      store(loadAs(conv.getBias(), {channelAt(i)}), numbers, {i, index(taps)});
  });
  forEachStep(1, [&](Value token, int64_t, bool isWhole) {
    Vectors sums, outputs;
    for (int64_t i = 0; i < lanes; ++i) {
      Channel channel{channelAt(index(i)), {}, {}};
      auto number = [&](int64_t tap) {
        return splat(load(numbers, {index(i), index(tap)}), lanes);
      };
      for (int64_t tap = 0; tap < taps; ++tap)
        channel.weights.push_back(number(tap));
      if (conv.getBias())
        channel.bias = number(taps);
      llvm::append_range(sums, sumsAt(channel, token, isWhole));
      if (int64_t(sums.size()) < std::min(outputsAtOnce, lanes * parts))
        continue;
      llvm::append_range(outputs, activate(sums));
      sums.clear();
    }
    writeSquare(outputs, token, channel0, isWhole);
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
  parallelIfLarge(conv.getInput(), mul(slots, perSlot), [&](Value task) {
    Value inSlot = rem(task, perSlot);
    Value block = rem(inSlot, blocks);
    enterBlock(div(task, perSlot), block, blockTokens);
    Value channel0 = mul(div(inSlot, blocks), index(lanes));
    Value channelEnd = min(add(channel0, index(lanes)), channels);
    lane = scratch({b.getIndexAttr(lanes)});
    Value from = min(max(first, index(headLength)), last);
    lowest = add(begin, from);
    highest = add(begin, last);
    if (conv.getReverse()) {
      lowest = sub(end, last);
      highest = sub(end, from);
    }
    bool hasRows = views.outputAxis == ConvAxis::Tokens;
    windows = scratch({b.getIndexAttr(stateLength + headLength)});
    heads = scratch(
        {b.getIndexAttr(hasRows ? 1 : lanes), b.getIndexAttr(headLength)});
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          block, index(0));
    Value few = min(sub(end, begin), index(headLength));
    forEach(channel0, channelEnd, 1, [&](Value number) {
      Channel channel = loadChannel(number);
      Value row = hasRows ? index(0) : sub(number, channel0);
      if (headLength > 0)
        ifThen(isFirst, [&] {
          computeHead(channel, few, row);
          if (hasRows)
            writeHead(channel, few, row);
        });
      if (hasRows)
        emitRow(channel);
    });
    if (!hasRows) {
      if (headLength > 0)
        ifThen(isFirst, [&] { writeHeads(channel0, few); });
      emitSquares(channel0);
    }
    freeScratch();
  });
}

void mlir::linattn::emitConvOverTokens(OpBuilder &b, CausalConvOp op,
                                       int64_t lanes, const ConvViews &views) {
  TokenConv(b, op, lanes, views).emit();
}
