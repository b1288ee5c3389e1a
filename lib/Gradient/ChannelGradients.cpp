//===- ChannelGradients.cpp - Gradients of recurrences over channels ------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op by others that have a gradient: elementwise recurrences are scans of
// one row whose decay is one of values.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "OpGradients.h"
#include "RowRecurrences.h"
#include "linattn/Dialect/Einsum.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "linattn/Dialect/LinAttnSweep.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

//===----------------------------------------------------------------------===//
// diagonal_scan
//===----------------------------------------------------------------------===//

static SmallVector<Value> rewriteDiagonal(DiagonalScanOp op, OpBuilder &b) {
  bool isComplex = bool(op.getPhase());
  // Angles add up over all tokens.
  TensorBuilder t(b, op.getLoc(),
                  isComplex ? Type(b.getF64Type())
                            : getElementTypeOrSelf(op.getState()));
  TensorBuilder narrow(b, op.getLoc(), getElementTypeOrSelf(op.getOutput()));
  TensorBuilder stored(b, op.getLoc(), getElementTypeOrSelf(op.getState()));
  auto tokens = [&](Value x) { return x ? t.withUnitDim(t.convert(x), 1) : x; };
  auto gate = [&](Value x) {
    bool isConstant = cast<ShapedType>(x.getType()).getRank() == 1;
    return t.withUnitDim(
        t.map(isConstant ? "c,btc->btc" : "btc,btc->btc", {x, op.getInput()}),
        1);
  };
  auto state = [&](Value x) {
    return t.withUnitDim(t.withUnitDim(t.convert(x), 1), 2);
  };
  auto output = [&](Value x) { return narrow.convert(t.withoutUnitDim(x, 1)); };
  auto final = [&](Value x) {
    return stored.convert(t.withoutUnitDim(t.withoutUnitDim(x, 2), 1));
  };
  Value decay = gate(op.getDecay());
  if (!isComplex) {
    ValueRange h = RowScan{tokens(op.getInput()), decay, state(op.getState()),
                           op.getCuSeqlens(), op.getReverse()}
                       .build(t);
    return {output(h[0]), final(h[1])};
  }
  ComplexRowScan scan{{tokens(op.getInput()), tokens(op.getImag())},
                      decay,
                      gate(op.getPhase()),
                      {state(op.getState()), state(op.getStateImag())},
                      op.getCuSeqlens(),
                      op.getReverse()};
  auto [h, last] = scan.build(t);
  SmallVector<Value> results{output(h.real)};
  if (op.getOutputImag())
    results.push_back(output(h.imag));
  results.append({final(last.real), final(last.imag)});
  return results;
}

LogicalResult mlir::linattn::buildDiagonalGradient(DiagonalScanOp op,
                                                   OpBuilder &b,
                                                   Cotangents &c) {
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

/// y = Σ_n c[n] h[n], where every channel is a head and its states are values;
/// with `core` another selective scan, which has a sweep.
struct Selective {
  Selective(SelectiveScanOp op, OpBuilder &b, bool core = false)
      : op(op), t(b, op.getLoc(),
                  op.getAImag() ? Type(b.getF64Type())
                                : getElementTypeOrSelf(op.getState())),
        core(core) {}

  /// Δ as [B, T, C].
  Value steps() {
    SmallVector<Value> inputs{op.getDelta(), op.getInput()};
    bool isConstant = cast<ShapedType>(inputs[0].getType()).getRank() == 1;
    if (!isConstant && !op.getDeltaBias() && !op.getDeltaSoftplus())
      return t.convert(op.getDelta());
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

  /// Δ u b.
  Value write(Value delta, Value projected);
  /// Σ_n c[n] h[n].
  Value read(Value states, Value projected);
  SmallVector<Value> buildStates(Value delta, Value &y);
  SmallVector<Value> buildCore(Value delta, Value &y);
  SmallVector<Value> build();

  SelectiveScanOp op;
  TensorBuilder t;
  bool core;
};

} // namespace

static Value multiplyAll(OpBuilder &b, Location loc, ValueRange args) {
  Value product = args[0];
  for (Value factor : args.drop_front())
    product = arith::MulFOp::create(b, loc, product, factor);
  return product;
}

Value Selective::write(Value delta, Value projected) {
  if (!projected)
    return {};
  auto [b, dims] = projection(projected);
  return t.map("btc,btc," + dims.str() + "->bctn", {delta, op.getInput(), b},
               multiplyAll);
}

Value Selective::read(Value states, Value projected) {
  if (!projected)
    return {};
  auto [c, dims] = projection(projected);
  return t.sum("bctn," + dims.str() + "->btc", {states, c}, multiplyAll);
}

/// The final states, and y from the states of the tokens.
SmallVector<Value> Selective::buildStates(Value delta, Value &y) {
  auto angle = [&](Value a) {
    return t.map("btc,cn->bctn", {delta, a}, multiplyAll);
  };
  auto state = [&](Value x) { return t.withUnitDim(t.convert(x), 2); };
  Value decay = angle(op.getA()), value = write(delta, op.getB());
  if (!op.getAImag()) {
    ValueRange h = RowScan{value, decay, state(op.getState()),
                           op.getCuSeqlens(), op.getReverse()}
                       .build(t);
    y = read(h[0], op.getC());
    return {h[1]};
  }
  ComplexRowScan scan{{value, write(delta, op.getBImag())},
                      decay,
                      angle(op.getAImag()),
                      {state(op.getState()), state(op.getStateImag())},
                      op.getCuSeqlens(),
                      op.getReverse()};
  auto [h, last] = scan.build(t);
  y = t.sub(read(h.real, op.getC()), read(h.imag, op.getCImag()));
  return {last.real, last.imag};
}

/// The same by a selective scan of steps alone, all in the state's type.
SmallVector<Value> Selective::buildCore(Value delta, Value &y) {
  Value none, input = t.convert(op.getInput());
  Value output = t.empty(t.sizes(input));
  auto scan = SelectiveScanOp::create(
      t.b, t.loc, TypeRange{output.getType(), op.getState().getType()}, input,
      delta, t.convert(op.getA()), t.convert(op.getB()), t.convert(op.getC()),
      none, none, none, none, none, none, op.getCuSeqlens(), output,
      op.getState(), none, /*delta_softplus=*/false, op.getReverse());
  y = scan.getResult(0);
  return {scan.getResult(1)};
}

SmallVector<Value> Selective::build() {
  Value delta = steps(), input = op.getInput(), y;
  SmallVector<Value> states =
      core ? buildCore(delta, y) : buildStates(delta, y);
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
  TensorBuilder stored(t.b, t.loc, getElementTypeOrSelf(op.getState()));
  SmallVector<Value> results{narrow.convert(y)};
  for (Value state : states)
    results.push_back(core ? state
                           : stored.convert(t.withoutUnitDim(state, 2)));
  return results;
}

/// Whether its states are real, and b and c depend on the token.
static bool hasSweep(SelectiveScanOp op) {
  return !op.getAImag() &&
         cast<ShapedType>(op.getB().getType()).getRank() > 2 &&
         cast<ShapedType>(op.getC().getType()).getRank() > 2;
}

/// Whether one sweep computes all gradients, with no other ops around it.
static bool isCore(SelectiveScanOp op) {
  Type type = getElementTypeOrSelf(op.getState());
  return hasSweep(op) && !op.getSkip() && !op.getGate() && !op.getDeltaBias() &&
         !op.getDeltaSoftplus() &&
         cast<ShapedType>(op.getDelta().getType()).getRank() == 3 &&
         llvm::all_of(ValueRange{op.getInput(), op.getDelta(), op.getA(),
                                 op.getB(), op.getC()},
                      [&](Value x) { return getElementTypeOrSelf(x) == type; });
}

static void addSelectiveSweep(SelectiveScanOp op, OpBuilder &b, Cotangents &c) {
  TensorBuilder t(b, op.getLoc(), getElementTypeOrSelf(op.getState()));
  auto cotangent = [&](unsigned result, Value like) {
    Value given = c.get(op->getResult(result));
    return given ? given : t.zeros(t.sizes(like));
  };
  SmallVector<Value> inputs{op.getInput(), op.getDelta(), op.getA(), op.getB(),
                            op.getC()};
  SmallVector<Value> into;
  for (Value input : inputs)
    into.push_back(t.empty(t.sizes(input)));
  into.push_back(cotangent(1, op.getState()));
  auto sweep = SweepSelectiveOp::create(
      b, op.getLoc(), TypeRange(ValueRange(into)), inputs[0], inputs[1],
      inputs[2], inputs[3], inputs[4], op.getState(),
      cotangent(0, op.getInput()), op.getCuSeqlens(), into[0], into[1], into[2],
      into[3], into[4], into[5], op.getReverse());
  inputs.push_back(op.getState());
  for (auto [input, result] : llvm::zip_equal(inputs, sweep->getResults()))
    c.add(b, input, result);
}

LogicalResult mlir::linattn::buildSelectiveGradient(SelectiveScanOp op,
                                                    OpBuilder &b,
                                                    Cotangents &c) {
  for (Value value : {op.getB(), op.getC()}) {
    auto type = cast<RankedTensorType>(value.getType());
    auto input = cast<ShapedType>(op.getInput().getType());
    if (type.getRank() == 4 && (type.isDynamicDim(1) || input.isDynamicDim(2)))
      return emitNoGradient(op)
             << " for groups of channels, unless their number is known";
  }
  if (isCore(op)) {
    addSelectiveSweep(op, b, c);
    return success();
  }
  return differentiateThrough(b, op, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(
        Selective(op, at, hasSweep(op)).build());
  });
}

FailureOr<SmallVector<Value>>
mlir::linattn::buildSplitSweep(OpBuilder &b, SweepSelectiveOp op) {
  Location loc = op.getLoc();
  TensorBuilder t(b, loc, getElementTypeOrSelf(op.getState()));
  Cotangents c;
  // Operands may be one value; each of them has a cotangent of its own.
  SmallVector<Value> inputs;
  for (Value input : {op.getInput(), op.getDelta(), op.getA(), op.getB(),
                      op.getC(), op.getStart()}) {
    inputs.push_back(
        tensor::CastOp::create(b, loc, input.getType(), input).getResult());
    c.activate(inputs.back());
  }
  Value none, output = t.empty(t.sizes(op.getInput()));
  auto scan = SelectiveScanOp::create(
      b, loc, TypeRange{output.getType(), op.getStart().getType()}, inputs[0],
      inputs[1], inputs[2], inputs[3], inputs[4], none, none, none, none, none,
      none, op.getCuSeqlens(), output, inputs[5], none,
      /*delta_softplus=*/false, op.getReverse());
  c.activateThrough({scan.getOperation()});
  c.add(b, scan.getResult(0), op.getCotangent());
  c.add(b, scan.getResult(1), op.getState());
  LogicalResult built = differentiateThrough(b, scan, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(Selective(scan, at).build());
  });
  scan.erase();
  if (failed(built))
    return failure();
  SmallVector<Value> results;
  for (auto [input, type] : llvm::zip_equal(inputs, op.getResultTypes())) {
    Value value = c.get(input);
    if (value.getType() != type)
      value = tensor::CastOp::create(b, loc, type, value);
    results.push_back(value);
  }
  return results;
}

//===----------------------------------------------------------------------===//
// wkv4
//===----------------------------------------------------------------------===//

/// (e^{m − M} A + e^{u + k − M} v) / (e^{m − M} B + e^{u + k − M}), M the
/// larger exponent; 0 where nothing has any weight.
static Value emitQuotient(OpBuilder &b, Location loc, ValueRange args) {
  Value sum = args[0], weight = args[1], past = args[2], value = args[4];
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulFOp::create(b, loc, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, loc, x, y);
  };
  Value own = add(args[3], args[5]);
  Value most = arith::MaximumFOp::create(b, loc, past, own);
  auto exp = [&](Value x) -> Value {
    Value log = arith::SubFOp::create(b, loc, x, most);
    return math::ExpOp::create(b, loc, log);
  };
  Value kept = exp(past), added = exp(own);
  Value numerator = add(mul(kept, sum), mul(added, value));
  Value divisor = add(mul(kept, weight), added);
  Value isEmpty =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, divisor,
                            emitFloat(b, loc, divisor.getType(), 0.0));
  divisor = arith::SelectOp::create(
      b, loc, isEmpty, emitFloat(b, loc, divisor.getType(), 1.0), divisor);
  return arith::DivFOp::create(b, loc, numerator, divisor);
}

/// Sums and weights as scans of one row, relative to the running maximum.
static SmallVector<Value> rewriteWkv4(Wkv4Op op, OpBuilder &b) {
  TensorBuilder t(b, op.getLoc(), getElementTypeOrSelf(op.getState()));
  Value key = t.convert(op.getKey()), decay = t.convert(op.getDecay());
  auto part = [&](int64_t i) {
    return t.slice(op.getState(), 1, b.getIndexAttr(i), b.getIndexAttr(1));
  };
  RunningMaxima maxima =
      buildRunningMaxima(t, {key, decay, t.withoutUnitDim(part(2), 1),
                             op.getCuSeqlens(), op.getReverse()});
  Value log = t.map("btc,btc,c->btc", {maxima.previous, maxima.current, decay},
                    [](OpBuilder &nested, Location at, ValueRange x) {
                      return emitRescaling(nested, at, x[0], x[1], x[2]);
                    });
  Value weight =
      t.map("btc,btc->btc", {key, maxima.current},
            [](OpBuilder &nested, Location at, ValueRange x) -> Value {
              Value rise = arith::SubFOp::create(nested, at, x[0], x[1]);
              return math::ExpOp::create(nested, at, rise);
            });
  Value term = t.map("btc,btc->btc", {weight, op.getValue()}, multiplyAll);
  auto scan = [&](Value x, Value state) {
    return RowScan{t.withUnitDim(x, 1),     t.withUnitDim(log, 1),
                   t.withUnitDim(state, 1), op.getCuSeqlens(),
                   op.getReverse(),         Readout::Exclusive}
        .build(t);
  };
  ValueRange sums = scan(term, part(0)), weights = scan(weight, part(1));
  Value output =
      t.map("btc,btc,btc,btc,btc,c->btc",
            {t.withoutUnitDim(sums[0], 1), t.withoutUnitDim(weights[0], 1),
             maxima.previous, key, op.getValue(), op.getBonus()},
            emitQuotient);
  Value state = t.concat(1, {t.withoutUnitDim(sums[1], 2),
                             t.withoutUnitDim(weights[1], 2),
                             t.withUnitDim(maxima.last, 1)});
  TensorBuilder narrow(b, op.getLoc(), getElementTypeOrSelf(op.getOutput()));
  return {narrow.convert(output), state};
}

LogicalResult mlir::linattn::buildWkv4Gradient(Wkv4Op op, OpBuilder &b,
                                               Cotangents &c) {
  return differentiateThrough(b, op, c, [&](OpBuilder &at) {
    return FailureOr<SmallVector<Value>>(rewriteWkv4(op, at));
  });
}
