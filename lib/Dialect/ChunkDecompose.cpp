//===- ChunkDecompose.cpp - Rows of a chunk as linalg on tensors ----------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkLinalg.h"

#include <limits>

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::chunk;

Value ChunkLinalg::rowsOf(Value x, bool reverse) {
  int64_t headDim = rankOf(x) == 2 ? 0 : 1;
  auto few = cast<ShapedType>(x.getType()).getDimSize(headDim);
  auto many = cast<ShapedType>(output.getType()).getDimSize(1);
  bool grouped = ShapedType::isDynamic(few) || ShapedType::isDynamic(many);
  if (!grouped && !reverse)
    return x;
  SmallVector<OpFoldResult> shape = sizes(x);
  if (grouped)
    shape[headDim] = size(output, 1);
  Value heads = dim(output, 1), ownHeads = dim(x, headDim);
  Value tokens = reverse ? dim(x, 2) : Value();
  Value init = tensor::EmptyOp::create(b, loc, shape, getElementTypeOrSelf(x));
  std::string letters = headDim == 0 ? "hk" : withFeatures("bhi", x);
  return map("->" + letters, {}, init,
             [&](ImplicitLocOpBuilder &s, ValueRange) {
               SmallVector<Value> at;
               for (size_t loop = 0; loop < letters.size(); ++loop)
                 at.push_back(loopIndex(s, loop));
               if (grouped)
                 at[headDim] = arith::DivUIOp::create(
                     s, arith::MulIOp::create(s, at[headDim], ownHeads), heads);
               if (reverse)
                 at[2] = mirrored(s, at[2], tokens);
               return tensor::ExtractOp::create(s, x, at).getResult();
             });
}

Value ChunkLinalg::spans(
    Value decay, StringRef letters, int64_t tokenDims,
    function_ref<Value(ImplicitLocOpBuilder &, Value)> inSpan) {
  SmallVector<OpFoldResult> shape{size(decay, 0), size(decay, 1)};
  shape.append(tokenDims, size(decay, 2));
  if (rankOf(decay) == 4)
    shape.push_back(size(decay, 3));
  std::string result = withFeatures(letters, decay);
  return map(withFeatures("bhs", decay) + "->" + result, decay,
             full(shape, 0.0), [&](ImplicitLocOpBuilder &s, ValueRange args) {
               Value token = loopIndex(s, result.size());
               Value sum = add(s, args[1], args[0]);
               return arith::SelectOp::create(s, inSpan(s, token), sum, args[1])
                   .getResult();
             });
}

//===----------------------------------------------------------------------===//
// pack, unpack
//===----------------------------------------------------------------------===//

/// Packs the tokens of a partial chunk into the first rows of a tensor of
/// zeros.
static SmallVector<Value> padRows(OpBuilder &b, ChunkPackOp op) {
  ChunkLinalg steps(b, op, op.getOutput());
  Value zeros = steps.full(steps.sizes(op.getOutput()), 0.0);
  SmallVector<OpFoldResult> sizes = steps.sizes(op.getOutput());
  sizes[2] = steps.size(op.getInput(), 2);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0)),
      strides(sizes.size(), b.getIndexAttr(1));
  Value rows = tensor::ExtractSliceOp::create(b, op.getLoc(), zeros, offsets,
                                              sizes, strides);
  Value none;
  auto pack = ChunkPackOp::create(
      b, op.getLoc(), TypeRange{rows.getType()}, op.getInput(), none, none,
      none, op.getScaleValue(), rows, op.getScaleAttr(), FloatAttr());
  Value packed = pack.decomposeOperation(b)->front();
  pack.erase();
  return {tensor::InsertSliceOp::create(b, op.getLoc(), packed, zeros, offsets,
                                        sizes, strides)};
}

FailureOr<SmallVector<Value>> ChunkPackOp::decomposeOperation(OpBuilder &b) {
  if (getPadded())
    return padRows(b, *this);
  ChunkLinalg steps(b, *this, getOutput());
  Type type = steps.type;
  Scale scale = Scale::of(*this);
  double fill = getFill() ? getFill()->convertToDouble() : 0.0;
  std::string rows = withFeatures("bhi", getOutput());
  SmallVector<Value> inputs;
  std::string subscripts;
  auto input = [&](Value value, StringRef letters) {
    if (!value)
      return;
    inputs.push_back(value);
    subscripts += (subscripts.empty() ? "" : ",") + letters.str();
  };
  bool isNumber = rankOf(getInput()) == 1;
  input(isNumber ? getInput() : steps.rowsOf(getInput(), getReverse()),
        isNumber ? "h" : StringRef(rows));
  input(getShift(), "bhi");
  if (getGate())
    input(steps.rowsOf(getGate()), withFeatures("bhi", getGate()));
  input(getMask(), "bi");
  Value result =
      steps.map(subscripts + "->" + rows, inputs, getOutput(),
                [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
                  size_t next = 0;
                  auto take = [&] {
                    return convertFloat(s, s.getLoc(), args[next++], type);
                  };
                  Value x = take();
                  if (getShift())
                    x = arith::SubFOp::create(s, x, take());
                  if (getGate())
                    x = mul(s, x, take());
                  x = scale.apply(s, s.getLoc(), x);
                  if (!getMask())
                    return x;
                  return arith::SelectOp::create(
                      s, args[next], x, emitFloat(s, s.getLoc(), type, fill));
                });
  return SmallVector<Value>{result};
}

FailureOr<SmallVector<Value>> ChunkUnpackOp::decomposeOperation(OpBuilder &b) {
  ChunkLinalg steps(b, *this, getOutput());
  bool reverse = getReverse();
  SmallVector<Value> inputs{steps.rowsOf(getRows(), reverse)};
  std::string subscripts = "bhik";
  if (Value denominator = getDenominator()) {
    SmallVector<ReassociationIndices> columns{{0}, {1}, {2, 3}};
    inputs.push_back(tensor::CollapseShapeOp::create(
        b, getLoc(), steps.rowsOf(denominator, reverse), columns));
    subscripts += ",bhi";
  }
  if (getRunningMax()) {
    inputs.push_back(steps.rowsOf(getRunningMax(), reverse));
    subscripts += ",bhi";
  }
  Value result = steps.map(
      subscripts + "->bhik", inputs, getOutput(),
      [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
        Value y = args[0];
        if (getNormalize())
          y = emitNormalize(s, s.getLoc(), *getNormalize(), steps.type, y,
                            args[1], getRunningMax() ? args[2] : Value());
        return convertFloat(s, s.getLoc(), y, steps.type);
      });
  return SmallVector<Value>{result};
}

//===----------------------------------------------------------------------===//
// decay, stabilize
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>> ChunkDecayOp::decomposeOperation(OpBuilder &b) {
  ChunkLinalg steps(b, *this, getOutput());
  Value logs = steps.spans(steps.rowsOf(getDecay()), "bhi", 1,
                           [&](ImplicitLocOpBuilder &s, Value token) {
                             Value row = loopIndex(s, 2);
                             return getToEnd() ? less(s, row, token)
                                               : less(s, token, row,
                                                      /*orEqual=*/!getBefore());
                           });
  Value result = steps.map("bhik," + withFeatures("bhi", logs) + "->bhik",
                           {getRows(), logs}, getOutput(),
                           [&](ImplicitLocOpBuilder &s, ValueRange args) {
                             return mul(s, args[0], exp(s, args[1]));
                           });
  return SmallVector<Value>{result};
}

FailureOr<SmallVector<Value>>
ChunkStabilizeOp::decomposeOperation(OpBuilder &b) {
  ChunkLinalg steps(b, *this, getMaxima());
  Location loc = getLoc();
  Type type = steps.type;
  double none = -std::numeric_limits<double>::infinity();
  double lowest =
      APFloat::getLargest(cast<FloatType>(type).getFloatSemantics(), true)
          .convertToDouble();
  Value magnitude = getMagnitude();
  if (rankOf(magnitude) == 4)
    magnitude = steps.map(
        "bhik->bhi", magnitude, steps.full(steps.sizes(getMaxima()), none),
        [](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
          return arith::MaximumFOp::create(s, args[0], args[1]);
        });
  // The slice of token t, with its features if it has any.
  auto tokenSlice = [&](Value x, Value t) {
    SmallVector<OpFoldResult> offsets(rankOf(x), b.getIndexAttr(0)),
        extents = steps.sizes(x), strides(rankOf(x), b.getIndexAttr(1));
    offsets[2] = t;
    extents[2] = b.getIndexAttr(1);
    return std::tuple(offsets, extents, strides);
  };
  auto extract = [&](Value x, Value t) -> Value {
    auto [offsets, extents, strides] = tokenSlice(x, t);
    return tensor::ExtractSliceOp::create(b, loc, x, offsets, extents, strides);
  };
  auto insert = [&](Value row, Value x, Value t) -> Value {
    auto [offsets, extents, strides] = tokenSlice(x, t);
    return tensor::InsertSliceOp::create(b, loc, row, x, offsets, extents,
                                         strides);
  };
  auto maximum = [](ImplicitLocOpBuilder &s, Value x, Value y) -> Value {
    return arith::MaximumFOp::create(s, x, y);
  };
  bool follows = getDecay() && !getSteady();
  auto loop = scf::ForOp::create(
      b, loc, steps.index(0), steps.dim(getMaxima(), 2), steps.index(1),
      ValueRange{getFade(), getMaxima(), getRunningMax()});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar(), fade = loop.getRegionIterArg(0),
        maxima = loop.getRegionIterArg(1), past = loop.getRegionIterArg(2);
  Value log = getDecay() ? extract(getDecay(), t) : Value();
  SmallVector<Value> inputs{extract(magnitude, t), past};
  std::string subscripts = "bhi,bh";
  if (follows) {
    inputs.push_back(log);
    subscripts += ",bhi";
  }
  Value best = steps.map(subscripts + "->bhi", inputs, extract(maxima, t),
                         [&](ImplicitLocOpBuilder &s, ValueRange args) {
                           Value old = args[1];
                           if (follows)
                             old = add(s, old, args[2]);
                           return maximum(s, old, args[0]);
                         });
  // The differences are those of finite numbers.
  inputs = {past, best};
  subscripts = "bh,bhi";
  Value row = extract(fade, t);
  if (log) {
    inputs.push_back(log);
    subscripts += "," + withFeatures("bhi", log);
  }
  Value faded =
      steps.map(subscripts + "->" + withFeatures("bhi", row), inputs, row,
                [&](ImplicitLocOpBuilder &s, ValueRange args) -> Value {
                  Value least = emitFloat(s, s.getLoc(), type, lowest);
                  Value change =
                      arith::SubFOp::create(s, maximum(s, args[0], least),
                                            maximum(s, args[1], least));
                  // This order of additions compensates the rounding of m_t.
                  return log ? add(s, change, args[2]) : change;
                });
  Value shift = steps.map(
      "bhi->bhi", best, extract(maxima, t),
      [&](ImplicitLocOpBuilder &s, ValueRange args) {
        return maximum(s, args[0], emitFloat(s, s.getLoc(), type, lowest));
      });
  Value last = steps.map("bhi->bh", best, steps.full(steps.sizes(past), none),
                         [&](ImplicitLocOpBuilder &s, ValueRange args) {
                           return maximum(s, args[0], args[1]);
                         });
  scf::YieldOp::create(
      b, loc,
      ValueRange{insert(faded, fade, t), insert(shift, maxima, t), last});
  return SmallVector<Value>(loop.getResults());
}
