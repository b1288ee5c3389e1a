//===- ConvGradient.cpp - Gradients of short convolutions -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A convolution is a sum of delayed inputs. Within one sequence a delay is a
// slice; packed sequences are delayed by convolutions with one weight, which
// are linear, and whose gradient is the same convolution from the last token
// on.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "OpGradients.h"
#include "TensorBuilder.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::linattn;

/// Inputs [B, T, C] behind those of the state, or, in reverse, before them.
static Value withState(TensorBuilder &t, CausalConvOp op) {
  Value state = t.map("bcs->bsc", op.getState());
  Value input = t.convert(op.getInput());
  if (!op.getReverse())
    return t.concat(1, {state, input});
  SmallVector<Value> parts{input};
  for (int64_t i = op.getStateLength(); i-- > 0;)
    parts.push_back(
        t.slice(state, 1, t.b.getIndexAttr(i), t.b.getIndexAttr(1)));
  return t.concat(1, parts);
}

/// The last inputs [B, S, C] that tokens to come need, oldest first.
static Value takeState(TensorBuilder &t, CausalConvOp op, Value inputs) {
  OpFoldResult length = t.b.getIndexAttr(op.getStateLength());
  if (!op.getReverse())
    return t.slice(inputs, 1, t.dim(op.getInput(), 1), length);
  SmallVector<Value> parts;
  for (int64_t i = op.getStateLength(); i-- > 0;)
    parts.push_back(
        t.slice(inputs, 1, t.b.getIndexAttr(i), t.b.getIndexAttr(1)));
  return t.concat(1, parts);
}

namespace {

/// Inputs as the weights meet them, and the final state.
struct Delayed {
  SmallVector<Value> inputs; ///< [B, T, C] for each weight.
  Value state;               ///< [B, C, S]
};

} // namespace

static Delayed delayBySlices(TensorBuilder &t, CausalConvOp op) {
  int64_t width = op.getWidth(), dilation = op.getDilation();
  int64_t spare = op.getStateLength() - (width - 1) * dilation;
  Value inputs = withState(t, op);
  Delayed delayed;
  for (int64_t k = 0; k < width; ++k) {
    int64_t offset =
        op.getReverse() ? (width - 1 - k) * dilation : spare + k * dilation;
    delayed.inputs.push_back(
        t.slice(inputs, 1, t.b.getIndexAttr(offset), t.dim(op.getInput(), 1)));
  }
  delayed.state = t.map("bsc->bcs", takeState(t, op, inputs));
  return delayed;
}

//===----------------------------------------------------------------------===//
// Packed sequences
//===----------------------------------------------------------------------===//

namespace {

/// A convolution with weights that are constants.
struct LinearConv {
  Value input, weight, offsets, state;
  int64_t dilation;
  bool reverse;

  /// Outputs and final state.
  ValueRange build(TensorBuilder &t) const {
    Value output = t.empty(t.sizes(input));
    return CausalConvOp::create(
               t.b, t.loc, TypeRange{output.getType(), state.getType()}, input,
               weight, Value(), offsets, output, state, ActivationAttr(),
               static_cast<uint64_t>(dilation), reverse)
        .getResults();
  }
};

} // namespace

/// [C, 2]: a delay by the dilation.
static Value delayWeight(TensorBuilder &t, OpFoldResult channels) {
  SmallVector<OpFoldResult> sizes{channels, t.b.getIndexAttr(1)};
  return t.concat(1, {t.filled(sizes, 1.0), t.filled(sizes, 0.0)});
}

static Delayed delayByConvs(TensorBuilder &t, CausalConvOp op) {
  int64_t width = op.getWidth();
  Value input = t.convert(op.getInput()), state = t.convert(op.getState());
  Value weight = delayWeight(t, t.dim(input, 2));
  auto delay = [&](int64_t tokens) {
    return LinearConv{input, weight, op.getCuSeqlens(),
                      state, tokens, op.getReverse()}
        .build(t);
  };
  Delayed delayed;
  for (int64_t k = 0; k + 1 < width; ++k) {
    ValueRange results = delay((width - 1 - k) * op.getDilation());
    delayed.inputs.push_back(results[0]);
    delayed.state = results[1];
  }
  delayed.inputs.push_back(input);
  if (!delayed.state && op.getStateLength() > 0)
    delayed.state = delay(1)[1];
  return delayed;
}

/// The last dimension backwards.
static Value flipped(TensorBuilder &t, Value state) {
  SmallVector<Value> parts;
  for (int64_t i = cast<ShapedType>(state.getType()).getDimSize(2); i-- > 0;)
    parts.push_back(
        t.slice(state, 2, t.b.getIndexAttr(i), t.b.getIndexAttr(1)));
  return t.concat(2, parts);
}

/// The cotangent of the state's inputs by the first outputs: `fromFirst` are
/// the cotangents of the first S outputs of each sequence.
static Value passToState(TensorBuilder &t, CausalConvOp op, Value fromFirst) {
  int64_t length = op.getStateLength(), width = op.getWidth();
  Value sum;
  for (int64_t k = 0; k + 1 < width; ++k) {
    int64_t delay = (width - 1 - k) * op.getDilation();
    SmallVector<Value> parts;
    if (delay < length) {
      SmallVector<OpFoldResult> sizes = t.sizes(fromFirst);
      sizes[2] = t.b.getIndexAttr(length - delay);
      parts.push_back(t.zeros(sizes));
    }
    parts.push_back(
        t.slice(fromFirst, 2, t.b.getIndexAttr(0), t.b.getIndexAttr(delay)));
    Value weight = t.withoutUnitDim(
        t.slice(op.getWeight(), 1, t.b.getIndexAttr(k), t.b.getIndexAttr(1)),
        1);
    Value shifted = parts.size() > 1 ? t.concat(2, parts) : parts[0];
    sum = t.add(sum, t.product("bcs,c->bcs", shifted, weight));
  }
  return sum;
}

/// Of a convolution with constant weights and nothing around it: from the last
/// token on, an input gets the weighted sum of the outputs that read it; the
/// final state is inputs, delayed by its length beyond the last token.
static LogicalResult buildLinearConvGradient(CausalConvOp op, OpBuilder &b,
                                             Cotangents &c) {
  TensorBuilder t(b, op.getLoc(), getElementTypeOrSelf(op.getInput()));
  Value dO = c.get(op.getResult(0)), dS = c.get(op.getResult(1));
  if (dO) {
    LinearConv back{dO,
                    op.getWeight(),
                    op.getCuSeqlens(),
                    t.zeros(t.sizes(op.getState())),
                    static_cast<int64_t>(op.getDilation()),
                    !op.getReverse()};
    ValueRange results = back.build(t);
    c.add(b, op.getInput(), results[0]);
    if (c.isActive(op.getState()) && op.getWidth() > 1)
      c.add(b, op.getState(), passToState(t, op, flipped(t, results[1])));
  }
  int64_t length = op.getStateLength();
  if (!dS || length == 0)
    return success();
  LinearConv back{t.zeros(t.sizes(op.getInput())),
                  delayWeight(t, t.dim(op.getInput(), 2)),
                  op.getCuSeqlens(),
                  flipped(t, dS),
                  length,
                  !op.getReverse()};
  ValueRange results = back.build(t);
  c.add(b, op.getInput(), results[0]);
  if (c.isActive(op.getState()))
    c.add(b, op.getState(), flipped(t, results[1]));
  return success();
}

//===----------------------------------------------------------------------===//
// causal_conv
//===----------------------------------------------------------------------===//

static SmallVector<Value> rewriteConv(CausalConvOp op, OpBuilder &b) {
  TensorBuilder t(b, op.getLoc(),
                  getAccumulationType(getElementTypeOrSelf(op.getInput())));
  TensorBuilder narrow(b, op.getLoc(), getElementTypeOrSelf(op.getInput()));
  int64_t width = op.getWidth();
  Delayed delayed =
      op.getCuSeqlens() ? delayByConvs(t, op) : delayBySlices(t, op);
  SmallVector<Value> terms;
  std::string subscripts;
  for (int64_t k = 0; k < width; ++k) {
    terms.push_back(delayed.inputs[k]);
    terms.push_back(t.withoutUnitDim(
        t.slice(op.getWeight(), 1, b.getIndexAttr(k), b.getIndexAttr(1)), 1));
    subscripts += k ? ",btc,c" : "btc,c";
  }
  if (op.getBias()) {
    terms.push_back(op.getBias());
    subscripts += ",c";
  }
  Value output =
      t.map(subscripts + "->btc", terms,
            [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
              Value sum = op.getBias() ? x.back() : Value();
              for (int64_t k = 0; k < width; ++k) {
                Value term =
                    arith::MulFOp::create(nested, at, x[2 * k], x[2 * k + 1]);
                sum = sum ? Value(arith::AddFOp::create(nested, at, sum, term))
                          : term;
              }
              return op.getActivation()
                         ? emitActivation(nested, at, *op.getActivation(), sum)
                         : sum;
            });
  return {narrow.convert(output),
          delayed.state ? narrow.convert(delayed.state) : Value()};
}

LogicalResult mlir::linattn::buildConvGradient(CausalConvOp op, OpBuilder &b,
                                               Cotangents &c) {
  bool isLinear =
      !op.getBias() && !op.getActivation() && !c.isActive(op.getWeight());
  if (op.getCuSeqlens() && isLinear)
    return buildLinearConvGradient(op, b, c);
  return differentiateThrough(b, op, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(rewriteConv(op, at));
  });
}
