//===- Families.h - The named families of recurrences -----------*- C++ -*-===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One table says what every named family is: its operands, its options, its
// state, and how it is built from linattn's ops. The builders below, the
// functions of the Python package, the examples under test/Families and
// docs/generated/Families.md come from it.
//
//===----------------------------------------------------------------------===//

#ifndef LINATTN_FAMILIES_FAMILIES_H
#define LINATTN_FAMILIES_FAMILIES_H

#include "linattn/Dialect/LinAttn.h"
#include "linattn/Families/Layout.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace mlir::linattn {

class FamilyBuilder;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

enum class FamilyOperandKind {
  /// A vector per token, of the element type of all tokens.
  Tokens,
  /// Anything else, of any floating-point type.
  Gate,
  /// Where packed sequences begin.
  Offsets,
};

struct FamilyOperand {
  std::string name;
  FamilyOperandKind kind;
  /// Layouts in the syntax of Layout.h.
  std::string layouts;
  bool isOptional = false;
  std::string doc;
};

/// A number, or a word.
using FamilyValue = std::variant<double, std::string>;

struct FamilyOption {
  std::string name;
  /// The default of the option. None where it depends on sizes (the doc says
  /// how) or where the option is required.
  std::optional<FamilyValue> defaultValue;
  std::string doc;
  bool isRequired = false;
};

/// An array that is carried from token to token.
struct FamilyState {
  std::string name;
  std::string layout;
  /// The option that must be set for this part to exist. Empty: the part always
  /// exists.
  std::string condition = "";
  /// The initial value.
  double initial = 0.0;
};

/// The results of a family, as values in its layouts for ops.
struct FamilyResults {
  Value output;
  SmallVector<Value, 3> state;
};

struct Family {
  std::string name;
  std::string title;
  /// The recurrence, in Unicode.
  std::string formula;
  std::string paper;
  /// Remarks for users, as paragraphs.
  std::string note = {};
  /// The parameters of the Python function in Python's syntax: operands and
  /// options by name, the initial state, and the flag that returns the final
  /// one, in this order, under any names. `cu_seqlens`, `inplace`, `out`,
  /// `num_threads`, `form` and `target` follow. Empty if the function is
  /// written by hand.
  std::string signature = {};
  /// Whether a scan computes it, so that its form can be chosen.
  bool hasForms = true;
  std::vector<FamilyOperand> operands;
  std::vector<FamilyOption> options;
  /// Sizes that follow from others: "H = max(Hk, Hv)", "Tn = {option} T".
  std::vector<std::string> rules;
  std::vector<FamilyState> state;
  /// The layout of the output. Its type is that of the tokens.
  std::string output;
  std::function<FailureOr<FamilyResults>(FamilyBuilder &)> build;
};

/// All families, in the order of the documentation.
ArrayRef<Family> getFamilies();

/// The family of that name, or null.
const Family *lookupFamily(StringRef name);

/// The parts of the state under these options.
SmallVector<const FamilyState *, 3>
getStateParts(const Family &family,
              const llvm::StringMap<FamilyValue> &options);

/// The rules, with the options' values in them.
std::vector<std::string>
getDimRules(const Family &family, const llvm::StringMap<FamilyValue> &options);

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// The arguments of a family. Operands are tensors in the layouts of ops:
/// [B, H, T, D] for users' [B, T, H, D].
struct FamilyArguments {
  llvm::StringMap<Value> operands;
  llvm::StringMap<FamilyValue> options;
  /// The scale as an f64 value, in place of the option; null if there is none.
  Value scale;
  /// The parts of the initial state. Empty: the state is zero.
  SmallVector<Value, 3> state;
  /// The schedule of the scans. Null: the compiler chooses.
  ConfigAttr config;
};

/// Emits a family. An error names the operand or option, the expected value and
/// the actual one.
llvm::Expected<FamilyResults> buildFamily(OpBuilder &b, Location loc,
                                          const Family &family,
                                          const FamilyArguments &arguments);

#define LINATTN_FAMILY(BUILDER, NAME)                                          \
  /** Emits the family NAME of the table. */                                   \
  llvm::Expected<FamilyResults> build##BUILDER(                                \
      OpBuilder &b, Location loc, const FamilyArguments &arguments);
#include "linattn/Families/Families.def"

/// The types that a function of a family is made for.
struct FamilyRequest {
  struct Given {
    std::string name;
    /// The number of the layout among the operand's alternatives.
    unsigned alternative = 0;
    Type elementType;
  };

  Type tokenType;
  /// Extents by name. An absent one is dynamic.
  llvm::StringMap<int64_t> extents;
  /// The operands that are present. Tokens may be left out of the list: they
  /// are always present.
  std::vector<Given> operands;
  llvm::StringMap<FamilyValue> options;
  /// The scale is an f64 argument behind the operands instead of an option.
  bool takesScale = false;
  bool hasInitialState = false;
  bool returnsState = false;
  /// If false, the function returns the final state alone, summed by a
  /// `linattn.state`. For families whose update is additive.
  bool returnsOutput = true;
  /// The parameters of a `#linattn.config`, or empty.
  std::string config;
};

/// A module with one public function, called as the family. Its operands are
/// those of the table, in order, then the scale if it is an argument, then the
/// initial state. It returns the output, then the final state. Without
/// `returnsOutput`, a recurrence that reads its state to update it is an error.
llvm::Expected<OwningOpRef<ModuleOp>> buildFamily(MLIRContext *context,
                                                  const Family &family,
                                                  const FamilyRequest &request);

/// The module as text, with the operands' names.
std::string printFamily(ModuleOp module);

} // namespace mlir::linattn

#endif // LINATTN_FAMILIES_FAMILIES_H
