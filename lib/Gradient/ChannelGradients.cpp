//===- ChannelGradients.cpp - Gradients of recurrences over channels ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op by others that have a gradient: the elementwise recurrences are scans
// of one row whose decay is one of values; the convolution is a sum of slices.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "OpGradients.h"
#include "TensorBuilder.h"
#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

/// h_t = e^{decay_t} h_{t−1} + value_t for [B, H, T, V]: outputs and final
/// state.
static ValueRange buildRowScan(TensorBuilder &t, Value value, Value decay,
                               Value state, Value offsets, bool reverse) {
  SmallVector<OpFoldResult> sizes = t.sizes(value);
  Value output = t.empty(sizes);
  sizes[3] = t.b.getIndexAttr(1);
  Value none, ones = t.filled(sizes, 1.0);
  return ScanOp::create(
             t.b, t.loc, TypeRange{output.getType(), state.getType()}, ones,
             ones, value, none, decay, none, none, none, none, none, none, none,
             none, offsets, none, none, output, state, none, none, ValueRange(),
             Update::Add, Readout::Inclusive, Transition::After, reverse,
             IntegerAttr(), FeatureMapAttr(), NormalizeAttr(), FloatAttr(),
             ConfigAttr())
      .getResults();
}

static Value first(OpBuilder &, Location, ValueRange args) { return args[0]; }

//===----------------------------------------------------------------------===//
// diagonal_scan
//===----------------------------------------------------------------------===//

static SmallVector<Value> rewriteDiagonal(DiagonalScanOp op, OpBuilder &b) {
  TensorBuilder t(b, op.getLoc(), getElementTypeOrSelf(op.getState()));
  Value x = t.withUnitDim(t.convert(op.getInput()), 1);
  bool isConstant = cast<ShapedType>(op.getDecay().getType()).getRank() == 1;
  Value decay = t.withUnitDim(t.map(isConstant ? "c,btc->btc" : "btc,btc->btc",
                                    {op.getDecay(), op.getInput()}, first),
                              1);
  Value state = t.withUnitDim(t.withUnitDim(op.getState(), 1), 2);
  ValueRange h =
      buildRowScan(t, x, decay, state, op.getCuSeqlens(), op.getReverse());
  TensorBuilder narrow(b, op.getLoc(), getElementTypeOrSelf(op.getOutput()));
  return {narrow.convert(t.withoutUnitDim(h[0], 1)),
          t.withoutUnitDim(t.withoutUnitDim(h[1], 2), 1)};
}

LogicalResult mlir::linattn::buildDiagonalGradient(DiagonalScanOp op,
                                                   OpBuilder &b,
                                                   Cotangents &c) {
  if (op.getPhase())
    return emitNoGradient(op) << " for phase";
  return differentiateThrough(b, op, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(rewriteDiagonal(op, at));
  });
}

//===----------------------------------------------------------------------===//
// selective_scan
//===----------------------------------------------------------------------===//

/// max(x, 0) + log(1 + e^−|x|)
static Value emitSoftplus(OpBuilder &b, Location loc, Value x) {
  Value zero = emitFloat(b, loc, x.getType(), 0.0);
  Value magnitude = math::AbsFOp::create(b, loc, x);
  Value small = math::Log1pOp::create(
      b, loc,
      math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, magnitude)));
  return arith::AddFOp::create(
      b, loc, arith::MaximumFOp::create(b, loc, x, zero), small);
}

namespace {

/// y = Σ_n c[n] h[n], where every channel is a head and its states are values.
struct Selective {
  Selective(SelectiveScanOp op, OpBuilder &b)
      : op(op), t(b, op.getLoc(), getElementTypeOrSelf(op.getState())) {}

  /// Δ as [B, T, C].
  Value steps() {
    SmallVector<Value> inputs{op.getDelta(), op.getInput()};
    bool isConstant = cast<ShapedType>(inputs[0].getType()).getRank() == 1;
    std::string subscripts = isConstant ? "c,btc" : "btc,btc";
    if (op.getDeltaBias()) {
      inputs.push_back(op.getDeltaBias());
      subscripts += ",c";
    }
    return t.map(subscripts + "->btc", inputs,
                 [&](OpBuilder &nested, Location at, ValueRange x) -> Value {
                   Value delta = x[0];
                   if (op.getDeltaBias())
                     delta = arith::AddFOp::create(nested, at, delta, x[2]);
                   return op.getDeltaSoftplus()
                              ? emitSoftplus(nested, at, delta)
                              : delta;
                 });
  }

  /// b or c, groups of channels repeated, and its subscripts.
  std::pair<Value, StringRef> projection(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() != 4)
      return {value, type.getRank() == 2 ? "cn" : "btn"};
    auto channels = cast<ShapedType>(op.getInput().getType()).getDimSize(2);
    return {t.repeated(value, 1, channels), "bctn"};
  }

  SmallVector<Value> build();

  SelectiveScanOp op;
  TensorBuilder t;
};

} // namespace

static Value multiplyAll(OpBuilder &b, Location loc, ValueRange args) {
  Value product = args[0];
  for (Value factor : args.drop_front())
    product = arith::MulFOp::create(b, loc, product, factor);
  return product;
}

SmallVector<Value> Selective::build() {
  Value delta = steps(), input = op.getInput();
  auto [b, bDims] = projection(op.getB());
  auto [c, cDims] = projection(op.getC());
  Value decay = t.map("btc,cn->bctn", {delta, op.getA()}, multiplyAll);
  Value value = t.map("btc,btc," + bDims.str() + "->bctn", {delta, input, b},
                      multiplyAll);
  Value state = t.withUnitDim(op.getState(), 2);
  ValueRange h =
      buildRowScan(t, value, decay, state, op.getCuSeqlens(), op.getReverse());
  Value y = t.sum("bctn," + cDims.str() + "->btc", {h[0], c}, multiplyAll);
  if (Value skip = op.getSkip())
    y = t.add(y, t.map("btc,c->btc", {input, skip}, multiplyAll));
  if (Value gate = op.getGate())
    y = t.map("btc,btc->btc", {y, gate},
              [](OpBuilder &nested, Location at, ValueRange x) -> Value {
                return arith::MulFOp::create(
                    nested, at, x[0],
                    emitActivation(nested, at, Activation::Silu, x[1]));
              });
  TensorBuilder narrow(t.b, t.loc, getElementTypeOrSelf(op.getOutput()));
  return {narrow.convert(y), t.withoutUnitDim(h[1], 2)};
}

LogicalResult mlir::linattn::buildSelectiveGradient(SelectiveScanOp op,
                                                    OpBuilder &b,
                                                    Cotangents &c) {
  for (auto [value, name] :
       {std::pair(op.getAImag(), "a_imag"), std::pair(op.getBImag(), "b_imag"),
        std::pair(op.getCImag(), "c_imag")})
    if (value)
      return emitNoGradient(op) << " for " << name;
  for (Value value : {op.getB(), op.getC()}) {
    auto type = cast<RankedTensorType>(value.getType());
    auto input = cast<ShapedType>(op.getInput().getType());
    if (type.getRank() == 4 && (type.isDynamicDim(1) || input.isDynamicDim(2)))
      return emitNoGradient(op)
             << " for groups of channels, unless their number is known";
  }
  return differentiateThrough(b, op, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(Selective(op, at).build());
  });
}

//===----------------------------------------------------------------------===//
// causal_conv
//===----------------------------------------------------------------------===//

/// Inputs [B, T, C] behind those of the state, or, in reverse, before them.
static Value withState(TensorBuilder &t, CausalConvOp op) {
  Value state = t.map("bcs->bsc", op.getState(), first);
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

static SmallVector<Value> rewriteConv(CausalConvOp op, OpBuilder &b) {
  TensorBuilder t(b, op.getLoc(),
                  getAccumulationType(getElementTypeOrSelf(op.getInput())));
  TensorBuilder narrow(b, op.getLoc(), getElementTypeOrSelf(op.getInput()));
  int64_t width = op.getWidth(), dilation = op.getDilation();
  int64_t spare = op.getStateLength() - (width - 1) * dilation;
  OpFoldResult tokens = t.dim(op.getInput(), 1);
  Value inputs = withState(t, op);
  SmallVector<Value> terms;
  std::string subscripts;
  for (int64_t k = 0; k < width; ++k) {
    int64_t offset =
        op.getReverse() ? (width - 1 - k) * dilation : spare + k * dilation;
    terms.push_back(t.slice(inputs, 1, b.getIndexAttr(offset), tokens));
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
  Value state = narrow.map("bsc->bcs", takeState(t, op, inputs), first);
  return {narrow.convert(output), state};
}

LogicalResult mlir::linattn::buildConvGradient(CausalConvOp op, OpBuilder &b,
                                               Cotangents &c) {
  if (op.getCuSeqlens())
    return emitNoGradient(op) << " for cu_seqlens";
  return differentiateThrough(b, op, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(rewriteConv(op, at));
  });
}
