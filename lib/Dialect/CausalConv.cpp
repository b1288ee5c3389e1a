//===- CausalConv.cpp - linattn.causal_conv -------------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keyword.h"
#include "VerifyUtils.h"

#include "linattn/Dialect/LinAttnConv.h"

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::verify;

#define GET_OP_CLASSES
#include "linattn/Dialect/LinAttnConv.cpp.inc"

SmallVector<DimRelation> CausalConvOp::getDimRelations() {
  static constexpr StringRef dims[] = {"batch size", "sequence length",
                                       "channel count"};
  Relations relations;
  Named input{getInput(), "input"}, weight{getWeight(), "weight"},
      bias{getBias(), "bias"}, output{getOutput(), "output"},
      state{getState(), "state"};
  for (int64_t dim = 0; dim < 3; ++dim)
    relations.equal("K1", dims[dim], input, dim, output, dim);
  relations.equal("K2", dims[2], weight, 0, input, 2);
  if (bias.value)
    relations.equal("K3", dims[2], bias, 0, input, 2);
  if (Value offsets = getCuSeqlens())
    relations.oneLess("K6", "first dimension", state, 0,
                      {offsets, "cu_seqlens"}, 0);
  else
    relations.equal("K4", dims[0], input, 0, state, 0);
  relations.equal("K4", dims[2], state, 1, input, 2);
  return relations.list;
}

LogicalResult CausalConvOp::verify() {
  Named input{getInput(), "input"};
  if (failed(verifySemantics(*this)) ||
      failed(verifySameElementType(*this, input, {getOutput(), "output"})) ||
      failed(verifySameElementType(*this, input, {getState(), "state"})))
    return failure(); // (K1), (K4)
  constexpr int64_t widest = 16;
  int64_t width = getWidth();
  if (width < 1 || width > widest) // (K2)
    return emitOpError("expected weight to have a fixed width from 1 to ")
           << widest << ", but got "
           << (ShapedType::isDynamic(width) ? "?" : std::to_string(width));
  int64_t dilation = getDilation();
  if (dilation < 1) // (K5)
    return emitOpError("expected dilation to be at least 1, but got ")
           << dilation;
  int64_t length = getStateLength();
  if (ShapedType::isDynamic(length)) // (K4)
    return emitOpError("expected the state to hold a fixed number of inputs, "
                       "but got ?");
  // A quotient, since the product may overflow.
  if (width > 1 && length / (width - 1) < dilation) // (K4)
    return emitOpError("expected the state to hold at least the ")
           << width - 1 << " · " << dilation
           << " inputs that the next output has, but got " << length;
  if (failed(verifyPackedBatch(*this, getCuSeqlens(), getInput()))) // (K6)
    return failure();
  return verifyRelations(*this);
}
