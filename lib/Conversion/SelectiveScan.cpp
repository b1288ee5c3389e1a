//===- SelectiveScan.cpp - linattn.selective_scan as loops ----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vectors run over channels, so that no sum crosses lanes. A task is one
// sequence and `width` channels of one group. Per block of tokens:
//
//   pack    Δ and Δu by channels, the token's b and c by states
//   sweep   for each few states: h ← e^{Δa} h + Δu b,  y ← y + c h, the states
//           in registers while the block streams past
//   finish  (y + skip·u) · silu(gate) to the output
//
// Every element sees the same operations in the same order whatever the block.
// Operands whose channels do not lie side by side, the [B, C, T] of the
// original kernels, are packed element by element.
//
//===----------------------------------------------------------------------===//

#include "Activations.h"
#include "ChannelTasks.h"

using namespace mlir;
using namespace mlir::linattn;

namespace {

using Complex = std::pair<Value, Value>;

/// Numbers of a state that a thread of a GPU holds in registers.
constexpr int64_t mostStates = 64;

class SelectiveScan : public ChannelTasks {
public:
  SelectiveScan(OpBuilder &b, SelectiveScanOp scan, int64_t width)
      : ChannelTasks(b, scan, width), scan(scan),
        // Registers for the states and their a; complex ones take twice.
        rows(scan.getAImag() ? 2 : 4) {}

  void emitScalars();
  void emitVectors();

private:
  // Scalars.
  void emitInRegisters(Value channel, int64_t states);
  Complex stepState(Value token, Value channel, Value n, Value delta,
                    Value input, Complex state);
  Value addProduct(Value token, Value channel, Value n, Complex state,
                   Value sum);
  Complex projected(Value real, Value imaginary, Value token, Value channel,
                    Value state);
  Value groupOf(Value projection, Value channel);
  Value deltaAt(Value token, Value channel);
  Value finished(Value y, Value u, Value token, Value channel);
  Value silu(Value gate) {
    return emitActivation(*this, Activation::Silu, gate,
                          getElementTypeOrSelf(scan.getOutput()));
  }

  // Vectors.
  void loadChannels();
  Value loadTransposed(Value operand, ValueRange prefix);
  void prepareFactors();
  void packBlock(Value first, Value tokens);
  void sweep(Value state, Value tokens);
  Complex factor(Complex a, Value t);
  Complex projectionAt(Value perToken, Value perTokenImag, Value fixed,
                       Value fixedImag, Value t, Value state);
  void finishBlock(Value first, Value tokens);
  bool isFixed(Value projection) { return rankOf(projection) == 2; }
  bool hasFixedDelta() { return rankOf(scan.getDelta()) == 1; }
  Complex loadRow(Value real, Value imaginary, Value row) {
    Value x = loadVector(real, {row, index(0)}, width);
    return {x, imaginary ? loadVector(imaginary, {row, index(0)}, width)
                         : Value()};
  }

  SelectiveScanOp scan;
  int64_t rows;
  // Scratch by states and channels: a or e^{Δa}, h, and fixed projections.
  Value a, aImag, h, hImag, fixedB, fixedBImag, fixedC, fixedCImag;
  // Scratch by tokens and channels, and by tokens and states.
  Value us, deltas, inputs, ys, gates, bs, bsImag, cs, csImag;
  Value bias, fixedDelta;
};

} // namespace

//===----------------------------------------------------------------------===//
// Scalar loops
//===----------------------------------------------------------------------===//

/// ⌊channel · G / C⌋.
Value SelectiveScan::groupOf(Value projection, Value channel) {
  return div(mul(channel, dim(projection, 1)), dim(scan.getInput(), 2));
}

Complex SelectiveScan::projected(Value real, Value imaginary, Value token,
                                 Value channel, Value state) {
  SmallVector<Value> at;
  if (rankOf(real) == 2)
    at = {channel, state};
  else if (rankOf(real) == 3)
    at = {batch, token, state};
  else
    at = {batch, groupOf(real, channel), token, state};
  Value x = loadAs(real, at);
  if (!scan.getAImag())
    return {x, Value()};
  return {x, imaginary ? loadAs(imaginary, at) : number(0.0)};
}

Value SelectiveScan::deltaAt(Value token, Value channel) {
  Value delta = hasFixedDelta()
                    ? loadAs(scan.getDelta(), {channel})
                    : loadAs(scan.getDelta(), {batch, token, channel});
  if (scan.getDeltaBias())
    delta = addf(delta, loadAs(scan.getDeltaBias(), {channel}));
  return scan.getDeltaSoftplus() ? softplus(delta) : delta;
}

Value SelectiveScan::finished(Value y, Value u, Value token, Value channel) {
  if (scan.getSkip())
    y = fma(loadAs(scan.getSkip(), {channel}), u, y);
  if (scan.getGate())
    y = mulf(y, silu(loadAs(scan.getGate(), {batch, token, channel})));
  return y;
}

/// h_n ← e^{Δ a_n} h_n + Δ u b_n, of which `input` is Δ u.
Complex SelectiveScan::stepState(Value token, Value channel, Value n,
                                 Value delta, Value input, Complex state) {
  Value angle;
  if (scan.getAImag())
    angle = loadAs(scan.getAImag(), {channel, n});
  Complex b = projected(scan.getB(), scan.getBImag(), token, channel, n);
  Complex x{mulf(input, b.first), b.second ? mulf(input, b.second) : Value()};
  Value log = loadAs(scan.getA(), {channel, n});
  return complexFma(polarStep(delta, log, angle), state, x);
}

/// sum + Re(c_n h_n).
Value SelectiveScan::addProduct(Value token, Value channel, Value n,
                                Complex state, Value sum) {
  Complex c = projected(scan.getC(), scan.getCImag(), token, channel, n);
  sum = fma(c.first, state.first, sum);
  return state.second ? fma(negate(c.second), state.second, sum) : sum;
}

/// The tokens of a channel whose states stay in the registers of a thread.
void SelectiveScan::emitInRegisters(Value channel, int64_t states) {
  auto at = [&](int64_t n) {
    return SmallVector<Value>{slot, channel, index(n)};
  };
  bool isComplex = bool(scan.getAImag());
  SmallVector<Value> initial;
  for (int64_t n = 0; n < states; ++n) {
    initial.push_back(load(scan.getState(), at(n)));
    if (isComplex)
      initial.push_back(load(scan.getStateImag(), at(n)));
  }
  SmallVector<Value> last = forEachToken(
      initial, [&](Value token, ValueRange h) -> SmallVector<Value> {
        Value u = loadAs(scan.getInput(), {batch, token, channel});
        Value delta = deltaAt(token, channel), input = mulf(delta, u);
        Value y = number(0.0);
        SmallVector<Value> next;
        for (int64_t n = 0; n < states; ++n) {
          Complex state = isComplex ? Complex{h[2 * n], h[2 * n + 1]}
                                    : Complex{h[n], Value()};
          state = stepState(token, channel, index(n), delta, input, state);
          y = addProduct(token, channel, index(n), state, y);
          next.push_back(state.first);
          if (isComplex)
            next.push_back(state.second);
        }
        write(finished(y, u, token, channel), scan.getOutput(),
              {batch, token, channel});
        return next;
      });
  for (int64_t n = 0; n < states; ++n) {
    store(last[isComplex ? 2 * n : n], scan.getState(), at(n));
    if (isComplex)
      store(last[2 * n + 1], scan.getStateImag(), at(n));
  }
}

void SelectiveScan::emitScalars() {
  Value channels = dim(scan.getOutput(), 2), slots = dim(scan.getState(), 0);
  std::optional<int64_t> states = getConstantIntValue(dim(scan.getA(), 1));
  bool fitsRegisters =
      forThreads && states && *states * (scan.getAImag() ? 2 : 1) <= mostStates;
  parallel(mul(slots, channels), [&](Value task) {
    enterSequence(div(task, channels));
    Value channel = rem(task, channels);
    if (fitsRegisters)
      return emitInRegisters(channel, *states);
    forEachToken({}, [&](Value token, ValueRange) -> SmallVector<Value> {
      Value u = loadAs(scan.getInput(), {batch, token, channel});
      Value delta = deltaAt(token, channel), input = mulf(delta, u);
      Value y = reduce(
          dim(scan.getA(), 1), number(0.0), [&](Value n, Value sum) -> Value {
            SmallVector<Value> at{slot, channel, n};
            Complex state{load(scan.getState(), at), Value()};
            if (scan.getAImag())
              state.second = load(scan.getStateImag(), at);
            state = stepState(token, channel, n, delta, input, state);
            store(state.first, scan.getState(), at);
            if (state.second)
              store(state.second, scan.getStateImag(), at);
            return addProduct(token, channel, n, state, sum);
          });
      write(finished(y, u, token, channel), scan.getOutput(),
            {batch, token, channel});
      return {};
    });
  });
}

//===----------------------------------------------------------------------===//
// Vectors: tasks
//===----------------------------------------------------------------------===//

void SelectiveScan::emitVectors() {
  Value channels = dim(scan.getOutput(), 2), groups = index(1);
  for (Value projection : {scan.getB(), scan.getC()})
    if (rankOf(projection) == 4)
      groups = dim(projection, 1);
  grouped = getConstantIntValue(groups) != 1;
  // No groups, no tasks; but the division is made before any.
  Value perGroup = div(channels, max(groups, index(1)));
  Value blocks = ceilDiv(perGroup, width);
  Value perSlot = mul(groups, blocks);
  parallel(mul(dim(scan.getState(), 0), perSlot), [&](Value task) {
    enterSequence(div(task, perSlot));
    Value inSlot = rem(task, perSlot);
    group = div(inSlot, blocks);
    Value inGroup = mul(rem(inSlot, blocks), index(width));
    channel = add(mul(group, perGroup), inGroup);
    count = min(sub(perGroup, inGroup), index(width));
    loadChannels();
    forEach(begin, end, blockTokens, [&](Value first) {
      Value tokens = min(sub(end, first), index(blockTokens));
      packBlock(first, tokens);
      forEach(index(0), padded, rows,
              [&](Value state) { sweep(state, tokens); });
      finishBlock(first, tokens);
    });
    storeStates(h, index(0), scan.getState(), {slot});
    if (hImag)
      storeStates(hImag, index(0), scan.getStateImag(), {slot});
    freeScratch();
  });
}

/// operand[prefix, channel, state] by states and channels; padding is zero.
Value SelectiveScan::loadTransposed(Value operand, ValueRange prefix) {
  if (!operand)
    return Value();
  Value target = scratch({getAsOpFoldResult(padded), b.getIndexAttr(width)});
  clear(target);
  packStates(operand, prefix, target, index(0));
  return target;
}

/// Loads the operands that stay the same from token to token.
void SelectiveScan::loadChannels() {
  states = dim(scan.getA(), 1);
  padded = roundUp(states, rows);
  h = loadTransposed(scan.getState(), {slot});
  hImag = loadTransposed(scan.getStateImag(), {slot});
  a = loadTransposed(scan.getA(), {});
  aImag = loadTransposed(scan.getAImag(), {});
  fixedB = fixedBImag = fixedC = fixedCImag = Value();
  bs = bsImag = cs = csImag = Value();
  OpFoldResult tokens = b.getIndexAttr(blockTokens),
               lanes = b.getIndexAttr(width);
  auto projection = [&](Value operand, Value &fixed, Value &perToken) {
    if (!operand)
      return;
    if (isFixed(operand)) {
      fixed = loadTransposed(operand, {});
      return;
    }
    perToken = scratch({tokens, getAsOpFoldResult(padded)});
    clear(perToken);
  };
  projection(scan.getB(), fixedB, bs);
  projection(scan.getBImag(), fixedBImag, bsImag);
  projection(scan.getC(), fixedC, cs);
  projection(scan.getCImag(), fixedCImag, csImag);
  for (Value *buffer : {&us, &deltas, &inputs, &ys, &gates}) {
    *buffer = scratch({tokens, lanes});
    // Channels that are not there stay numbers.
    clear(*buffer);
  }
  bias = scan.getDeltaBias()
             ? readOperand(scan.getDeltaBias(), {channel}, width)
             : Value();
  if (hasFixedDelta())
    prepareFactors();
}

/// With a fixed step the factors of the states are fixed too: a ← e^{Δa}.
void SelectiveScan::prepareFactors() {
  Value delta = readOperand(scan.getDelta(), {channel}, width);
  if (bias)
    delta = addf(delta, bias);
  fixedDelta = scan.getDeltaSoftplus() ? softplus(delta) : delta;
  forEach(padded, [&](Value n) {
    Complex log = loadRow(a, aImag, n);
    Complex factor = polarStep(fixedDelta, log.first, log.second);
    storeVector(factor.first, a, {n, index(0)});
    if (factor.second)
      storeVector(factor.second, aImag, {n, index(0)});
  });
}

//===----------------------------------------------------------------------===//
// Vectors: blocks of tokens
//===----------------------------------------------------------------------===//

void SelectiveScan::packBlock(Value first, Value tokens) {
  packTokens(scan.getInput(), first, tokens, us, index(0));
  if (!hasFixedDelta())
    packTokens(scan.getDelta(), first, tokens, deltas, index(0));
  packProjection(scan.getB(), first, tokens, bs);
  packProjection(scan.getBImag(), first, tokens, bsImag);
  packProjection(scan.getC(), first, tokens, cs);
  packProjection(scan.getCImag(), first, tokens, csImag);
  forEach(tokens, [&](Value t) {
    SmallVector<Value> at{t, index(0)};
    Value delta = fixedDelta;
    if (!hasFixedDelta()) {
      delta = loadVector(deltas, at, width);
      if (bias)
        delta = addf(delta, bias);
      if (scan.getDeltaSoftplus())
        delta = softplus(delta);
      storeVector(delta, deltas, at);
    }
    storeVector(mulf(delta, loadVector(us, at, width)), inputs, at);
    storeVector(zeros(width), ys, at);
  });
}

/// e^{Δ_t a}.
Complex SelectiveScan::factor(Complex a, Value t) {
  if (hasFixedDelta())
    return a;
  Value delta = loadVector(deltas, {t, index(0)}, width);
  return polarStep(delta, a.first, a.second);
}

/// One state's entry of b or c on all channels.
Complex SelectiveScan::projectionAt(Value perToken, Value perTokenImag,
                                    Value fixed, Value fixedImag, Value t,
                                    Value state) {
  auto part = [&](Value perToken, Value fixed) -> Value {
    if (perToken)
      return splat(load(perToken, {t, state}), width);
    return fixed ? loadVector(fixed, {state, index(0)}, width) : zeros(width);
  };
  return {part(perToken, fixed),
          aImag ? part(perTokenImag, fixedImag) : Value()};
}

/// Streams the block past `rows` states, which stay in registers.
void SelectiveScan::sweep(Value state, Value tokens) {
  SmallVector<Value> at, initial;
  SmallVector<Complex> factors;
  for (int64_t row = 0; row < rows; ++row) {
    at.push_back(add(state, index(row)));
    factors.push_back(loadRow(a, aImag, at.back()));
    Complex start = loadRow(h, hImag, at.back());
    initial.push_back(start.first);
    if (hImag)
      initial.push_back(start.second);
  }
  int64_t parts = hImag ? 2 : 1;
  SmallVector<Value> last = reduce(
      index(0), tokens, 1, initial,
      [&](Value t, ValueRange carried) -> SmallVector<Value> {
        Value input = loadVector(inputs, {t, index(0)}, width);
        Value y = loadVector(ys, {t, index(0)}, width);
        SmallVector<Value> next;
        for (int64_t row = 0; row < rows; ++row) {
          Complex now{carried[row * parts],
                      hImag ? carried[row * parts + 1] : Value()};
          Complex b = projectionAt(bs, bsImag, fixedB, fixedBImag, t, at[row]);
          Complex x{mulf(input, b.first),
                    b.second ? mulf(input, b.second) : Value()};
          now = complexFma(factor(factors[row], t), now, x);
          Complex c = projectionAt(cs, csImag, fixedC, fixedCImag, t, at[row]);
          y = fma(c.first, now.first, y);
          next.push_back(now.first);
          if (!hImag)
            continue;
          y = fma(negate(c.second), now.second, y);
          next.push_back(now.second);
        }
        storeVector(y, ys, {t, index(0)});
        return next;
      });
  for (int64_t row = 0; row < rows; ++row) {
    storeVector(last[row * parts], h, {at[row], index(0)});
    if (hImag)
      storeVector(last[row * parts + 1], hImag, {at[row], index(0)});
  }
}

void SelectiveScan::finishBlock(Value first, Value tokens) {
  if (scan.getGate())
    packTokens(scan.getGate(), first, tokens, gates, index(0));
  Value skip;
  if (scan.getSkip())
    skip = readOperand(scan.getSkip(), {channel}, width);
  forEach(tokens, [&](Value t) {
    SmallVector<Value> at{t, index(0)};
    Value y = loadVector(ys, at, width);
    if (skip)
      y = fma(skip, loadVector(us, at, width), y);
    if (scan.getGate())
      y = mulf(y, silu(loadVector(gates, at, width)));
    storeVector(y, ys, at);
  });
  writeTokens(ys, index(0), first, tokens, scan.getOutput());
}

void mlir::linattn::lowerRecurrence(OpBuilder &b, SelectiveScanOp op,
                                    int64_t width, bool lanes) {
  SelectiveScan loops(b, op, width);
  loops.forThreads = lanes;
  if (width == 1)
    loops.emitScalars();
  else
    loops.emitVectors();
}
