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
  }

  void emit();

private:
  /// Tokens of a block, and bytes of a row of it.
  static constexpr int64_t blockTokens = 120, blockBytes = 2048;
  /// Tokens computed for all channels of a block at a time. Few, because their
  /// rows are far apart in memory.
  int64_t rowsAtOnce() const { return parts == 2 ? 6 : outputsAtOnce; }

  void emitHead(Value channel);
  void emitMain();
  void loadColumn(Value channel);
  void emitOutputs(Value position, int64_t count, Value channel,
                   SmallVector<Value> &window,
                   function_ref<void(Value, ArrayRef<Value>)> write);
  void emitColumn(Value from, Value to, Value channel,
                  function_ref<void(Value, ArrayRef<Value>)> write);
  void emitSquare(Value position, Value to, Value channel);
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
  int64_t blockChannels;
  // Of a task: its first channel, the one after its last, weights and the bias
  // by parts.
  Value channel0, channelEnd, weights, biases;
  Value square;
  // The inputs of the head, for one vector of channels.
  Value window;
  // Of a column: weights by parts and taps, the bias by parts.
  SmallVector<Vectors> factors;
  Vectors bias;
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
          // The last of the lanes is the first position. The lanes
          // before it are dropped.
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
    Value y = activate(sum(head, bias, [&](int64_t tap) {
      return windowAt(add(i, index(stateLength - distance(tap))));
    }));
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

void ChannelConv::loadColumn(Value channel) {
  Value at = sub(channel, channel0);
  factors.assign(parts, {});
  bias.clear();
  for (int64_t part = 0; part < parts; ++part) {
    Value column = add(at, index(part * lanes));
    for (int64_t tap = 0; tap < taps; ++tap)
      factors[part].push_back(loadVector(weights, {index(tap), column}, lanes));
    bias.push_back(conv.getBias()
                       ? loadVector(biases, {index(0), column}, lanes)
                       : Value());
  }
}

/// The outputs of `count` positions. The window has the inputs before them,
/// position by position, and in the end those before the next one; without one
/// all are read.
void ChannelConv::emitOutputs(
    Value position, int64_t count, Value channel, SmallVector<Value> &window,
    function_ref<void(Value, ArrayRef<Value>)> write) {
  bool isDense = conv.getDilation() == 1;
  Vectors sums;
  for (int64_t i = 0; i < count; ++i) {
    Value at = add(position, index(i));
    SmallVector<Value> inputs(window);
    for (int64_t tap = isDense ? taps - 1 : 0; tap < taps; ++tap)
      llvm::append_range(inputs,
                         readParts(sub(at, index(distance(tap))), channel));
    for (int64_t part = 0; part < parts; ++part)
      sums.push_back(sum(factors[part], bias[part], [&](int64_t tap) {
        return inputs[tap * parts + part];
      }));
    window = SmallVector<Value>(ArrayRef(inputs).take_back(window.size()));
  }
  Vectors y = activate(sums);
  for (int64_t i = 0; i < count; ++i)
    write(add(position, index(i)), ArrayRef(y).slice(i * parts, parts));
}

/// The outputs of positions [from, to), a few at once and then the rest: the
/// inputs of one are those of the next, but for the oldest.
void ChannelConv::emitColumn(Value from, Value to, Value channel,
                             function_ref<void(Value, ArrayRef<Value>)> write) {
  loadColumn(channel);
  SmallVector<Value> window;
  for (int64_t tap = 0; conv.getDilation() == 1 && tap + 1 < taps; ++tap)
    llvm::append_range(window,
                       readParts(sub(from, index(distance(tap))), channel));
  auto run = [&](Value from, Value to, int64_t count) {
    window = reduce(from, to, count, window,
                    [&](Value position, ValueRange carried) {
                      SmallVector<Value> inputs(carried);
                      emitOutputs(position, count, channel, inputs, write);
                      return inputs;
                    });
  };
  int64_t count = rowsAtOnce();
  Value rest = add(from, mul(div(sub(to, from), index(count)), index(count)));
  run(from, rest, count);
  run(rest, to, 1);
}

/// One vector of tokens from `position` on; tokens from `to` on do not exist.
void ChannelConv::emitSquare(Value position, Value to, Value channel) {
  emitColumn(position, to, channel, [&](Value at, ArrayRef<Value> y) {
    for (auto [part, vector] : llvm::enumerate(y))
      storeVector(vector, square,
                  {sub(at, position), index(int64_t(part) * lanes)});
  });
  SmallVector<Vectors> y(lanes);
  for (int64_t row = 0; row < lanes; ++row)
    for (int64_t part = 0; part < parts; ++part)
      y[row].push_back(
          loadVector(square, {index(row), index(part * lanes)}, lanes));
  writeSquares(y, position, channel, to);
}

void ChannelConv::emitMain() {
  Value from = max(first, index(stateLength));
  Value hasRows =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, from, last);
  ifThen(hasRows, [&] {
    packWeights();
    bool isSquare = views.outputAxis == ConvAxis::Tokens;
    int64_t rows = isSquare ? lanes : rowsAtOnce();
    forEach(from, last, rows, [&](Value position) {
      Value to = min(add(position, index(rows)), last);
      forEach(channel0, channelEnd, span(), [&](Value channel) {
        if (isSquare)
          return emitSquare(position, to, channel);
        emitColumn(position, to, channel, [&](Value at, ArrayRef<Value> y) {
          writeParts(y, at, channel);
        });
      });
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
  parallelIfLarge(conv.getInput(), mul(slots, perSlot), [&](Value task) {
    Value inSlot = rem(task, perSlot);
    Value block = div(inSlot, channelBlocks);
    enterBlock(div(task, perSlot), block, blockTokens);
    channel0 = mul(rem(inSlot, channelBlocks), index(blockChannels));
    channelEnd = min(add(channel0, index(blockChannels)), channels);
    lane = scratch({b.getIndexAttr(lanes)});
    OpFoldResult padded = b.getIndexAttr(blockChannels);
    weights = scratch({b.getIndexAttr(taps), padded});
    biases = conv.getBias() ? scratch({b.getIndexAttr(1), padded}) : Value();
    if (views.outputAxis == ConvAxis::Tokens) {
      square = scratch({b.getIndexAttr(lanes), b.getIndexAttr(span())});
      // Absent rows are transposed as zeros.
      forEach(index(lanes), [&](Value row) {
        forEach(index(0), index(span()), lanes, [&](Value column) {
          storeVector(zeros(lanes), square, {row, column});
        });
      });
    }
    window = scratch({b.getIndexAttr(2 * stateLength), b.getIndexAttr(lanes)});
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
