//===- StateGradient.cpp - Gradients of state and read --------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// S = S_0 + KᵀV and O = s Q S are each other's gradients:
//
//   dK = V dSᵀ   dV = K dS   dS_0 = dS          reads
//   dQ = s dO Sᵀ             dS = s Qᵀ dO       a read and a state
//
// Feature maps, gates, normalizers and running maxima become ops around them,
// which have gradients of their own.
//
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "OpGradients.h"
#include "RowRecurrences.h"
#include "ScanNormalForm.h"
#include "TensorBuilder.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

static FeatureMappedOpInterface mapped(Operation *op) {
  return cast<FeatureMappedOpInterface>(op);
}

static bool hasFeatureMap(Operation *op) {
  return mapped(op).getFeatureMapKind() != FeatureMapKind::Identity;
}

/// O = factor · Q S, of equal heads.
static Value buildRead(TensorBuilder &t, Value query, Value state,
                       Scale factor) {
  SmallVector<OpFoldResult> sizes = t.sizes(query);
  sizes[3] = t.dim(state, 3);
  auto read = ReadOp::create(t.b, t.loc, query, state, Value(), t.empty(sizes));
  if (Value scale = factor.getValue())
    read.getScaleValueMutable().assign(scale);
  read.setScaleAttr(factor.getAttr(t.b));
  return read.getResult(0);
}

//===----------------------------------------------------------------------===//
// state
//===----------------------------------------------------------------------===//

/// The state as the final state of a scan, and a normalizer without a running
/// maximum as that of a scan whose only value is one.
static SmallVector<Value> rewriteAsScans(StateOp op, OpBuilder &b) {
  TensorBuilder tokens(b, op.getLoc(), getElementTypeOrSelf(op.getKey()));
  Value query = tokens.zeros(tokens.sizes(op.getKey())), none;
  auto scan = [&](Value value, const StateValues &start) {
    SmallVector<OpFoldResult> sizes = tokens.sizes(op.getKey());
    bool isWide = headsOf(op.getKey()) >= headsOf(value);
    sizes[1] = tokens.dim(isWide ? op.getKey() : value, 1);
    sizes[3] = tokens.dim(value, 3);
    Value output = tokens.empty(sizes);
    SmallVector<Type> types{output.getType()};
    llvm::append_range(types, ValueRange(start.present()).getTypes());
    NormalizeAttr normalize; // The output is not used.
    if (start.normalizer)
      normalize = NormalizeAttr::get(b.getContext(), b.getF64FloatAttr(1.0), {},
                                     {}, {});
    auto built = ScanOp::create(
        b, op.getLoc(), types, query, op.getKey(), value, op.getDecay(),
        op.getValueDecay(), none, none, none, none, none, none, none,
        op.getMask(), op.getCuSeqlens(), none, none, output, start.state,
        start.normalizer, start.runningMax, ValueRange(), Update::Add,
        Readout::Inclusive, Transition::After, op.getReverse(), IntegerAttr(),
        op.getFeatureMapAttr(), normalize, FloatAttr(), op.getConfigAttr());
    IRMapping mapping;
    op.getPhi().cloneInto(&built.getPhi(), mapping);
    return SmallVector<Value>(llvm::drop_begin(built.getResults()));
  };
  Value z = op.getNormalizer();
  if (op.getRunningMax())
    return scan(op.getValue(), {op.getState(), z, op.getRunningMax()});
  SmallVector<Value> results = scan(op.getValue(), {op.getState(), {}, {}});
  if (z) {
    SmallVector<OpFoldResult> sizes = tokens.sizes(op.getValue());
    sizes[3] = b.getIndexAttr(1);
    TensorBuilder wide(b, op.getLoc(), getElementTypeOrSelf(z));
    Value ones = tokens.filled(sizes, 1.0);
    Value sums = scan(ones, {wide.withUnitDim(z, 3), {}, {}}).front();
    results.push_back(wide.withoutUnitDim(sums, 3));
  }
  return results;
}

namespace {

/// The features of keys, and the state that they are written to.
struct Written {
  Value key; ///< [B, H, T, K]
  StateValues start;
};

} // namespace

/// The largest number of the keys [B, H, T, K] that are written, [B, H].
static Value buildLargest(TensorBuilder &t, Value keys, Value mask) {
  if (!mask)
    return t.maximum("bhtd->bh", keys);
  Value written =
      t.map("bhtd,bt->bhtd", {keys, mask},
            [&](OpBuilder &b, Location loc, ValueRange x) -> Value {
              Value none = emitFloat(b, loc, t.type, kNoMaximum);
              return arith::SelectOp::create(b, loc, x[1], x[0], none);
            });
  return t.maximum("bhtd->bh", written);
}

/// Keys relative to the maximum m that they leave behind, e^{k − m}, and the
/// state that they meet, times e^{m_0 − m}.
static Written buildRelative(TensorBuilder &t, StateOp op, int64_t heads) {
  Value key = t.convert(op.getKey()), before = op.getRunningMax();
  Value largest = t.repeated(buildLargest(t, key, op.getMask()), 1, heads);
  Value maximum = t.map("bh,bh->bh", {largest, before},
                        [&](OpBuilder &b, Location loc, ValueRange x) -> Value {
                          Value least = emitFloat(b, loc, t.type, kNoMaximum);
                          Value start =
                              arith::MaximumFOp::create(b, loc, x[1], least);
                          return arith::MaximumFOp::create(b, loc, x[0], start);
                        });
  Value rescaling =
      t.map("bh,bh->bh", {before, maximum},
            [](OpBuilder &b, Location loc, ValueRange x) -> Value {
              return emitRescaling(b, loc, x[0], x[1], Value());
            });
  key = t.map("bhtd,bh->bhtd", {t.repeated(key, 1, heads), maximum},
              [](OpBuilder &b, Location loc, ValueRange x) -> Value {
                return emitRelative(b, loc, x[0], x[1]);
              });
  auto rescale = [&](StringRef subscripts, Value x) {
    return t.map(subscripts, {x, rescaling},
                 [](OpBuilder &b, Location loc, ValueRange args) -> Value {
                   Value factor = math::ExpOp::create(b, loc, args[1]);
                   return arith::MulFOp::create(b, loc, args[0], factor);
                 });
  };
  return {key,
          {rescale("bhkv,bh->bhkv", op.getState()),
           rescale("bhk,bh->bhk", op.getNormalizer()), maximum}};
}

/// Without feature map, mask, grouped heads, normalizer and running maximum.
static SmallVector<Value> rewriteAsProduct(StateOp op, OpBuilder &b) {
  TensorBuilder t(b, op.getLoc(), getElementTypeOrSelf(op.getState()));
  int64_t heads = headsOf(op.getState());
  Written written;
  if (op.getRunningMax())
    written = buildRelative(t, op, heads);
  else
    written = {t.repeated(buildFeatures(t, mapped(op), op.getKey()), 1, heads),
               {op.getState(), op.getNormalizer(), {}}};
  Value key = t.masked(written.key, op.getMask());
  Value value = t.masked(t.convert(op.getValue()), op.getMask());
  StateValues product{written.start.state, {}, {}};
  SmallVector<Value> results{StateOp::create(b, op.getLoc(), key,
                                             t.repeated(value, 1, heads),
                                             Value(), product)
                                 .getResult(0)};
  if (Value z = written.start.normalizer)
    results.push_back(t.add(z, t.sum("bhtk->bhk", key)));
  if (Value m = written.start.runningMax)
    results.push_back(m);
  return results;
}

LogicalResult mlir::linattn::buildStateGradient(StateOp op, OpBuilder &b,
                                                Cotangents &c) {
  if (failed(checkKnownHeads(op, {op.getState(), op.getKey(), op.getValue()})))
    return failure();
  using Values = FailureOr<SmallVector<Value>>;
  if (op.getDecay() || op.getValueDecay() || op.getCuSeqlens())
    return differentiateThrough(b, op, c, [&](OpBuilder &at) -> Values {
      return rewriteAsScans(op, at);
    });
  Type type = getElementTypeOrSelf(op.getState());
  int64_t heads = headsOf(op.getState());
  if (hasFeatureMap(op) || op.getMask() || op.getNormalizer() ||
      getElementTypeOrSelf(op.getKey()) != type ||
      headsOf(op.getKey()) != heads || headsOf(op.getValue()) != heads)
    return differentiateThrough(b, op, c, [&](OpBuilder &at) -> Values {
      return rewriteAsProduct(op, at);
    });

  TensorBuilder t(b, op.getLoc(), type);
  Value d = c.get(op.getResult(0));
  c.add(b, op.getState(), d);
  if (c.isActive(op.getKey()))
    c.add(b, op.getKey(), buildRead(t, op.getValue(), t.transposed(d), 1.0));
  if (c.isActive(op.getValue()))
    c.add(b, op.getValue(), buildRead(t, op.getKey(), d, 1.0));
  return success();
}

//===----------------------------------------------------------------------===//
// read
//===----------------------------------------------------------------------===//

static SmallVector<Value> rewriteAsPlainRead(ReadOp op, OpBuilder &b) {
  TensorBuilder t(b, op.getLoc(), getElementTypeOrSelf(op.getState()));
  int64_t heads = headsOf(op.getOutput());
  Scale scale = Scale::of(op);
  Value query =
      needsRunningMax(mapped(op).getFeatureMapKind(), bool(op.getNormalize()))
          ? buildStabilised(t, op.getQuery())
          : buildFeatures(t, mapped(op), op.getQuery());
  query = t.repeated(query, 1, heads);
  Value output =
      buildRead(t, query, t.repeated(op.getState(), 1, heads), scale);
  if (op.getNormalize()) {
    Value denominator =
        t.product("bhtk,bhk->bht", query,
                  t.repeated(op.getNormalizer(), 1, heads), scale);
    Value m = op.getRunningMax();
    output = buildQuotient(t, *op.getNormalize(),
                           getElementTypeOrSelf(op.getQuery()), output,
                           denominator, m ? t.repeated(m, 1, heads) : m);
  }
  TensorBuilder narrow(b, op.getLoc(), getElementTypeOrSelf(op.getOutput()));
  return {narrow.convert(output)};
}

LogicalResult mlir::linattn::buildReadGradient(ReadOp op, OpBuilder &b,
                                               Cotangents &c) {
  if (failed(
          checkKnownHeads(op, {op.getOutput(), op.getQuery(), op.getState()})))
    return failure();
  Type type = getElementTypeOrSelf(op.getState());
  int64_t heads = headsOf(op.getOutput());
  if (hasFeatureMap(op) || op.getNormalize() ||
      getElementTypeOrSelf(op.getQuery()) != type ||
      headsOf(op.getQuery()) != heads || headsOf(op.getState()) != heads)
    return differentiateThrough(
        b, op, c, [&](OpBuilder &at) -> FailureOr<SmallVector<Value>> {
          return rewriteAsPlainRead(op, at);
        });

  addScaleGradient(op, b, c);
  TensorBuilder t(b, op.getLoc(), type);
  Scale scale = Scale::of(op);
  Value d = c.get(op.getResult(0));
  if (c.isActive(op.getQuery()))
    c.add(b, op.getQuery(),
          buildRead(t, d, t.transposed(op.getState()), scale));
  if (c.isActive(op.getState())) {
    StateValues zero{t.zeros(t.sizes(op.getState())), {}, {}};
    Value sum = StateOp::create(b, op.getLoc(), op.getQuery(), d, Value(), zero)
                    .getResult(0);
    c.add(b, op.getState(), t.timesExp(sum, Value(), scale));
  }
  return success();
}
