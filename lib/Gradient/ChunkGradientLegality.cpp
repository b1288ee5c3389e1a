//===- ChunkGradientLegality.cpp - Scans with a gradient by chunks --------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChunkGradient.h"

#include "linattn/Dialect/ScanTraits.h"

using namespace mlir;
using namespace mlir::linattn;

std::string mlir::linattn::whyNoChunkGradient(ScanOp op, const Cotangents &c) {
  if (op.getConfig())
    return "it has a schedule";
  const ::linattn::UpdateRule &rule = getRule(op);
  if (!rule.isAdditive() && !rule.correctsValues())
    return "its transition is not made of its keys";
  if (op.getReadout() != Readout::Inclusive ||
      (rule.correctsValues() && op.getTransition() != Transition::After))
    return "it reads the state before the token";
  if (op.getReverse() || op.getEvery() || op.getStateIndices())
    return "it is reversed, or has snapshots or a pool of states";
  if (op.getMask() || op.getNormalize() || op.getInputGate() ||
      cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind() !=
          FeatureMapKind::Identity)
    return "it has a mask, an input gate, a feature map or a normalizer";
  if (op.getErase() || op.getWrite() || op.getValueDecay() || op.getBonus() ||
      (op.getBeta() && rankOf(op.getBeta()) == 4))
    return "it has a bonus, or a gate of erasing, writing or value columns";
  // Its gradient sums up what nearly cancels over all tokens.
  if (op.getDecay() && rankOf(op.getDecay()) == 1)
    return "it has a decay of its heads";
  auto state = cast<ShapedType>(op.getState().getType());
  int64_t lanes =
      c.chunks.vectorBits / state.getElementType().getIntOrFloatBitWidth();
  for (int64_t i : {2, 3})
    if (state.isDynamicDim(i) || state.getDimSize(i) % lanes)
      return "its features are not whole vectors";
  // A sweep has as many products, and transposes no state.
  if (rule.isAdditive() && !op.getDecay())
    return "a sweep of its state costs less";
  for (Value x : {op.getQuery(), op.getKey(), op.getValue()}) {
    auto type = cast<ShapedType>(x.getType());
    if (state.isDynamicDim(1) || type.getDimSize(1) != state.getDimSize(1))
      return "its heads are in groups";
    if (type.getElementType() != state.getElementType())
      return "its tokens are not of the state's type";
    if (!c.isActive(x))
      return "query, key or value has no gradient";
  }
  if (!c.get(op.getResult(0)))
    return "its output has no cotangent";
  return {};
}
