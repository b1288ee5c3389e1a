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
// Every element sees the same operations in the same order in any block.
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

/// Scalar loops: one channel of one sequence at a time.
class SelectiveScalars : public RecurrenceBuilder {
public:
  SelectiveScalars(OpBuilder &b, SelectiveScanOp scan, bool lanes)
      : RecurrenceBuilder(b, scan, /*width=*/1), scan(scan) {
    forThreads = lanes;
  }

  void emit();

private:
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

  SelectiveScanOp scan;
};

/// Buffers of real and imaginary parts; the latter null for real numbers.
struct Parts {
  Value real, imaginary;
};

/// The entries of b or c, by state and channel or by token and state.
struct Projection {
  Parts fixed, perToken;
};

/// Rows of a block by tokens and channels.
struct SelectiveRows {
  Value us, deltas, inputs, ys, gates;
};

/// The scope of a task: `width` channels of one group in one sequence.
class SelectiveTask : public ChannelTasks {
public:
  SelectiveTask(const ChannelTasks &tasks, SelectiveScanOp scan, int64_t rows,
                Value sequence, const Channels &channels);

  void emit();

private:
  Value loadTransposed(Value operand, ValueRange prefix);
  Projection loadProjection(Value real, Value imaginary);
  void prepareFactors();
  void packBlock(Value first, Value tokens);
  void sweep(Value state, Value tokens);
  Complex factor(Complex a, Value t);
  Complex projectionAt(const Projection &projection, Value t, Value state);
  void finishBlock(Value first, Value tokens);
  bool hasFixedDelta() { return rankOf(scan.getDelta()) == 1; }
  Complex loadRow(const Parts &parts, Value row) {
    Value x = loadVector(parts.real, {row, index(0)}, width);
    return {x, parts.imaginary
                   ? loadVector(parts.imaginary, {row, index(0)}, width)
                   : Value()};
  }

  SelectiveScanOp scan;
  /// States at a time.
  const int64_t rows;
  const Channels channels;
  /// By states and channels: a or e^{Δa}, and h.
  Parts a, h;
  Projection projectionB, projectionC;
  SelectiveRows packed;
  Value bias, fixedDelta;
};

} // namespace

/// silu(gate) in the precision of the output.
static Value silu(RecurrenceBuilder &r, SelectiveScanOp scan, Value gate) {
  return emitActivation(r, Activation::Silu, gate,
                        getElementTypeOrSelf(scan.getOutput()));
}

//===----------------------------------------------------------------------===//
// Scalar loops
//===----------------------------------------------------------------------===//

/// ⌊channel · G / C⌋.
Value SelectiveScalars::groupOf(Value projection, Value channel) {
  return div(mul(channel, dim(projection, 1)), dim(scan.getInput(), 2));
}

Complex SelectiveScalars::projected(Value real, Value imaginary, Value token,
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

Value SelectiveScalars::deltaAt(Value token, Value channel) {
  Value delta = rankOf(scan.getDelta()) == 1
                    ? loadAs(scan.getDelta(), {channel})
                    : loadAs(scan.getDelta(), {batch, token, channel});
  if (scan.getDeltaBias())
    delta = addf(delta, loadAs(scan.getDeltaBias(), {channel}));
  return scan.getDeltaSoftplus() ? softplus(delta) : delta;
}

Value SelectiveScalars::finished(Value y, Value u, Value token, Value channel) {
  if (scan.getSkip())
    y = fma(loadAs(scan.getSkip(), {channel}), u, y);
  if (scan.getGate())
    y = mulf(
        y, silu(*this, scan, loadAs(scan.getGate(), {batch, token, channel})));
  return y;
}

/// h_n ← e^{Δ a_n} h_n + Δ u b_n, of which `input` is Δ u.
Complex SelectiveScalars::stepState(Value token, Value channel, Value n,
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
Value SelectiveScalars::addProduct(Value token, Value channel, Value n,
                                   Complex state, Value sum) {
  Complex c = projected(scan.getC(), scan.getCImag(), token, channel, n);
  sum = fma(c.first, state.first, sum);
  return state.second ? fma(negate(c.second), state.second, sum) : sum;
}

/// The tokens of a channel whose states stay in the registers of a thread.
void SelectiveScalars::emitInRegisters(Value channel, int64_t states) {
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

void SelectiveScalars::emit() {
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

SelectiveTask::SelectiveTask(const ChannelTasks &tasks, SelectiveScanOp scan,
                             int64_t rows, Value sequence,
                             const Channels &channels)
    : ChannelTasks(tasks), scan(scan), rows(rows), channels(channels) {
  enterSequence(sequence);
  h = {loadTransposed(scan.getState(), {slot}),
       loadTransposed(scan.getStateImag(), {slot})};
  a = {loadTransposed(scan.getA(), {}), loadTransposed(scan.getAImag(), {})};
  projectionB = loadProjection(scan.getB(), scan.getBImag());
  projectionC = loadProjection(scan.getC(), scan.getCImag());
  for (Value *buffer : {&packed.us, &packed.deltas, &packed.inputs, &packed.ys,
                        &packed.gates}) {
    *buffer = scratch({b.getIndexAttr(blockTokens), b.getIndexAttr(width)});
    // Channels that are not there stay numbers.
    clear(*buffer);
  }
  if (scan.getDeltaBias())
    bias = readOperand(scan.getDeltaBias(), {channels.first}, width);
  if (hasFixedDelta())
    prepareFactors();
}

void SelectiveTask::emit() {
  forEach(begin, end, blockTokens, [&](Value first) {
    Value tokens = min(sub(end, first), index(blockTokens));
    packBlock(first, tokens);
    forEach(index(0), padded, rows, [&](Value state) { sweep(state, tokens); });
    finishBlock(first, tokens);
  });
  storeStates(channels, h.real, index(0), scan.getState(), {slot});
  if (h.imaginary)
    storeStates(channels, h.imaginary, index(0), scan.getStateImag(), {slot});
  freeScratch();
}

static void emitVectors(OpBuilder &b, SelectiveScanOp scan, int64_t width) {
  LoopBuilder loops(b, scan.getLoc());
  Value channels = loops.dim(scan.getOutput(), 2), groups = loops.index(1);
  for (Value projection : {scan.getB(), scan.getC()})
    if (rankOf(projection) == 4)
      groups = loops.dim(projection, 1);
  // No groups, no tasks; but the division is made before any.
  Value perGroup = loops.div(channels, loops.max(groups, loops.index(1)));
  Value blocks = loops.ceilDiv(perGroup, width),
        perSlot = loops.mul(groups, blocks);
  // Registers for the states and their a; complex ones take twice.
  int64_t rows = scan.getAImag() ? 2 : 4;
  ChannelTasks tasks(b, scan, width, groups, loops.dim(scan.getA(), 1), rows);
  loops.parallel(
      loops.mul(loops.dim(scan.getState(), 0), perSlot), [&](Value task) {
        Value inSlot = loops.rem(task, perSlot),
              group = loops.div(inSlot, blocks);
        Value inGroup =
            loops.mul(loops.rem(inSlot, blocks), loops.index(width));
        SelectiveTask(
            tasks, scan, rows, loops.div(task, perSlot),
            {loops.add(loops.mul(group, perGroup), inGroup),
             loops.min(loops.sub(perGroup, inGroup), loops.index(width)),
             group})
            .emit();
      });
}

/// operand[prefix, channel, state] by states and channels; padding is zero.
Value SelectiveTask::loadTransposed(Value operand, ValueRange prefix) {
  if (!operand)
    return Value();
  Value target = scratch({getAsOpFoldResult(padded), b.getIndexAttr(width)});
  clear(target);
  packStates(channels, operand, prefix, target, index(0));
  return target;
}

Projection SelectiveTask::loadProjection(Value real, Value imaginary) {
  Projection projection;
  auto load = [&](Value operand, Value &fixed, Value &perToken) {
    if (!operand)
      return;
    if (rankOf(operand) == 2) {
      fixed = loadTransposed(operand, {});
      return;
    }
    perToken =
        scratch({b.getIndexAttr(blockTokens), getAsOpFoldResult(padded)});
    clear(perToken);
  };
  load(real, projection.fixed.real, projection.perToken.real);
  load(imaginary, projection.fixed.imaginary, projection.perToken.imaginary);
  return projection;
}

/// With a fixed step the factors of the states are fixed too: a ← e^{Δa}.
void SelectiveTask::prepareFactors() {
  Value delta = readOperand(scan.getDelta(), {channels.first}, width);
  if (bias)
    delta = addf(delta, bias);
  fixedDelta = scan.getDeltaSoftplus() ? softplus(delta) : delta;
  forEach(padded, [&](Value n) {
    Complex log = loadRow(a, n);
    Complex factor = polarStep(fixedDelta, log.first, log.second);
    storeVector(factor.first, a.real, {n, index(0)});
    if (factor.second)
      storeVector(factor.second, a.imaginary, {n, index(0)});
  });
}

//===----------------------------------------------------------------------===//
// Vectors: blocks of tokens
//===----------------------------------------------------------------------===//

void SelectiveTask::packBlock(Value first, Value tokens) {
  packTokens(channels, scan.getInput(), first, tokens, packed.us, index(0));
  if (!hasFixedDelta())
    packTokens(channels, scan.getDelta(), first, tokens, packed.deltas,
               index(0));
  packProjection(scan.getB(), channels.group, first, tokens,
                 projectionB.perToken.real);
  packProjection(scan.getBImag(), channels.group, first, tokens,
                 projectionB.perToken.imaginary);
  packProjection(scan.getC(), channels.group, first, tokens,
                 projectionC.perToken.real);
  packProjection(scan.getCImag(), channels.group, first, tokens,
                 projectionC.perToken.imaginary);
  forEach(tokens, [&](Value t) {
    SmallVector<Value> at{t, index(0)};
    Value delta = fixedDelta;
    if (!hasFixedDelta()) {
      delta = loadVector(packed.deltas, at, width);
      if (bias)
        delta = addf(delta, bias);
      if (scan.getDeltaSoftplus())
        delta = softplus(delta);
      storeVector(delta, packed.deltas, at);
    }
    storeVector(mulf(delta, loadVector(packed.us, at, width)), packed.inputs,
                at);
    storeVector(zeros(width), packed.ys, at);
  });
}

/// e^{Δ_t a}.
Complex SelectiveTask::factor(Complex a, Value t) {
  if (hasFixedDelta())
    return a;
  Value delta = loadVector(packed.deltas, {t, index(0)}, width);
  return polarStep(delta, a.first, a.second);
}

/// One state's entry of b or c on all channels.
Complex SelectiveTask::projectionAt(const Projection &projection, Value t,
                                    Value state) {
  auto part = [&](Value perToken, Value fixed) -> Value {
    if (perToken)
      return splat(load(perToken, {t, state}), width);
    return fixed ? loadVector(fixed, {state, index(0)}, width) : zeros(width);
  };
  const auto &[fixed, perToken] = projection;
  return {part(perToken.real, fixed.real),
          a.imaginary ? part(perToken.imaginary, fixed.imaginary) : Value()};
}

/// Streams the block past `rows` states, which stay in registers.
void SelectiveTask::sweep(Value state, Value tokens) {
  SmallVector<Value> at, initial;
  SmallVector<Complex> factors;
  for (int64_t row = 0; row < rows; ++row) {
    at.push_back(add(state, index(row)));
    factors.push_back(loadRow(a, at.back()));
    Complex start = loadRow(h, at.back());
    initial.push_back(start.first);
    if (h.imaginary)
      initial.push_back(start.second);
  }
  int64_t parts = h.imaginary ? 2 : 1;
  SmallVector<Value> last =
      reduce(index(0), tokens, 1, initial,
             [&](Value t, ValueRange carried) -> SmallVector<Value> {
               Value input = loadVector(packed.inputs, {t, index(0)}, width);
               Value y = loadVector(packed.ys, {t, index(0)}, width);
               SmallVector<Value> next;
               for (int64_t row = 0; row < rows; ++row) {
                 Complex now{carried[row * parts],
                             h.imaginary ? carried[row * parts + 1] : Value()};
                 Complex b = projectionAt(projectionB, t, at[row]);
                 Complex x{mulf(input, b.first),
                           b.second ? mulf(input, b.second) : Value()};
                 now = complexFma(factor(factors[row], t), now, x);
                 Complex c = projectionAt(projectionC, t, at[row]);
                 y = fma(c.first, now.first, y);
                 next.push_back(now.first);
                 if (!h.imaginary)
                   continue;
                 y = fma(negate(c.second), now.second, y);
                 next.push_back(now.second);
               }
               storeVector(y, packed.ys, {t, index(0)});
               return next;
             });
  for (int64_t row = 0; row < rows; ++row) {
    storeVector(last[row * parts], h.real, {at[row], index(0)});
    if (h.imaginary)
      storeVector(last[row * parts + 1], h.imaginary, {at[row], index(0)});
  }
}

void SelectiveTask::finishBlock(Value first, Value tokens) {
  if (scan.getGate())
    packTokens(channels, scan.getGate(), first, tokens, packed.gates, index(0));
  Value skip;
  if (scan.getSkip())
    skip = readOperand(scan.getSkip(), {channels.first}, width);
  forEach(tokens, [&](Value t) {
    SmallVector<Value> at{t, index(0)};
    Value y = loadVector(packed.ys, at, width);
    if (skip)
      y = fma(skip, loadVector(packed.us, at, width), y);
    if (scan.getGate())
      y = mulf(y, silu(*this, scan, loadVector(packed.gates, at, width)));
    storeVector(y, packed.ys, at);
  });
  writeTokens(channels, packed.ys, index(0), first, tokens, scan.getOutput());
}

void mlir::linattn::lowerRecurrence(OpBuilder &b, SelectiveScanOp op,
                                    int64_t width, bool lanes) {
  if (width == 1)
    SelectiveScalars(b, op, lanes).emit();
  else
    emitVectors(b, op, width);
}
