//===- Recurrence.cpp - The operands of a recurrence ----------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Transforms/Recurrence.h"

using namespace mlir;
using namespace mlir::linattn;

Recurrence::Recurrence(ScanOp scan)
    : op(cast<FeatureMappedOpInterface>(scan.getOperation())),
      query(scan.getQuery()), key(scan.getKey()), value(scan.getValue()),
      decay(scan.getDecay()), valueDecay(scan.getValueDecay()),
      beta(scan.getBeta()), a(scan.getA()), b(scan.getB()),
      bonus(scan.getBonus()), erase(scan.getErase()), write(scan.getWrite()),
      inputGate(scan.getInputGate()), mask(scan.getMask()),
      offsets(scan.getCuSeqlens()), indices(scan.getStateIndices()),
      output(scan.getOutput()),
      state{scan.getState(), scan.getNormalizer(), scan.getRunningMax()},
      update(scan.getUpdate()),
      exclusive(scan.getReadout() == Readout::Exclusive),
      before(scan.getTransition() == Transition::Before),
      reverse(scan.getReverse()), normalize(scan.getNormalize()),
      scale(Scale::of(scan)) {}

Recurrence::Recurrence(StateOp sum)
    : op(cast<FeatureMappedOpInterface>(sum.getOperation())), key(sum.getKey()),
      value(sum.getValue()), decay(sum.getDecay()),
      valueDecay(sum.getValueDecay()), mask(sum.getMask()),
      offsets(sum.getCuSeqlens()),
      state{sum.getState(), sum.getNormalizer(), sum.getRunningMax()},
      reverse(sum.getReverse()) {}

Recurrence::Recurrence(ReadOp read)
    : op(cast<FeatureMappedOpInterface>(read.getOperation())),
      query(read.getQuery()), output(read.getOutput()),
      state{read.getState(), read.getNormalizer(), read.getRunningMax()},
      normalize(read.getNormalize()), scale(Scale::of(read)) {}

SmallVector<Value *> Recurrence::tokenOperands() {
  SmallVector<Value *> operands;
  for (Value *operand : {&query, &key, &value, &decay, &valueDecay, &beta, &a,
                         &b, &erase, &write, &inputGate, &mask, &output})
    if (*operand && cast<ShapedType>(operand->getType()).getRank() > 1)
      operands.push_back(operand);
  return operands;
}
