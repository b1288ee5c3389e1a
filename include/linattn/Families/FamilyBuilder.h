//===- FamilyBuilder.h - Building blocks of families ------------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_FAMILIES_FAMILYBUILDER_H
#define LINATTN_FAMILIES_FAMILYBUILDER_H

#include "linattn/Families/Families.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::linattn {

/// A tensor and the names of its dimensions, "B H T K".
struct FamilyTerm {
  Value value;
  StringRef dims;
};

/// The operands of one scan; absent ones are null.
struct FamilyScan {
  Value query, key, value;
  Value decay, valueDecay, beta, a, b, bonus, erase, write, inputGate, offsets;
  Update update = Update::Add;
  Readout readout = Readout::Inclusive;
  Transition transition = Transition::After;
  bool reverse = false;
  FeatureMapKind featureMap = FeatureMapKind::Identity;
  /// If null, the output has no denominator.
  NormalizeAttr normalize;
  Scale scale = {};
  /// S, and z and the running maximum where they are carried.
  SmallVector<Value, 3> state;
};

/// Emits the body of a family: elementwise work on operands, scans, states.
class FamilyBuilder {
public:
  FamilyBuilder(OpBuilder &b, Location loc, const Family &family,
                const FamilyArguments &arguments);

  ImplicitLocOpBuilder b;
  const Family &family;

  //===--- Operands and options -------------------------------------------===//

  /// The operand, null if it was left out.
  Value operand(StringRef name) const;
  bool has(StringRef name) const { return operand(name) != Value(); }
  /// The names of its dimensions, as ops order them.
  StringRef dimsOf(StringRef name) const;
  FamilyTerm term(StringRef name) const {
    return {operand(name), dimsOf(name)};
  }
  /// The value of an option, or its default.
  std::optional<double> number(StringRef option) const;
  bool flag(StringRef option) const { return number(option).value_or(0) != 0; }
  std::string word(StringRef option) const;
  /// The operand or the option, or K^-1/2 for the size K named by `dim`.
  FailureOr<Scale> scale(StringRef dim = "K");

  /// The element type of the tokens, and that of states and sums.
  Type tokenType() const { return tokens; }
  Type accumulationType() const { return getAccumulationType(tokens); }

  /// The extent of a dimension.
  OpFoldResult extent(StringRef dim) const;
  /// Names a dimension that no operand has.
  void setExtent(StringRef dim, OpFoldResult size) { extents[dim] = size; }
  std::optional<int64_t> staticExtent(StringRef dim) const;
  /// How many of `many` share one of `few`.
  int64_t ratio(StringRef many, StringRef few);
  /// Records an error for the caller of the builder.
  LogicalResult fail(const Twine &message);
  StringRef error() const { return message; }

  //===--- Elementwise work -----------------------------------------------===//

  using Function =
      llvm::function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

  /// The elementwise function over `dims`: each element of the result comes
  /// from the elements of the terms at the same indices. If a term has fewer
  /// heads, each of its heads serves a group. The function computes in the
  /// accumulation type.
  Value map(StringRef dims, ArrayRef<FamilyTerm> terms, Type type,
            Function function);
  using Functions = llvm::function_ref<SmallVector<Value>(
      ImplicitLocOpBuilder &, ValueRange)>;
  /// Several results at once, one of each type; no value is converted.
  SmallVector<Value> mapAll(StringRef dims, ArrayRef<FamilyTerm> terms,
                            ArrayRef<Type> types, Functions functions);
  /// Sums (or folds) the function over the last of `dims`.
  Value reduce(StringRef dims, ArrayRef<FamilyTerm> terms, double initial,
               Function function);
  /// x / √(x·x + eps) along the last dimension.
  Value l2norm(FamilyTerm x, double eps = 1e-6);
  /// softmax(scale · x) along the last dimension.
  Value softmax(FamilyTerm x, Scale scale);
  /// One number per head, computed from its index and the number of heads.
  FailureOr<Value> perHead(StringRef dim,
                           llvm::function_ref<double(int64_t, int64_t)> make);

  /// A tensor of these dimensions, uninitialised or filled with one value.
  Value empty(StringRef dims, Type type);
  Value filled(StringRef dims, Type type, double value);

  //===--- Recurrences ----------------------------------------------------===//

  /// The initial state that was given, or zeros.
  SmallVector<Value, 3> initialState();
  /// A scan whose output has these dimensions; returns the output, then the
  /// state.
  SmallVector<Value, 4> scan(const FamilyScan &scan, StringRef outputDims);
  /// A scan over the family's own state and output, as its results.
  FamilyResults finish(FamilyScan scan);

private:
  const FamilyArguments &arguments;
  Type tokens;
  llvm::StringMap<OpFoldResult> extents;
  llvm::StringMap<std::string> dims;
  /// Dimensions that are multiples of others.
  llvm::StringMap<std::pair<std::string, int64_t>> factors;
  std::string message;

  friend llvm::Expected<FamilyResults>
  buildFamily(OpBuilder &b, Location loc, const Family &family,
              const FamilyArguments &arguments);
  LogicalResult bindOperands();
  LogicalResult bindDims(StringRef name, Value value, StringRef layouts,
                         std::string &names);
  LogicalResult applyRules();
  LogicalResult checkOptions();
};

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value emitConstant(ImplicitLocOpBuilder &b, Type type, double value);
/// v[0] · v[1]
Value emitProduct(ImplicitLocOpBuilder &b, ValueRange v);
/// 1 / (1 + e^-x)
Value emitSigmoid(ImplicitLocOpBuilder &b, Value x);
/// log(1 + e^x), without overflow
Value emitSoftplus(ImplicitLocOpBuilder &b, Value x);
/// log(sigmoid(x)) = −softplus(−x)
Value emitLogSigmoid(ImplicitLocOpBuilder &b, Value x);
/// tanh of f64, in arithmetic that vectorises
Value emitTanh(ImplicitLocOpBuilder &b, Value x);
/// sin and cos of f64, alike; of moderate angles
std::pair<Value, Value> emitSinCos(ImplicitLocOpBuilder &b, Value angle);

} // namespace mlir::linattn

#endif // LINATTN_FAMILIES_FAMILYBUILDER_H
