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
#include "linattn/Dialect/Einsum.h"
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

LogicalResult mlir::linattn::checkScanGradient(ScanOp op) {
  if (op.getStateIndices())
    return emitNoGradient(op) << " for state_indices";
  if (op.getInputGate())
    return emitNoGradient(op) << " for input_gate";
  if (op.getRunningMax())
    return emitNoGradient(op) << " for running_max";
  if (op.getUpdate() == Update::Oja)
    return emitNoGradient(op) << " for update(oja)";
  if (op.getBeta() && cast<ShapedType>(op.getBeta().getType()).getRank() == 4)
    return emitNoGradient(op) << " for beta of shape [B, H, T, V]";
  bool isGrouped = headsOf(op.getQuery()) != headsOf(op.getOutput()) ||
                   headsOf(op.getKey()) != headsOf(op.getOutput()) ||
                   headsOf(op.getValue()) != headsOf(op.getOutput());
  if (isGrouped)
    return emitNoGradient(op) << " for query, key and value of different "
                                 "numbers of heads";
  return success();
}

bool mlir::linattn::needsNormalForm(ScanOp op) {
  return kindOf(op) != FeatureMapKind::Identity || op.getMask() ||
         op.getNormalize() || op.getUpdate() == Update::Delta ||
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
  Value features(Value tokens);
  Value times(Value tokens, Value gate);
  ScanOp scan(Value value, Value state);
  Value divide(Value numerator, Value denominator);

  ScanOp op;
  OpBuilder &b;
  TensorBuilder t;
  Value q, k, a, e;
};

} // namespace

/// φ of the tokens, in the element type of the state.
Value NormalForm::features(Value tokens) {
  if (kindOf(op) == FeatureMapKind::Identity)
    return t.convert(tokens);
  auto map =
      FeatureMapOp::create(b, op.getLoc(), tokens, ValueRange(), Value(),
                           t.empty(t.sizes(tokens)), op.getFeatureMapAttr());
  if (!op.getPhi().empty()) {
    IRMapping mapping;
    op.getPhi().cloneInto(&map.getPhi(), mapping);
  }
  return map.getResult(0);
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
      op.getDecay(), op.getValueDecay(), none, a, e, op.getBonus(), none, none,
      none, none, op.getCuSeqlens(), none, output, state, none, none,
      a ? Update::Dplr : Update::Add, op.getReadout(), op.getTransition(),
      op.getReverse(), FeatureMapAttr(), NormalizeAttr(), op.getScaleAttr(),
      op.getConfigAttr());
}

Value NormalForm::divide(Value numerator, Value denominator) {
  Type tokenType = getElementTypeOrSelf(op.getQuery());
  return t.map("bhtd,bhto->bhtd", {numerator, denominator},
               [&](OpBuilder &nested, Location at, ValueRange args) {
                 return emitNormalize(nested, at, *op.getNormalize(), tokenType,
                                      args[0], args[1]);
               });
}

SmallVector<Value> NormalForm::build() {
  Location loc = op.getLoc();
  q = features(op.getQuery());
  k = features(op.getKey());
  Value v = times(t.convert(op.getValue()), op.getWrite());
  a = op.getA();
  e = op.getB();
  if (op.getUpdate() == Update::Delta) {
    a = arith::NegFOp::create(b, loc, times(k, op.getErase()));
    k = times(k, op.getBeta());
  }
  Value mask = op.getMask();
  k = t.masked(k, mask);
  v = t.masked(v, mask);
  if (op.getUpdate() == Update::Delta)
    e = k;
  else if (e)
    e = t.masked(e, mask);

  ScanOp numerator = scan(v, op.getState());
  Value output = numerator.getResult(0);
  SmallVector<Value> results{output, numerator.getResult(1)};
  if (op.getNormalize()) {
    // z is one more column of the state, whose values are one.
    SmallVector<OpFoldResult> sizes = t.sizes(v);
    sizes[3] = b.getIndexAttr(1);
    Value ones = filled(b, loc, sizes, t.type, 1.0);
    Value z = op.getNormalizer();
    SmallVector<ReassociationIndices> groups{{0}, {1}, {2, 3}};
    SmallVector<int64_t> shape(cast<ShapedType>(z.getType()).getShape());
    shape.push_back(1);
    SmallVector<OpFoldResult> zSizes = t.sizes(z);
    zSizes.push_back(b.getIndexAttr(1));
    Value column = tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get(shape, t.type), z, groups, zSizes);
    ScanOp sums = scan(t.masked(ones, mask), column);
    output = divide(output, sums.getResult(0));
    results.push_back(tensor::CollapseShapeOp::create(
        b, loc, cast<RankedTensorType>(z.getType()), sums.getResult(1),
        groups));
  }
  results[0] = TensorBuilder(b, loc, getElementTypeOrSelf(op.getOutput()))
                   .convert(output);
  return results;
}

SmallVector<Value> mlir::linattn::buildNormalForm(ScanOp op, OpBuilder &b) {
  return NormalForm(op, b).build();
}
