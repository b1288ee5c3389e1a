//===- ScanTraits.cpp - The rule and the traits of a scan -----------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "linattn/Dialect/ScanTraits.h"

using namespace mlir;
using namespace mlir::linattn;
using ::linattn::ScanTrait;
using ::linattn::ScanTraits;

const ::linattn::UpdateRule &mlir::linattn::getRule(Update update) {
  const ::linattn::UpdateRule &rule =
      ::linattn::getUpdateRules()[size_t(update)];
  assert(StringRef(rule.name) == stringifyUpdate(update) &&
         "the table of rules follows the enumeration");
  return rule;
}

/// One number per token and channel.
static bool isWide(Value gate) {
  return gate && cast<ShapedType>(gate.getType()).getRank() == 4;
}

static bool isOther(Value gate) {
  if (!gate)
    return false;
  Type type = getElementTypeOrSelf(gate);
  return !type.isF32() && !type.isF16() && !type.isBF16();
}

/// Of the clauses that a scan shares with its state half.
template <typename Op>
static void addShared(ScanTraits &traits, Op op) {
  traits.add(ScanTrait::ChannelDecay, isWide(op.getDecay()));
  traits.add(ScanTrait::ValueDecay, bool(op.getValueDecay()));
  traits.add(ScanTrait::OtherGates, isOther(op.getDecay()));
  traits.add(ScanTrait::RunningMax, bool(op.getRunningMax()));
  traits.add(ScanTrait::Normalizer, bool(op.getNormalizer()));
  FeatureMapKind map =
      cast<FeatureMappedOpInterface>(op.getOperation()).getFeatureMapKind();
  traits.add(ScanTrait::FeatureMap, map != FeatureMapKind::Identity);
  traits.add(ScanTrait::TokenMaximum, map == FeatureMapKind::SoftmaxKernel);
  traits.add(ScanTrait::Region, map == FeatureMapKind::Region);
  traits.add(ScanTrait::Packed, bool(op.getCuSeqlens()));
  traits.add(ScanTrait::OtherSchedule,
             op.getConfig() && op.getConfig()->getForm() != Form::Chunk);
}

ScanTraits mlir::linattn::getTraits(ScanOp op) {
  ScanTraits traits = ::linattn::getTraits(getRule(op));
  addShared(traits, op);
  for (Value gate :
       {op.getBeta(), op.getA(), op.getB(), op.getErase(), op.getWrite()})
    traits.add(ScanTrait::OtherGates, isOther(gate));
  traits.add(ScanTrait::ColumnBeta, isWide(op.getBeta()));
  traits.add(ScanTrait::Bonus, bool(op.getBonus()));
  traits.add(ScanTrait::InputGate, bool(op.getInputGate()));
  traits.add(ScanTrait::Normalizer, op.getNormalize().has_value());
  traits.add(ScanTrait::Pool, bool(op.getStateIndices()));
  traits.add(ScanTrait::Snapshots, op.getEvery().has_value());
  return traits;
}

ScanTraits mlir::linattn::getTraits(StateOp op) {
  ScanTraits traits;
  addShared(traits, op);
  return traits;
}
