//===- CausalConvChannels.cpp - Convolution along channels ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors of channels. A task is a block of channels and of tokens:
//
//   head    the first S tokens, whose inputs are those of the state, from a
//           window of 2 S inputs per vector; then the final state
//   rows    a few tokens at once, so that weights and inputs are read once for
//           all of them, along all channels of the block
//
// Where the output's tokens are neighbours, squares of as many tokens as a
// vector has lanes are transposed in registers.
//
//===----------------------------------------------------------------------===//

#include "CausalConv.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

class ChannelConv : public ConvBuilder {
public:
  ChannelConv(OpBuilder &b, CausalConvOp conv, int64_t lanes,
              const ConvViews &views)
      : ConvBuilder(b, conv, lanes), views(views) {
    if (views.inputAxis == ConvAxis::None)
      parts = 1;
    rows = views.outputAxis == ConvAxis::Tokens ? lanes : rowsAtOnce;
  }

  void emit();

private:
  /// Tokens of a block, a multiple of the rows, and bytes of a row of it.
  static constexpr int64_t blockTokens = 128, blockBytes = 2048;
  static constexpr int64_t rowsAtOnce = 8;

  void emitHead(Value channel);
  void emitMain();
  void emitRows(Value position, Value channel, int64_t count, Value end);
  void packWeights();
  Value tokenOf(Value position) { return tokenAt(add(begin, position)); }
  /// `lanes` channels of one token, where nothing else is read.
  Value readRow(Value position, Value channel);
  void writeRow(Value y, Value position, Value channel);
  /// All parts of one token.
  Vectors readParts(Value position, Value channel);
  void writeParts(ArrayRef<Value> y, Value position, Value channel);
  void writeSquares(ArrayRef<Vectors> y, Value position, Value channel,
                    Value end);
  Value biasAt(Value channel) {
    return conv.getBias() ? readOperand(conv.getBias(), {channel}, lanes)
                          : Value();
  }

  ConvViews views;
  int64_t rows, blockChannels;
  // Of a task: its first channel, the one after its last, weights and the bias
  // by parts.
  Value channel0, channelEnd, weights, biases;
};

} // namespace

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value ChannelConv::readRow(Value position, Value channel) {
  Value token = tokenOf(position);
  if (views.inputAxis == ConvAxis::Channels)
    return readOperand(views.input, {batch, token, channel}, lanes);
  storeVector(zeros(lanes), lane, {index(0)});
  forEach(min(sub(dim(conv.getInput(), 2), channel), index(lanes)),
          [&](Value c) {
            store(loadAs(conv.getInput(), {batch, token, add(channel, c)}),
                  lane, {c});
          });
  return loadVector(lane, {index(0)}, lanes);
}

void ChannelConv::writeRow(Value y, Value position, Value channel) {
  Value token = tokenOf(position);
  if (views.outputAxis == ConvAxis::Channels)
    return writeOperand(y, views.output, {batch, token, channel});
  storeVector(y, lane, {index(0)});
  Type element = getElementTypeOrSelf(conv.getOutput());
  forEach(min(sub(dim(conv.getOutput(), 2), channel), index(lanes)),
          [&](Value c) {
            store(convert(load(lane, {c}), element), conv.getOutput(),
                  {batch, token, add(channel, c)});
          });
}

ConvBuilder::Vectors ChannelConv::readParts(Value position, Value channel) {
  if (views.inputAxis != ConvAxis::Channels)
    return {readRow(position, channel)};
  auto source = cast<MemRefType>(views.input.getType());
  Type element = source.getElementType();
  Value pad = arith::ConstantOp::create(b, loc, b.getFloatAttr(element, 0.0));
  Value read = vector::TransferReadOp::create(
      b, loc, VectorType::get(span(), element), views.input,
      ValueRange{batch, tokenOf(position), channel}, pad,
      ArrayRef<bool>{dividesLastDim(source, span())});
  return split(read);
}

void ChannelConv::writeParts(ArrayRef<Value> y, Value position, Value channel) {
  if (views.outputAxis != ConvAxis::Channels)
    return writeRow(y.front(), position, channel);
  auto target = cast<MemRefType>(views.output.getType());
  vector::TransferWriteOp::create(
      b, loc, join(y, target.getElementType()), views.output,
      ValueRange{batch, tokenOf(position), channel},
      ArrayRef<bool>{dividesLastDim(target, span())});
}

/// Squares of channels and tokens; those from `end` on are dropped.
void ChannelConv::writeSquares(ArrayRef<Vectors> y, Value position,
                               Value channel, Value end) {
  auto target = cast<MemRefType>(views.output.getType());
  Type element = target.getElementType();
  Value left = sub(end, position);
  bool reverse = conv.getReverse();
  for (int64_t part = 0; part < parts; ++part) {
    Vectors square;
    for (const Vectors &row : y)
      square.push_back(row[part]);
    // Memory goes from the first token on.
    if (reverse)
      std::reverse(square.begin(), square.end());
    square = transposeSquare(*this, square);
    for (auto [i, column] : llvm::enumerate(square)) {
      Value at = add(channel, index(int64_t(i) * parts + part));
      Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                           at, dim(conv.getOutput(), 2));
      ifThen(exists, [&, column = column] {
        Value mask, token = tokenOf(position);
        Value lanesLeft = index(lanes);
        if (getConstantIntValue(left) != lanes) {
          Type bits = VectorType::get(lanes, b.getI1Type());
          mask = vector::CreateMaskOp::create(b, loc, bits, ValueRange{left});
          lanesLeft = min(left, lanesLeft);
        }
        Value values = column;
        if (reverse) {
          // The last of the lanes is the first position. What is dropped
          // stands before it.
          token = sub(token, sub(lanesLeft, index(1)));
        }
        Value narrow = convert(values, element);
        if (!mask) {
          vector::StoreOp::create(b, loc, narrow, views.output,
                                  ValueRange{batch, at, token});
          return;
        }
        if (reverse) {
          Value buffer = lane;
          storeVector(values, buffer, {index(0)});
          forEach(lanesLeft, [&](Value i) {
            Value from = add(i, sub(index(lanes), lanesLeft));
            store(convert(load(buffer, {from}), element), views.output,
                  {batch, at, add(token, i)});
          });
          return;
        }
        vector::MaskedStoreOp::create(
            b, loc, views.output, ValueRange{batch, at, token}, mask, narrow);
      });
    }
  }
}

//===----------------------------------------------------------------------===//
// Head
//===----------------------------------------------------------------------===//

/// The tokens that see the state, and the final state, for one vector of
/// channels.
void ChannelConv::emitHead(Value channel) {
  if (stateLength == 0)
    return;
  Value length = index(stateLength), count = sub(end, begin),
        few = min(count, length);
  Value window =
      scratch({b.getIndexAttr(2 * stateLength), b.getIndexAttr(lanes)});
  constexpr int64_t fewEntries = 16;
  auto keep = [&](Value row, Value x) {
    storeVector(x, window, {row, index(0)});
  };
  auto windowAt = [&](Value row) {
    return loadVector(window, {row, index(0)}, lanes);
  };
  if (stateLength <= fewEntries)
    for (auto [k, x] :
         llvm::enumerate(loadInterleaved(conv.getState(), {slot}, channel)))
      keep(index(k), x);
  else
    forEach(min(sub(channelEnd, channel), index(lanes)), [&](Value c) {
      forEach(length, [&](Value k) {
        store(loadAs(conv.getState(), {slot, add(channel, c), k}), window,
              {k, c});
      });
    });
  auto keepTokens = [&](Value from) {
    forEach(few, [&](Value i) {
      keep(add(length, i), readRow(add(from, i), channel));
    });
  };
  keepTokens(index(0));
  Vectors head = loadInterleaved(conv.getWeight(), {}, channel);
  Value bias = biasAt(channel);
  forEach(few, [&](Value i) {
    Value y = convolve(head, bias, [&](int64_t tap) {
      return windowAt(add(i, index(stateLength - distance(tap))));
    });
    writeRow(y, i, channel);
  });
  Value isLong =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, count, length);
  ifThen(isLong, [&] { keepTokens(sub(count, length)); });
  if (stateLength <= fewEntries) {
    Vectors state;
    for (int64_t k = 0; k < stateLength; ++k)
      state.push_back(windowAt(add(few, index(k))));
    return storeInterleaved(state, conv.getState(), {slot}, channel);
  }
  Type element = getElementTypeOrSelf(conv.getState());
  forEach(min(sub(channelEnd, channel), index(lanes)), [&](Value c) {
    forEach(length, [&](Value k) {
      store(convert(load(window, {add(few, k), c}), element), conv.getState(),
            {slot, add(channel, c), k});
    });
  });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// Weights [tap, part, channel] and biases, as the rows read them.
void ChannelConv::packWeights() {
  forEach(channel0, channelEnd, span(), [&](Value channel) {
    Value at = sub(channel, channel0);
    auto pack = [&](int64_t tap, ArrayRef<Value> halves, Value target) {
      Vectors split(halves);
      if (parts == 2) {
        SmallVector<int64_t> even, odd;
        for (int64_t i = 0; i < lanes; ++i) {
          even.push_back(2 * i);
          odd.push_back(2 * i + 1);
        }
        split[0] =
            vector::ShuffleOp::create(b, loc, halves[0], halves[1], even);
        split[1] = vector::ShuffleOp::create(b, loc, halves[0], halves[1], odd);
      }
      for (int64_t part = 0; part < parts; ++part)
        storeVector(split[part], target,
                    {index(tap), add(at, index(part * lanes))});
    };
    SmallVector<Vectors> halves;
    Vectors bias;
    for (int64_t half = 0; half < parts; ++half) {
      Value from = add(channel, index(half * lanes));
      halves.push_back(loadInterleaved(conv.getWeight(), {}, from));
      if (conv.getBias())
        bias.push_back(biasAt(from));
    }
    for (int64_t tap = 0; tap < taps; ++tap)
      pack(tap,
           llvm::map_to_vector<2>(
               halves, [&](const Vectors &half) { return half[tap]; }),
           weights);
    if (conv.getBias())
      pack(0, bias, biases);
  });
}

/// `count` tokens from `position` on; of more than one, those from `end` on,
/// where it is given, repeat the last one and are dropped.
void ChannelConv::emitRows(Value position, Value channel, int64_t count,
                           Value end) {
  Value at = sub(channel, channel0);
  std::map<int64_t, Vectors> inputs;
  auto inputAt = [&](int64_t offset, int64_t part) {
    Vectors &read = inputs[offset];
    if (read.empty()) {
      Value from = add(position, index(offset));
      if (end)
        from = min(from, sub(end, index(1)));
      read = readParts(from, channel);
    }
    return read[part];
  };
  for (int64_t row = 0; row < count; ++row)
    for (int64_t tap = 0; tap < taps; ++tap)
      inputAt(row - distance(tap), 0);
  SmallVector<Vectors> y(count);
  for (int64_t part = 0; part < parts; ++part) {
    Vectors factors;
    Value from = add(at, index(part * lanes));
    for (int64_t tap = 0; tap < taps; ++tap)
      factors.push_back(loadVector(weights, {index(tap), from}, lanes));
    Value bias =
        conv.getBias() ? loadVector(biases, {index(0), from}, lanes) : Value();
    for (int64_t row = 0; row < count; ++row)
      y[row].push_back(convolve(factors, bias, [&](int64_t tap) {
        return inputAt(row - distance(tap), part);
      }));
  }
  if (views.outputAxis == ConvAxis::Tokens)
    return writeSquares(y, position, channel,
                        end ? end : add(position, index(count)));
  for (int64_t row = 0; row < count; ++row)
    writeParts(y[row], add(position, index(row)), channel);
}

void ChannelConv::emitMain() {
  Value from = max(first, index(stateLength));
  auto forEachPack = [&](function_ref<void(Value)> body) {
    forEach(channel0, channelEnd, span(), body);
  };
  Value hasRows =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, from, last);
  ifThen(hasRows, [&] {
    packWeights();
    Value whole = mul(div(sub(last, from), index(rows)), index(rows));
    Value rest = add(from, whole);
    forEach(from, rest, rows, [&](Value position) {
      forEachPack(
          [&](Value channel) { emitRows(position, channel, rows, Value()); });
    });
    if (views.outputAxis == ConvAxis::Tokens)
      return forEach(rest, last, rows, [&](Value position) {
        forEachPack(
            [&](Value channel) { emitRows(position, channel, rows, last); });
      });
    forEach(rest, last, 1, [&](Value position) {
      forEachPack(
          [&](Value channel) { emitRows(position, channel, 1, Value()); });
    });
  });
}

void ChannelConv::emit() {
  Value channels = dim(conv.getInput(), 2), slots = dim(conv.getState(), 0);
  Type element = getElementTypeOrSelf(conv.getInput());
  blockChannels = blockBytes * 8 / element.getIntOrFloatBitWidth();
  Value channelBlocks = ceilDiv(channels, blockChannels);
  Value blocks = countBlocks(blockTokens);
  Value perSlot = mul(channelBlocks, blocks);
  parallel(mul(slots, perSlot), [&](Value task) {
    Value inSlot = rem(task, perSlot);
    Value block = div(inSlot, channelBlocks);
    enterBlock(div(task, perSlot), block, blockTokens);
    channel0 = mul(rem(inSlot, channelBlocks), index(blockChannels));
    channelEnd = min(add(channel0, index(blockChannels)), channels);
    lane = scratch({b.getIndexAttr(lanes)});
    OpFoldResult padded = b.getIndexAttr(blockChannels);
    weights = scratch({b.getIndexAttr(taps), padded});
    biases = conv.getBias() ? scratch({b.getIndexAttr(1), padded}) : Value();
    Value isFirst = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                          block, index(0));
    ifThen(isFirst, [&] {
      forEach(channel0, channelEnd, lanes,
              [&](Value channel) { emitHead(channel); });
    });
    emitMain();
    freeScratch();
  });
}

void mlir::linattn::emitConvOverChannels(OpBuilder &b, CausalConvOp op,
                                         int64_t lanes,
                                         const ConvViews &views) {
  ChannelConv(b, op, lanes, views).emit();
}
