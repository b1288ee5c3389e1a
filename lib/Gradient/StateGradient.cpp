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
//===----------------------------------------------------------------------===//

#include "GradientModel.h"
#include "OpGradients.h"
#include "ScanNormalForm.h"
#include "TensorBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// The state as the final state of a scan, and the normalizer as that of a scan
/// whose only value is one.
static SmallVector<Value> rewriteAsScans(StateOp op, OpBuilder &b) {
  TensorBuilder tokens(b, op.getLoc(), getElementTypeOrSelf(op.getKey()));
  Value query = tokens.zeros(tokens.sizes(op.getKey())), none;
  auto scan = [&](Value value, Value state) {
    SmallVector<OpFoldResult> sizes = tokens.sizes(op.getKey());
    bool isWide = headsOf(op.getKey()) >= headsOf(value);
    sizes[1] = tokens.dim(isWide ? op.getKey() : value, 1);
    sizes[3] = tokens.dim(value, 3);
    Value output = tokens.empty(sizes);
    auto built = ScanOp::create(
        b, op.getLoc(), TypeRange{output.getType(), state.getType()}, query,
        op.getKey(), value, op.getDecay(), op.getValueDecay(), none, none, none,
        none, none, none, none, op.getMask(), op.getCuSeqlens(), none, none,
        output, state, none, none, ValueRange(), Update::Add,
        Readout::Inclusive, Transition::After, op.getReverse(), IntegerAttr(),
        op.getFeatureMapAttr(), NormalizeAttr(), FloatAttr(),
        op.getConfigAttr());
    IRMapping mapping;
    op.getPhi().cloneInto(&built.getPhi(), mapping);
    return built.getResult(1);
  };
  SmallVector<Value> results{scan(op.getValue(), op.getState())};
  if (Value z = op.getNormalizer()) {
    SmallVector<OpFoldResult> sizes = tokens.sizes(op.getValue());
    sizes[3] = b.getIndexAttr(1);
    TensorBuilder wide(b, op.getLoc(), getElementTypeOrSelf(z));
    results.push_back(wide.withoutUnitDim(
        scan(tokens.filled(sizes, 1.0), wide.withUnitDim(z, 3)), 3));
  }
  return results;
}

/// Without feature map, mask, grouped heads and normalizer.
static SmallVector<Value> rewriteAsProduct(StateOp op, OpBuilder &b) {
  TensorBuilder t(b, op.getLoc(), getElementTypeOrSelf(op.getState()));
  int64_t heads = headsOf(op.getState());
  Value key = t.masked(buildFeatures(t, mapped(op), op.getKey()), op.getMask());
  Value value = t.masked(t.convert(op.getValue()), op.getMask());
  key = t.repeated(key, 1, heads);
  value = t.repeated(value, 1, heads);
  StateValues state{op.getState(), {}, {}};
  SmallVector<Value> results{
      StateOp::create(b, op.getLoc(), key, value, Value(), state).getResult(0)};
  if (Value z = op.getNormalizer())
    results.push_back(t.add(z, t.sum("bhtk->bhk", key)));
  return results;
}

LogicalResult mlir::linattn::buildStateGradient(StateOp op, OpBuilder &b,
                                                Cotangents &c) {
  if (op.getRunningMax())
    return emitNoGradient(op) << " for running_max";
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
      t.repeated(buildFeatures(t, mapped(op), op.getQuery()), 1, heads);
  Value output =
      buildRead(t, query, t.repeated(op.getState(), 1, heads), scale);
  if (op.getNormalize()) {
    Value denominator =
        t.product("bhtk,bhk->bht", query,
                  t.repeated(op.getNormalizer(), 1, heads), scale);
    output =
        buildQuotient(t, *op.getNormalize(),
                      getElementTypeOrSelf(op.getQuery()), output, denominator);
  }
  TensorBuilder narrow(b, op.getLoc(), getElementTypeOrSelf(op.getOutput()));
  return {narrow.convert(output)};
}

LogicalResult mlir::linattn::buildReadGradient(ReadOp op, OpBuilder &b,
                                               Cotangents &c) {
  if (op.getRunningMax())
    return emitNoGradient(op) << " for running_max";
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
