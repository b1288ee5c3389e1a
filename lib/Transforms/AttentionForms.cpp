//===- AttentionForms.cpp - The forms of attention ------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds the scan, the state and read pair, and the quadratic op that state the
// same attention. The passes decide which.
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/Einsum.h"
#include "linattn/Transforms/Transforms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::linattn;

static FeatureMapKind kindOf(AttentionOp op) {
  return cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind();
}

/// max(Hk, Hv): the number of states.
static OpFoldResult stateHeads(OpBuilder &b, AttentionOp op) {
  Location loc = op.getLoc();
  OpFoldResult keys = tensor::getMixedSize(b, loc, op.getKey(), 1);
  OpFoldResult values = tensor::getMixedSize(b, loc, op.getValue(), 1);
  auto keyHeads = getConstantIntValue(keys),
       valueHeads = getConstantIntValue(values);
  if (keyHeads && valueHeads)
    return b.getIndexAttr(std::max(*keyHeads, *valueHeads));
  return arith::MaxSIOp::create(b, loc,
                                getValueOrCreateConstantIndexOp(b, loc, keys),
                                getValueOrCreateConstantIndexOp(b, loc, values))
      .getResult();
}

StateValues mlir::linattn::createInitialState(OpBuilder &b, AttentionOp op) {
  Location loc = op.getLoc();
  Type type = getAccumulationType(getElementTypeOrSelf(op.getQuery()));
  OpFoldResult batch = tensor::getMixedSize(b, loc, op.getQuery(), 0);
  OpFoldResult heads = stateHeads(b, op);
  OpFoldResult keySize = tensor::getMixedSize(b, loc, op.getKey(), 3);
  OpFoldResult valueSize = tensor::getMixedSize(b, loc, op.getValue(), 3);

  StateValues values;
  values.state = filled(b, loc, {batch, heads, keySize, valueSize}, type, 0.0);
  if (op.getNormalize())
    values.normalizer = filled(b, loc, {batch, heads, keySize}, type, 0.0);
  if (needsRunningMax(kindOf(op), op.getNormalize().has_value())) {
    // Finite, so that the first rescaling is e^(lowest − m) = 0 instead of NaN.
    double lowest =
        APFloat::getLargest(cast<FloatType>(type).getFloatSemantics(), true)
            .convertToDouble();
    values.runningMax = filled(b, loc, {batch, heads}, type, lowest);
  }
  return values;
}

Value mlir::linattn::createDestination(OpBuilder &b, AttentionOp op) {
  ReifiedRankedShapedTypeDims shapes;
  LogicalResult reified = op.reifyResultShapes(b, shapes);
  assert(succeeded(reified) && "attention reifies its result");
  (void)reified;
  return tensor::EmptyOp::create(b, op.getLoc(), shapes.front(),
                                 getElementTypeOrSelf(op.getOutput()));
}

/// Copies φ. Regions are cloned, because one op may give several forms.
template <typename OpTy>
static void copyFeatureMap(RewriterBase &rewriter, AttentionOp from, OpTy to) {
  to.setFeatureMapAttr(from.getFeatureMapAttr());
  to.setConfigAttr(from.getConfigAttr());
  if (!from.getPhi().empty())
    rewriter.cloneRegionBefore(from.getPhi(), to.getPhi(), to.getPhi().end());
}

template <typename OpTy>
static void copyReadout(AttentionOp from, OpTy to) {
  to.setNormalizeAttr(from.getNormalizeAttr());
  to.setScaleAttr(from.getScaleAttr());
  if (Value scale = from.getScaleValue())
    to.getScaleValueMutable().assign(scale);
}

ScanOp mlir::linattn::rewriteAsScan(RewriterBase &rewriter, AttentionOp op) {
  StateValues state = createInitialState(rewriter, op);
  auto scan = ScanOp::create(rewriter, op.getLoc(), op.getQuery(), op.getKey(),
                             op.getValue(), op.getMask(),
                             createDestination(rewriter, op), state);
  copyFeatureMap(rewriter, op, scan);
  copyReadout(op, scan);
  return scan;
}

/// mask[b, t] ∧ t < prefix[b], as the mask of the state; or, for each element
/// of the output, whether its query is in the prefix.
static Value isInPrefix(OpBuilder &b, Location loc, AttentionOp op,
                        StringRef dims, ArrayRef<Value> inputs, Value init) {
  std::string subscripts;
  for (Value input : inputs)
    subscripts += input == op.getPrefix() ? "b," : std::string(dims) + ",";
  subscripts.pop_back();
  unsigned tokenDim = dims.find('t');
  return elementwise(
      b, loc, subscripts + "->" + std::string(dims), inputs, init,
      [&](OpBuilder &nested, Location at, ValueRange args) -> Value {
        Value t = arith::IndexCastOp::create(
            nested, at, args[0].getType(),
            linalg::IndexOp::create(nested, at, tokenDim));
        Value inside = arith::CmpIOp::create(
            nested, at, arith::CmpIPredicate::slt, t, args[0]);
        if (inputs.size() == 1)
          return inside;
        if (inputs.size() == 2)
          return arith::AndIOp::create(nested, at, inside, args[1]);
        return arith::SelectOp::create(nested, at, inside, args[1], args[2]);
      });
}

Value mlir::linattn::rewritePrefixed(RewriterBase &rewriter, AttentionOp op) {
  Location loc = op.getLoc();
  Value causal = rewriteAsScan(rewriter, op).getResults().front();
  // Queries of the prefix read the state of the whole prefix. The scan, which
  // writes the same keys first, answers the rest.
  Value prefix = op.getPrefix(), mask = op.getMask();
  Value empty = tensor::EmptyOp::create(
      rewriter, loc,
      {tensor::getMixedSize(rewriter, loc, op.getKey(), 0),
       tensor::getMixedSize(rewriter, loc, op.getKey(), 2)},
      rewriter.getI1Type());
  SmallVector<Value> inputs{prefix};
  if (mask)
    inputs.push_back(mask);
  Value written = isInPrefix(rewriter, loc, op, "bt", inputs, empty);
  StateValues initial = createInitialState(rewriter, op);
  auto state = StateOp::create(rewriter, loc, op.getKey(), op.getValue(),
                               written, initial);
  copyFeatureMap(rewriter, op, state);
  auto read =
      ReadOp::create(rewriter, loc, op.getQuery(), state.getResults()[0],
                     initial.normalizer ? state.getResults()[1] : Value(),
                     createDestination(rewriter, op));
  copyFeatureMap(rewriter, op, read);
  copyReadout(op, read);
  return isInPrefix(rewriter, loc, op, "bhtd",
                    {prefix, read.getResults()[0], causal},
                    createDestination(rewriter, op));
}

ReadOp mlir::linattn::rewriteAsStateAndRead(RewriterBase &rewriter,
                                            AttentionOp op, Value destination) {
  if (!destination)
    destination = createDestination(rewriter, op);
  StateValues initial = createInitialState(rewriter, op);
  auto state = StateOp::create(rewriter, op.getLoc(), op.getKey(),
                               op.getValue(), op.getMask(), initial);
  copyFeatureMap(rewriter, op, state);
  Value normalizer = initial.normalizer ? state.getResults()[1] : Value();
  auto read = ReadOp::create(rewriter, op.getLoc(), op.getQuery(),
                             state.getResults()[0], normalizer, destination);
  copyFeatureMap(rewriter, op, read);
  copyReadout(op, read);
  return read;
}

QuadraticOp mlir::linattn::rewriteAsQuadratic(RewriterBase &rewriter,
                                              AttentionOp op,
                                              Value destination) {
  if (!destination)
    destination = createDestination(rewriter, op);
  auto quadratic = QuadraticOp::create(rewriter, op.getLoc(), op.getQuery(),
                                       op.getKey(), op.getValue(), op.getMask(),
                                       op.getPrefix(), destination);
  copyFeatureMap(rewriter, op, quadratic);
  copyReadout(op, quadratic);
  quadratic.setWeights(op.getWeights());
  quadratic.setCausal(op.getCausal());
  quadratic.setPatternAttr(op.getPatternAttr());
  quadratic.setSoftcapAttr(op.getSoftcapAttr());
  if (Value slopes = op.getSlopes())
    quadratic.getSlopesMutable().assign(slopes);
  if (Value sinks = op.getSinks())
    quadratic.getSinksMutable().assign(sinks);
  return quadratic;
}
