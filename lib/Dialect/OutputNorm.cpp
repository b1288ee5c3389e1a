//===- OutputNorm.cpp - Verifier of linattn.output_norm -------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifyUtils.h"

#include <cmath>

using namespace mlir;
using namespace mlir::linattn;
using namespace mlir::linattn::verify;

SmallVector<DimRelation> OutputNormOp::getDimRelations() {
  static constexpr StringRef what[] = {"batch size", "head count",
                                       "sequence length", "head size"};
  Relations relations;
  Named input{getInput(), "input"};
  for (int64_t dim = 0; dim < 4; ++dim) {
    for (Named operand : {Named{getGate(), "gate"}, Named{getSkip(), "skip"}})
      if (operand.value)
        relations.equal("N1", what[dim], input, dim, operand, dim);
    relations.equal("N1", what[dim], input, dim, {getOutput(), "output"}, dim);
  }
  for (Named operand : {Named{getWeight(), "weight"}, Named{getBias(), "bias"},
                        Named{getSkipWeight(), "skip_weight"}}) {
    if (!operand.value)
      continue;
    int64_t last = rankOf(operand.value) - 1;
    if (last == 1)
      relations.equal("N3", what[1], input, 1, operand, 0);
    relations.equal("N3", what[3], input, 3, operand, last);
  }
  return relations.list;
}

LogicalResult OutputNormOp::verify() {
  if (failed(verifySemantics(*this)))
    return failure();
  Named input{getInput(), "input"};
  Named output{getOutput(), "output"};
  bool isRounded = elementType(input.value) ==
                   getAccumulationType(elementType(output.value));
  if (!isRounded && failed(verifySameElementType(*this, input, output))) // (N2)
    return failure();
  if (getGateFirst() && !getGate()) // (N4)
    return emitOpError("expected gate_first only with a gate, but got none");
  double eps = getEps().convertToDouble();
  if (!std::isfinite(eps) || eps < 0) // (N5)
    return emitOpError("expected eps to be finite and not negative, but got ")
           << eps;
  double offset = getWeightOffset().convertToDouble();
  if (!std::isfinite(offset)) // (N6)
    return emitOpError("expected weight_offset to be finite, but got ")
           << offset;
  if (offset != 0 && !getWeight()) // (N6)
    return emitOpError("expected weight_offset only with a weight, but got ")
           << offset << " without";
  if (!getSkip() != !getSkipWeight()) // (N7)
    return emitOpError("expected skip and skip_weight together, but got only ")
           << (getSkip() ? "skip" : "skip_weight");
  return verifyRelations(*this);
}
