//===- RowRecurrences.cpp - Recurrences of single rows --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowRecurrences.h"
#include "linattn/Dialect/EmitLoop.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

ValueRange RowScan::build(TensorBuilder &t) const {
  SmallVector<OpFoldResult> sizes = t.sizes(value);
  Value output = t.empty(sizes);
  sizes[3] = t.b.getIndexAttr(1);
  Value none, ones = t.filled(sizes, 1.0);
  return ScanOp::create(
             t.b, t.loc, TypeRange{output.getType(), state.getType()}, ones,
             ones, value, none, decay, none, none, none, none, none, none, none,
             none, offsets, none, none, output, state, none, none, ValueRange(),
             Update::Add, readout, Transition::After, reverse, IntegerAttr(),
             FeatureMapAttr(), NormalizeAttr(), FloatAttr(), ConfigAttr())
      .getResults();
}

/// x times the complex number of length 1 with this cosine and sine.
static Complex rotate(TensorBuilder &t, Complex x, Value cosine, Value sine) {
  if (!x.imag)
    return {t.mul(x.real, cosine), t.mul(x.real, sine)};
  return {t.sub(t.mul(x.real, cosine), t.mul(x.imag, sine)),
          t.add(t.mul(x.real, sine), t.mul(x.imag, cosine))};
}

/// In a frame that rotates with the angles, every term only decays: two real
/// recurrences.
std::pair<Complex, Complex> ComplexRowScan::build(TensorBuilder &t) const {
  RowScan angles{phase, Value(), t.zeros(t.sizes(state.real)), offsets,
                 reverse};
  ValueRange angle = angles.build(t);
  auto turn = [&](Value x) -> std::pair<Value, Value> {
    return {math::CosOp::create(t.b, t.loc, x),
            math::SinOp::create(t.b, t.loc, x)};
  };
  auto [cosine, sine] = turn(angle[0]);
  auto [lastCosine, lastSine] = turn(angle[1]);
  Value back = arith::NegFOp::create(t.b, t.loc, sine);
  Complex x = rotate(t, value, cosine, back);
  ValueRange real =
      RowScan{x.real, decay, state.real, offsets, reverse}.build(t);
  ValueRange imag =
      RowScan{x.imag, decay, state.imag, offsets, reverse}.build(t);
  return {rotate(t, {real[0], imag[0]}, cosine, sine),
          rotate(t, {real[1], imag[1]}, lastCosine, lastSine)};
}

namespace {

/// The loops of a running maximum: over the sequences, if they are packed, and
/// over the tokens of each.
class MaxLoops {
public:
  MaxLoops(TensorBuilder &t, const MaxRecurrence &max)
      : t(t), b(t.b), loc(t.loc), max(max) {}

  RunningMaxima build();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value toIndex(Value value) {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }
  SmallVector<Value> loop(Value end, ValueRange inits,
                          function_ref<SmallVector<Value>(Value, ValueRange)>);
  SmallVector<Value> runTokens(Value first, Value count, Value start,
                               ValueRange maxima);
  SmallVector<Value> runSequences(ValueRange maxima);
  struct Place {
    SmallVector<OpFoldResult> offsets, sizes;
  };
  Place placeOf(Value x, Value token);
  SmallVector<OpFoldResult> ones() {
    return SmallVector<OpFoldResult>(3, b.getIndexAttr(1));
  }
  Value bounded(Value state);
  Value step(Value state, Value token);
  Value takeToken(Value x, Value token);
  Value putToken(Value x, Value into, Value token);

  TensorBuilder &t;
  OpBuilder &b;
  Location loc;
  const MaxRecurrence &max;
};

} // namespace

SmallVector<Value>
MaxLoops::loop(Value end, ValueRange inits,
               function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  return emitLoop(b, loc, index(0), end, index(1), inits, body);
}

/// The place of one token in x [B, T, C]; packed sequences have a batch of 1.
MaxLoops::Place MaxLoops::placeOf(Value x, Value token) {
  Place place{SmallVector<OpFoldResult>(3, b.getIndexAttr(0)), t.sizes(x)};
  place.offsets[1] = token;
  place.sizes[1] = b.getIndexAttr(1);
  if (max.offsets)
    place.sizes[0] = b.getIndexAttr(1);
  return place;
}

/// [B, C] of one token.
Value MaxLoops::takeToken(Value x, Value token) {
  Place place = placeOf(x, token);
  auto shape = cast<RankedTensorType>(x.getType()).getShape();
  auto type = RankedTensorType::get({max.offsets ? 1 : shape[0], shape[2]},
                                    getElementTypeOrSelf(x.getType()));
  return tensor::ExtractSliceOp::create(b, loc, type, x, place.offsets,
                                        place.sizes, ones());
}

Value MaxLoops::putToken(Value x, Value into, Value token) {
  Place place = placeOf(into, token);
  return tensor::InsertSliceOp::create(b, loc, x, into, place.offsets,
                                       place.sizes, ones());
}

Value MaxLoops::bounded(Value state) {
  return t.map("bc->bc", state,
               [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                 return arith::MaximumFOp::create(
                     nested, at, x[0],
                     emitFloat(nested, at, t.type, kNoMaximum));
               });
}

Value MaxLoops::step(Value state, Value token) {
  SmallVector<Value> inputs{state, takeToken(max.input, token)};
  std::string subscripts = "bc,bc";
  if (max.gate) {
    bool isConstant = cast<ShapedType>(max.gate.getType()).getRank() == 1;
    inputs.push_back(isConstant ? max.gate : takeToken(max.gate, token));
    subscripts += isConstant ? ",c" : ",bc";
  }
  return t.map(subscripts + "->bc", inputs,
               [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                 Value faded =
                     max.gate ? arith::AddFOp::create(nested, at, x[0], x[2])
                              : x[0];
                 return arith::MaximumFOp::create(nested, at, faded, x[1]);
               });
}

/// `maxima` are m_{t−1} and m_t of all tokens, filled for these; beside them
/// returns the last one.
SmallVector<Value> MaxLoops::runTokens(Value first, Value count, Value start,
                                       ValueRange maxima) {
  SmallVector<Value> inits(maxima);
  inits.push_back(bounded(start));
  return loop(count, inits, [&](Value position, ValueRange carried) {
    if (max.reverse) {
      Value last = arith::SubIOp::create(b, loc, count, index(1));
      position = arith::SubIOp::create(b, loc, last, position);
    }
    Value token = arith::AddIOp::create(b, loc, first, position);
    Value next = step(carried[2], token);
    return SmallVector<Value>{putToken(carried[2], carried[0], token),
                              putToken(next, carried[1], token), next};
  });
}

SmallVector<Value> MaxLoops::runSequences(ValueRange maxima) {
  Value sequences = tensor::DimOp::create(b, loc, max.start, 0);
  return loop(sequences, maxima, [&](Value sequence, ValueRange carried) {
    Value next = arith::AddIOp::create(b, loc, sequence, index(1));
    Value first =
        toIndex(tensor::ExtractOp::create(b, loc, max.offsets, sequence));
    Value end = toIndex(tensor::ExtractOp::create(b, loc, max.offsets, next));
    Value start = t.slice(max.start, 0, sequence, b.getIndexAttr(1));
    SmallVector<Value> results =
        runTokens(first, arith::SubIOp::create(b, loc, end, first), start,
                  carried.take_front(2));
    SmallVector<OpFoldResult> sizes = t.sizes(max.start);
    sizes[0] = b.getIndexAttr(1);
    results[2] = tensor::InsertSliceOp::create(
        b, loc, results[2], carried[2],
        ArrayRef<OpFoldResult>{sequence, b.getIndexAttr(0)}, sizes,
        SmallVector<OpFoldResult>(2, b.getIndexAttr(1)));
    return results;
  });
}

RunningMaxima MaxLoops::build() {
  Value empty = t.empty(t.sizes(max.input));
  SmallVector<Value> maxima{empty, empty};
  if (max.offsets) {
    maxima.push_back(t.empty(t.sizes(max.start)));
    maxima = runSequences(maxima);
  } else {
    maxima = runTokens(index(0), tensor::DimOp::create(b, loc, max.input, 1),
                       max.start, maxima);
  }
  return {maxima[0], maxima[1], maxima[2]};
}

RunningMaxima mlir::linattn::buildRunningMaxima(TensorBuilder &t,
                                                const MaxRecurrence &max) {
  return MaxLoops(t, max).build();
}

Value mlir::linattn::emitRelative(OpBuilder &b, Location loc, Value x,
                                  Value maximum) {
  Value log = arith::SubFOp::create(b, loc, x, maximum);
  log = arith::MinimumFOp::create(b, loc, log,
                                  emitFloat(b, loc, log.getType(), 0.0));
  return math::ExpOp::create(b, loc, log);
}

Value mlir::linattn::emitRescaling(OpBuilder &b, Location loc, Value previous,
                                   Value current, Value gate) {
  // In this order the rounding of m_t is made up for.
  Value log = arith::SubFOp::create(b, loc, previous, current);
  if (gate)
    log = arith::AddFOp::create(b, loc, log, gate);
  return arith::MaximumFOp::create(b, loc, log,
                                   emitFloat(b, loc, log.getType(), kForget));
}
