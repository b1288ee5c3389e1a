//===- ScanNormalForm.cpp - Scans as their gradient sees them -------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Feature maps, masks, gates of the delta rule and the normalizer become ops
// before and after the recurrence, which have gradients of their own.
//
//===----------------------------------------------------------------------===//

#include "ScanNormalForm.h"
#include "GradientModel.h"
#include "TensorBuilder.h"
#include "linattn/Dialect/FeatureMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

static FeatureMapKind kindOf(ScanOp op) {
  return cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind();
}

static int64_t headsOf(Value tokens) {
  return cast<ShapedType>(tokens.getType()).getDimSize(1);
}

LogicalResult mlir::linattn::checkKnownHeads(Operation *op, ValueRange values) {
  if (llvm::none_of(values, [](Value value) {
        return ShapedType::isDynamic(headsOf(value));
      }))
    return success();
  return emitNoGradient(op) << " for a dynamic number of heads";
}

static bool hasGroupedHeads(ScanOp op) {
  int64_t heads = headsOf(op.getOutput());
  return headsOf(op.getQuery()) != heads || headsOf(op.getKey()) != heads ||
         headsOf(op.getValue()) != heads;
}

LogicalResult mlir::linattn::checkScanGradient(ScanOp op) {
  if (op.getStateIndices())
    return emitNoGradient(op) << " for state_indices";
  if (op.getInputGate())
    return emitNoGradient(op) << " for input_gate";
  if (op.getRunningMax())
    return emitNoGradient(op) << " for running_max";
  if (op.getEvery())
    return emitNoGradient(op) << " for snapshots";
  if (op.getUpdate() == Update::Oja)
    return emitNoGradient(op) << " for update(oja)";
  if (op.getBeta() && cast<ShapedType>(op.getBeta().getType()).getRank() == 4)
    return emitNoGradient(op) << " for beta of shape [B, H, T, V]";
  return checkKnownHeads(op, {op.getQuery(), op.getKey(), op.getValue(),
                              op.getState(), op.getOutput()});
}

bool mlir::linattn::needsNormalForm(ScanOp op) {
  return kindOf(op) != FeatureMapKind::Identity || op.getMask() ||
         op.getNormalize() || op.getUpdate() == Update::Delta ||
         hasGroupedHeads(op) ||
         getElementTypeOrSelf(op.getQuery()) !=
             getElementTypeOrSelf(op.getState());
}

namespace {

class NormalForm {
public:
  NormalForm(ScanOp op, OpBuilder &b)
      : op(op), b(b), t(b, op.getLoc(), getElementTypeOrSelf(op.getState())) {}

  SmallVector<Value> build();

private:
  Value repeat(Value x, int64_t dim = 1);
  Value repeatGate(Value gate);
  Value takeGroups(Value state);
  Value times(Value tokens, Value gate);
  ScanOp scan(Value value, Value state);

  ScanOp op;
  OpBuilder &b;
  TensorBuilder t;
  Value q, k, a, e;
};

} // namespace

Value mlir::linattn::buildFeatures(TensorBuilder &t,
                                   FeatureMappedOpInterface op, Value tokens) {
  if (op.getFeatureMapKind() == FeatureMapKind::Identity)
    return t.convert(tokens);
  auto attr = op->getAttrOfType<FeatureMapAttr>("feature_map");
  auto map = FeatureMapOp::create(t.b, t.loc, tokens, ValueRange(), Value(),
                                  t.empty(t.sizes(tokens)), attr);
  IRMapping mapping;
  op.getFeatureMapRegion().cloneInto(&map.getPhi(), mapping);
  return map.getResult(0);
}

Value mlir::linattn::buildQuotient(TensorBuilder &t, NormalizeAttr normalize,
                                   Type tokenType, Value numerator,
                                   Value denominator) {
  return t.map("bhtd,bht->bhtd", {numerator, denominator},
               [&](OpBuilder &nested, Location at, ValueRange args) {
                 return emitNormalize(nested, at, normalize, tokenType, args[0],
                                      args[1]);
               });
}

/// Every head as often as outputs have it, so that all have a state of their
/// own; heads are dimension `dim`. The gradient of this sums over the group in
/// the order of its heads.
Value NormalForm::repeat(Value x, int64_t dim) {
  return x ? t.repeated(x, dim, headsOf(op.getOutput())) : x;
}

Value NormalForm::repeatGate(Value gate) {
  bool isConstant = gate && cast<ShapedType>(gate.getType()).getRank() == 1;
  return repeat(gate, isConstant ? 0 : 1);
}

/// The state of the first output head of each group; all are the same.
Value NormalForm::takeGroups(Value state) {
  int64_t heads = headsOf(op.getState()), all = headsOf(state);
  if (heads == all)
    return state;
  SmallVector<OpFoldResult> sizes = t.sizes(state);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
  sizes[1] = b.getIndexAttr(heads);
  strides[1] = b.getIndexAttr(all / heads);
  return tensor::ExtractSliceOp::create(b, op.getLoc(), state, offsets, sizes,
                                        strides);
}

/// Tokens times a gate of a token or of each feature; null stands for one.
Value NormalForm::times(Value tokens, Value gate) {
  if (!gate)
    return tokens;
  return t.product("bhtd," + subscriptsOfGate(gate, 'd') + "->bhtd", tokens,
                   gate);
}

ScanOp NormalForm::scan(Value value, Value state) {
  SmallVector<OpFoldResult> shape = t.sizes(op.getOutput());
  shape[3] = t.dim(value, 3);
  Value none, output = t.empty(shape);
  return ScanOp::create(
      b, op.getLoc(), TypeRange{output.getType(), state.getType()}, q, k, value,
      repeatGate(op.getDecay()), repeatGate(op.getValueDecay()), none, a, e,
      repeat(op.getBonus(), 0), none, none, none, none, op.getCuSeqlens(), none,
      op.getScaleValue(), output, state, none, none, ValueRange(),
      a ? Update::Dplr : Update::Add, op.getReadout(), op.getTransition(),
      op.getReverse(), IntegerAttr(), FeatureMapAttr(), NormalizeAttr(),
      op.getScaleAttr(), op.getConfigAttr());
}

SmallVector<Value> NormalForm::build() {
  Location loc = op.getLoc();
  Value mask = op.getMask();
  auto mapped = cast<FeatureMappedOpInterface>(op.getOperation());
  q = repeat(buildFeatures(t, mapped, op.getQuery()));
  k = repeat(buildFeatures(t, mapped, op.getKey()));
  Value v = repeat(t.convert(op.getValue()));
  v = t.masked(times(v, repeatGate(op.getWrite())), mask);
  if (op.getUpdate() == Update::Delta) {
    a = arith::NegFOp::create(b, loc, times(k, repeatGate(op.getErase())));
    e = k = t.masked(times(k, repeatGate(op.getBeta())), mask);
  } else {
    k = t.masked(k, mask);
    a = repeatGate(op.getA());
    e = op.getB() ? t.masked(repeatGate(op.getB()), mask) : Value();
  }

  ScanOp numerator = scan(v, repeat(op.getState()));
  Value output = numerator.getResult(0);
  SmallVector<Value> results{output, takeGroups(numerator.getResult(1))};
  if (op.getNormalize()) {
    // z is one more column of the state, whose values are one.
    SmallVector<OpFoldResult> sizes = t.sizes(v);
    sizes[3] = b.getIndexAttr(1);
    Value ones = t.masked(t.filled(sizes, 1.0), mask);
    ScanOp sums = scan(ones, repeat(t.withUnitDim(op.getNormalizer(), 3)));
    output = buildQuotient(t, *op.getNormalize(),
                           getElementTypeOrSelf(op.getQuery()), output,
                           t.withoutUnitDim(sums.getResult(0), 3));
    results.push_back(t.withoutUnitDim(takeGroups(sums.getResult(1)), 3));
  }
  results[0] = TensorBuilder(b, loc, getElementTypeOrSelf(op.getOutput()))
                   .convert(output);
  return results;
}

SmallVector<Value> mlir::linattn::buildNormalForm(ScanOp op, OpBuilder &b) {
  return NormalForm(op, b).build();
}
