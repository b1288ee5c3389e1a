//===- Tables.h - The parts of the table of families ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_LIB_FAMILIES_TABLES_H
#define LINATTN_LIB_FAMILIES_TABLES_H

#include "linattn/Families/FamilyBuilder.h"

namespace mlir::linattn {

/// Families whose state is a decayed sum.
void appendAdditiveFamilies(std::vector<Family> &families);
/// Families with a delta rule.
void appendDeltaFamilies(std::vector<Family> &families);
/// Families of two scans.
void appendTwoPassFamilies(std::vector<Family> &families);
void appendBeyondFamilies(std::vector<Family> &families);
/// Mamba-3: keys are rotated by accumulated angles.
void appendMamba3Families(std::vector<Family> &families);
/// LightNet: keys are divided by their running sums.
void appendLightNetFamilies(std::vector<Family> &families);
/// The delta rule with momentum: two states.
void appendMomentumFamilies(std::vector<Family> &families);

//===----------------------------------------------------------------------===//
// Operands and options of most families
//===----------------------------------------------------------------------===//

inline FamilyOperand tokens(std::string name, std::string layout,
                            std::string doc) {
  return {std::move(name), FamilyOperandKind::Tokens, std::move(layout), false,
          std::move(doc)};
}
inline FamilyOperand gate(std::string name, std::string layouts,
                          std::string doc) {
  return {std::move(name), FamilyOperandKind::Gate, std::move(layouts), false,
          std::move(doc)};
}
inline FamilyOperand optional(FamilyOperand operand) {
  operand.isOptional = true;
  return operand;
}
inline FamilyOperand offsets() {
  return {"cu_seqlens", FamilyOperandKind::Offsets, "T", true,
          "offsets of packed sequences"};
}

inline FamilyOption scaleOption() {
  return {"scale", std::nullopt, "multiplies the output; K^-1/2 unless given"};
}
inline FamilyOption flag(std::string name, std::string doc) {
  return {std::move(name), FamilyValue(0.0), std::move(doc)};
}
inline FamilyOption reverseOption() {
  return flag("reverse", "from the last token to the first");
}

inline std::vector<FamilyOperand> queryKeyValue() {
  return {tokens("q", "B T Hq K", "queries"), tokens("k", "B T Hk K", "keys"),
          tokens("v", "B T Hv V", "values")};
}
inline std::vector<std::string> headRules() {
  return {"H = max(Hk, Hv)", "Ho = max(Hq, H)"};
}
inline std::vector<FamilyState> matrixState() {
  return {{"initial_state", "N H K V"}};
}

/// The concatenation of `first` and `rest`.
template <typename T>
std::vector<T> operator+(std::vector<T> first, std::vector<T> rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

} // namespace mlir::linattn

#endif // LINATTN_LIB_FAMILIES_TABLES_H
